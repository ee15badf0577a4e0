// The exchanges of GroupCalls: who sends what to whom, in which order.
//
// A message leaves from the values' own memory, and that memory may be overwritten by what comes
// later in the same exchange. That is safe, because whatever comes later was made from that message
// by the one that it was sent to, who therefore had read it.
#include <algorithm>
#include <cstring>
#include <deque>

#include "collective/network/group_calls.h"
#include "core/base/error.h"

namespace cairn {
namespace {

using rpc::Task;

// The size of a piece of a tensor on its way down a tree. A member passes a piece on while the next
// one comes: smaller pieces fill the tree sooner, larger ones cost fewer messages.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr std::size_t kPiecesUnderWay = 4;  // to each child
constexpr int kRootsAtOnce = 8;

// The binomial tree over ranks 0 .. n - 1 seen from its root: the children of v are v + 1, v + 2,
// v + 4, ... below the lowest bit that is set in v, its parent is v without that bit.
class Tree {
 public:
  Tree(int rank, int root, int size)
      : root_(root), size_(size), place_((rank - root + size) % size) {}
  bool is_root() const { return place_ == 0; }
  int parent() const { return rank_of(place_ & (place_ - 1)); }
  std::vector<int> children() const {
    std::vector<int> ranks;
    for (int bit = 1; bit < size_ && (place_ & bit) == 0; bit <<= 1)
      if (place_ + bit < size_) ranks.push_back(rank_of(place_ + bit));
    return ranks;
  }

