#include "collective/network/group_calls.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collective/network/peer_service.h"
#include "core/base/error.h"
#include "core/disk/trace.h"
#include "rpc/loop/error_wire.h"

namespace cairn {
namespace {

using rpc::Task;

// The most bytes of parts that are under way at once: four of the usual packs. A member therefore
// buffers at most this much from each other member.
constexpr std::size_t kWindowBytes = std::size_t{16} << 20;
// The least that a part counts as, so that a thousand small ones are under way at most.
constexpr std::size_t kPartBytesMin = std::size_t{16} << 10;
// Up to here the waits of a ring cost more than the bytes that it saves.
constexpr std::size_t kTreeBytesMax = std::size_t{64} << 10;
constexpr std::size_t kTreePartBytesMax = std::size_t{1} << 20;
// Members run ahead by the calls of a step or two, each with few messages before it meets the
// others. A member that sends more is wrong, and memory is not to follow it.
constexpr std::size_t kEarlyMax = 1 << 16;
constexpr std::uint32_t kAnnouncement = 0xffffffff;  // in the place of a part's number

// All in which the members' calls must agree, to be hashed: it goes with every message, so that two
// calls that differ are noticed at the first one.
std::string text_of(const CollectiveCall& call) {
  std::string text = str(static_cast<int>(call.kind), ' ', call.root, ' ');
  if (call.kind == CallKind::kReduce)
    text += str(static_cast<int>(call.op), call.value.type().to_string());
  for (const AllReduceBuffer& each : call.reductions) {
    const std::int64_t numbers[] = {static_cast<std::int64_t>(each.op),
                                    static_cast<std::int64_t>(each.dtype), each.elements,
                                    lies_on_device(each) ? 1 : 0};
    text.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  }
  return text;
}

}  // namespace

GroupCalls::GroupCalls(CommunicationOptions options)
    : options_(options),
      window_(kWindowBytes),
      tasks_([](const std::string&, const ErrorParts&) {}) {}  // the group fails instead

GroupCalls::~GroupCalls() { stop(); }

void GroupCalls::use(PeerLinks& links) {
  links_ = &links;
  tasks_.spawn("admitting parts of collective calls", admit_parts());
  tasks_.spawn("letting go of a failed group's calls", let_go());
}

void GroupCalls::stop() { tasks_.cancel_all(); }

kj::Promise<std::vector<Tensor>> GroupCalls::run(CollectiveCall call) {
  check_call(call, rank(), size());
  if (links_->error()) throw_error(*links_->error());
  auto running = std::make_shared<Running>();
  running->number = next_++;
  running->signature = hash_of(text_of(call));
  running->asked = describe(call);
  running->call = std::move(call);
  if (tracing()) running->begun = std::chrono::steady_clock::now();
  running_.emplace(running->number, running);
  links_->set_own_calls(next_);
  auto pair = kj::newPromiseAndFulfiller<void>();
  running->ended = kj::mv(pair.fulfiller);
  const auto [first, last] = early_.equal_range(running->number);
  if (first != last || size() == 1) meets(*running);
  for (auto each = first; each != last; ++each)
    compare(*running, each->second.from, each->second.signature, each->second.asked);
  early_.erase(first, last);
  enqueue(running);
  auto results = [running] { return std::move(running->results); };
  return pair.promise.exclusiveJoin(links_->failure()).then(kj::mv(results));
}

// Values that are reduced to a root are summed in a copy of the member's own.
void GroupCalls::enqueue(const std::shared_ptr<Running>& running) {
  CollectiveCall& call = running->call;
  const auto wire = options_.bfloat16_on_wire ? WireFormat::kBfloat16 : WireFormat::kRaw;
  if (call.kind == CallKind::kReduce) {
    Tensor sum = call.value.clone();
    call.reductions = {{call.op, sum.dtype(), sum.elements(), sum.mutable_raw(), sum.owner()}};
    if (call.root == rank()) running->results = {sum};
  }
  running->values = FlatValues(call.reductions, wire);
  const std::size_t bytes = running->values.bytes();
  const auto pack = static_cast<std::size_t>(options_.bytes_per_pack) / 8 * 8;
  // On its way up a tree a part is one message.
  const std::size_t most = call.kind == CallKind::kReduce ? kTreePartBytesMax : pack;
  const std::size_t step = std::max<std::size_t>(std::min(pack, most), 8);
  std::vector<Part> parts;
  for (std::size_t begin = 0; begin < bytes; begin += step)
    parts.push_back({running,
                     static_cast<std::uint32_t>(parts.size()),
                     {begin, std::min(bytes, begin + step)}});
  if (parts.empty()) parts.push_back({running, 0, {}});  // it still has to meet the others
  running->parts_left = parts.size();
  for (Part& part : parts) queue_.push_back(std::move(part));
  queued_.notify_all();
}

// A group that has failed drops its values at once, and not only when it is destroyed. An exchange
// that has not been dropped yet keeps its own.
Task<void> GroupCalls::let_go() {
  try {
    co_await links_->failure();
  } catch (const Error&) {
    queue_.clear();
    running_.clear();
  }
}

// Every member admits parts in the order in which their calls were made. So a part that waits for
// room here waits only for parts that the other members have admitted before it as well.
Task<void> GroupCalls::admit_parts() {
  for (;;) {
    while (queue_.empty()) co_await queued_.wait();
    Part part = std::move(queue_.front());
    queue_.pop_front();
    auto admitted = co_await window_.enter(std::max(part.range.bytes(), kPartBytesMin));
    const std::string what = part.of->asked;
    tasks_.spawn(what, exchange(std::move(part), std::move(admitted)));
  }
}

// Whatever ends one part for the worse ends the group: the others' parts of it will never come.
Task<void> GroupCalls::exchange(Part part, rpc::Gate::Pass) {
  std::optional<ErrorParts> failure;
  try {
    co_await exchange_of(part)
        .exclusiveJoin(too_late(part.of).start())
        .exclusiveJoin(links_->failure());
  } catch (const Error&) {
    failure = error_parts(std::current_exception());
  }
  if (failure) co_return links_->fail(*failure);
  if (--part.of->parts_left > 0) co_return;
  if (tracing())
    record_overlapping_span("collective", part.of->begun, std::chrono::steady_clock::now(), 0);
  running_.erase(part.of->number);
  part.of->call.reductions.clear();  // lets go of their owners
  part.of->values = FlatValues({}, WireFormat::kRaw);
  part.of->ended->fulfill();
}

kj::Promise<void> GroupCalls::exchange_of(const Part& part) {
  const CollectiveCall& call = part.of->call;
  if (size() == 1) {
    if (call.kind == CallKind::kBroadcast || call.kind == CallKind::kAllGather)
      part.of->results = {call.value};
    return kj::READY_NOW;
  }
  switch (call.kind) {
    case CallKind::kAllReduce: {
      const bool small = part.range.bytes() <= kTreeBytesMax;
      const bool any = options_.implementation != CommunicationImplementation::kRing;
      if (part.range.bytes() == 0 || (any && small)) return tree(part).start();
      return ring(part).start();
    }
    case CallKind::kBroadcast: {
      part.of->results.resize(1);
      auto value = call.root == rank() ? call.value : Tensor();
      return kj::joinPromises(
          kj::arr(announce(*part.of), spread(part.of, call.root, value).start()));
    }
    case CallKind::kAllGather:
      return kj::joinPromises(kj::arr(announce(*part.of), gather(part.of).start()));
    case CallKind::kReduce:
      return kj::joinPromises(kj::arr(announce(*part.of), sum_up_tree(part, call.root).start()));
    case CallKind::kBarrier:
      return kj::joinPromises(kj::arr(announce(*part.of), tree(part).start()));
  }
  KJ_UNREACHABLE;
}

// A member that waits for the others cannot see who has not come, only who has not sent: that one
// may wait for another itself. So all are asked how many calls they have made.
Task<void> GroupCalls::too_late(std::shared_ptr<Running> running) {
  co_await links_->reactor().sleep(options_.timeout);
  co_await links_->ask_calls();
  std::string missing;
  for (int other = 0; other < size(); ++other)
    if (other != rank() && links_->calls_of(other) <= running->number)
      missing += str(missing.empty() ? "" : ", ", links_->name(other));
  const auto seconds = std::chrono::duration<double>(options_.timeout).count();
  throw DeadlineExceededError(
      str(links_->name(rank()), " waited ", seconds, " s in ", running->asked, " for ",
          missing.empty() ? std::string("values, though all members have made the call")
                          : str(missing, " to make the call"),
          "; if it only takes longer, give the group a longer timeout"));
}

// ---- what comes ----

kj::Promise<void> GroupCalls::parcel(int from, Parcel parcel) {
  if (const auto own = running_.find(parcel.call); own != running_.end()) {
    meets(*own->second);
    compare(*own->second, from, parcel.signature, parcel.asked);
  } else if (parcel.call >= next_)
    hear_early(from, parcel);
  if (parcel.part == kAnnouncement) return kj::READY_NOW;
  if (parcel.call < next_ && !running_.contains(parcel.call))
    throw FailedPreconditionError(
        str("rank ", from, " sends values of call ", parcel.call, ", which has ended here"));
  return inbox_.put(from, std::move(parcel));
}

// Written before the call ends, which orders the write before any read.
void GroupCalls::meets(Running& own) {
  if (std::exchange(own.met, true) || !own.call.times) return;
  own.call.times->met = std::chrono::steady_clock::now();
}

// The values of a call that this member has not made yet wait in the inbox. Which call it was is
// noted here, so that a mismatch is found as soon as this member makes its own call.
void GroupCalls::hear_early(int from, const Parcel& parcel) {
  if (early_.size() >= kEarlyMax)
    throw ResourceExhaustedError(
        str("more than ", kEarlyMax, " messages came of calls that this member has not made yet"));
  early_.emplace(parcel.call, Heard{from, parcel.signature, parcel.asked});
}

void GroupCalls::compare(const Running& own, int from, std::uint64_t signature,
                         const std::string& asked) {
  if (own.signature == signature) return;
  links_->fail({Code::kFailedPrecondition,
                str("call ", own.number, " of the group: rank ", rank(), " calls ", own.asked,
                    ", rank ", from, " calls ", asked.empty() ? "something else" : asked,
                    "; all members must make the same calls in the same order"),
                ""});
}

// A member may leave as soon as it has all that it wants. That is an error for those only who still
// want something of it.
void GroupCalls::left(int rank, const ErrorParts& error) {
  if (inbox_.waits_for(rank)) links_->fail(error);
}

kj::Promise<void> GroupCalls::arrival(Inbox::Key key) {
  auto arrived = inbox_.arrival(key);
  if (links_->gone(key.from) && inbox_.waits_for(key.from)) links_->fail(*links_->gone(key.from));
  return arrived;
}

// ---- what goes ----

Parcel GroupCalls::parcel_of(const Running& running, std::uint32_t part, std::uint32_t step) const {
  Parcel parcel;
  parcel.call = running.number;
  parcel.part = part;
  parcel.step = step;
  parcel.signature = running.signature;
  if (part == 0 || part == kAnnouncement) parcel.asked = running.asked;
  return parcel;
}

kj::Promise<void> GroupCalls::send(int to, const Part& part, std::uint32_t step,
                                   FlatValues::Range range) {
  return links_->send(to, parcel_of(*part.of, part.number, step),
                      part.of->values.outgoing(range, links_->reactor().buffers()));
}

kj::Promise<void> GroupCalls::send_piece(int to, const Running& running, std::uint32_t piece,
                                         std::uint32_t step, const Tensor& value, std::size_t begin,
                                         std::size_t end) {
  static const kj::byte kPadding[8] = {};
  Parcel parcel = parcel_of(running, piece, step);
  if (piece == 0) parcel.type = value.type();
  if (piece == 0 && value.dtype() == DType::kString) parcel.strings = value;
  std::vector<rpc::ByteStream::Piece> pieces;
  if (end > begin) {
    const auto* bytes = reinterpret_cast<const kj::byte*>(value.raw());
    pieces.push_back(
        {kj::arrayPtr(bytes + begin, end - begin), std::const_pointer_cast<void>(value.owner())});
    pieces.push_back({kj::arrayPtr(kPadding, (8 - (end - begin) % 8) % 8), nullptr});
  }
  return links_->send(to, parcel, std::move(pieces));
}

// Members whose exchange begins with waiting would wait for each other if their calls differ. This
// shows the next one, at once, what this one has called. That one may need nothing of it, have
// ended the call and left.
kj::Promise<void> GroupCalls::announce(const Running& running) {
  return links_->tell((rank() + 1) % size(), parcel_of(running, kAnnouncement, 0));
}

}  // namespace cairn