 private:
  int rank_of(int place) const { return (place + root_) % size_; }
  int root_, size_, place_;
};

std::span<const std::byte> bytes_of(const Parcel& parcel) {
  return {reinterpret_cast<const std::byte*>(parcel.data.begin()), parcel.data.size()};
}

// The tensor of which this is the first piece, still to be filled.
Tensor tensor_of(const Parcel& parcel) {
  if (!parcel.type) throw InvalidArgumentError("the first piece of a tensor came without its type");
  return parcel.strings.defined() ? parcel.strings : Tensor(parcel.type->dtype, parcel.type->shape);
}

// The bytes are padded to words, as all data is that is read where it lies in a message.
void fill(Tensor& tensor, std::size_t begin, const Parcel& parcel) {
  const std::size_t bytes =
      tensor.bytes() > begin ? std::min(kPieceBytes, tensor.bytes() - begin) : 0;
  if (parcel.data.size() != (bytes + 7) / 8 * 8)
    throw InvalidArgumentError(str("a piece of ", tensor.type().to_string(), " has ",
                                   parcel.data.size(), " bytes, not ", bytes));
  if (bytes > 0) std::memcpy(tensor.mutable_raw() + begin, parcel.data.begin(), bytes);
}

// An acknowledgement that is awaited at the end. It is watched from now on.
void add(std::vector<kj::Promise<void>>& sent, kj::Promise<void> promise) {
  sent.push_back(kj::mv(promise));
}

kj::Promise<void> all_of(std::vector<kj::Promise<void>> promises) {
  auto array = kj::heapArrayBuilder<kj::Promise<void>>(promises.size());
  for (auto& each : promises) array.add(kj::mv(each));
  return kj::joinPromises(array.finish());
}

}  // namespace

// Steps 0 .. n-2 sum: slice s starts on rank s+1 and goes around until rank s has the whole sum.
// Steps n-1 .. 2n-3 pass the sums around. Each member sends and receives 2 (n-1)/n of the bytes,
// which is the least there can be: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
// clusters of workstations", 2009. Each slice is always summed in the same order around the ring,
// so its bits do not depend on which member was faster.
Task<void> GroupCalls::ring(Part part) {
  const int n = size(), r = rank(), next = (r + 1) % n, before = (r + n - 1) % n;
  FlatValues& values = part.of->values;
  const auto slice = [&](int s) { return FlatValues::slice(part.range, (s + 2 * n) % n, n); };
  std::vector<kj::Promise<void>> sent;
  for (int k = 0; k < n - 1; ++k) {
    const auto step = static_cast<std::uint32_t>(k);
    const Inbox::Key key{before, part.of->number, part.number, step};
    add(sent, send(next, part, step, slice(r - 1 - k)));
    co_await arrival(key);
    inbox_.take(key, [&](const Parcel& came) { values.add(slice(r - 2 - k), bytes_of(came)); });
  }
  values.finish(slice(r), n);
  for (int k = 0; k < n - 1; ++k) {
    const auto step = static_cast<std::uint32_t>(n - 1 + k);
    const Inbox::Key key{before, part.of->number, part.number, step};
    add(sent, send(next, part, step, slice(r - k)));
    co_await arrival(key);
    inbox_.take(key, [&](const Parcel& came) { values.replace(slice(r - 1 - k), bytes_of(came)); });
  }
  co_await all_of(std::move(sent));
}

Task<void> GroupCalls::tree(Part part) {
  co_await sum_up_tree(part, 0);
  co_await replace_down_tree(part);
}

// Children are added in their order and not as they come, which would be sooner now and then, but
// would sum in another order in every run.
Task<void> GroupCalls::sum_up_tree(Part part, int root) {
  const Tree tree(rank(), root, size());
  FlatValues& values = part.of->values;
  for (const int child : tree.children()) {
    const Inbox::Key key{child, part.of->number, part.number, 0};
    co_await arrival(key);
    inbox_.take(key, [&](const Parcel& came) { values.add(part.range, bytes_of(came)); });
  }
  if (tree.is_root())
    values.finish(part.range, size());
  else
    co_await send(tree.parent(), part, 0, part.range);
}

Task<void> GroupCalls::replace_down_tree(Part part) {
  const Tree tree(rank(), 0, size());
  if (!tree.is_root()) {
    const Inbox::Key key{tree.parent(), part.of->number, part.number, 1};
    co_await arrival(key);
    inbox_.take(key,
                [&](const Parcel& came) { part.of->values.replace(part.range, bytes_of(came)); });
  }
  std::vector<kj::Promise<void>> sent;
  auto children = tree.children();
  std::ranges::reverse(children);  // the one with most below it first
  for (const int child : children) add(sent, send(child, part, 1, part.range));
  co_await all_of(std::move(sent));
}

// The root's value, on all members. It travels in pieces, so that a member passes the first ones on
// while the next ones come.
Task<void> GroupCalls::spread(std::shared_ptr<Running> running, int root, Tensor value) {
  const Tree tree(rank(), root, size());
  const auto step = static_cast<std::uint32_t>(root);
  auto children = tree.children();
  std::ranges::reverse(children);
  std::deque<kj::Promise<void>> under_way;
  for (std::uint32_t piece = 0;; ++piece) {
    if (!tree.is_root()) {
      const Inbox::Key key{tree.parent(), running->number, piece, step};
      co_await arrival(key);
      inbox_.take(key, [&](const Parcel& came) {
        if (piece == 0) value = tensor_of(came);
        fill(value, piece * kPieceBytes, came);
      });
    }
    const std::size_t begin = std::min(value.bytes(), piece * kPieceBytes);
    const std::size_t end = std::min(value.bytes(), begin + kPieceBytes);
    for (const int child : children)
      under_way.push_back(send_piece(child, *running, piece, step, value, begin, end));
    while (under_way.size() > kPiecesUnderWay * children.size()) {
      co_await kj::mv(under_way.front());
      under_way.pop_front();
    }
    if (end == value.bytes()) break;
  }
  running->results[running->call.kind == CallKind::kAllGather ? step : 0] = std::move(value);
  for (auto& each : under_way) co_await kj::mv(each);
}

// So many tensors at a time that what is under way stays within what an inbox takes.
Task<void> GroupCalls::gather(std::shared_ptr<Running> running) {
  running->results.resize(static_cast<std::size_t>(size()));
  for (int first = 0; first < size(); first += kRootsAtOnce) {
    std::vector<kj::Promise<void>> all;
    for (int root = first; root < std::min(size(), first + kRootsAtOnce); ++root)
      all.push_back(spread(running, root, root == rank() ? running->call.value : Tensor()).start());
    co_await all_of(std::move(all));
  }
}

}  // namespace cairn
