#include "worker/remote_store.h"

#include <kj/async.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "core/base/trace.h"
#include "core/memory/bulk_copy.h"
#include "core/tensor/bfloat16.h"

namespace cairn::worker {
namespace {

void verify_layout(const Layout& layout) {
  for (const ShardServer& server : layout.servers) rpc::Address::parse(server.address);
  const std::uint32_t shards = layout.shard_count();
  for (const VariableLayout& variable : layout.variables) {
    std::int64_t next = 0;
    for (const Part& part : variable.parts) {
      if (part.rows.begin != next || part.rows.end < next || part.shard >= shards)
        throw InvalidArgumentError(str(
            "layout version ", layout.version, " does not cover variable \"", variable.spec->name,
            "\": a part holds rows [", part.rows.begin, ", ", part.rows.end, ") on shard ",
            part.shard, " of ", shards, ", row ", next, " was next"));
      next = part.rows.end;
    }
    if (next != variable.spec->rows())
      throw InvalidArgumentError(str("layout version ", layout.version, " covers ", next,
                                     " of the ", variable.spec->rows(), " rows of variable \"",
                                     variable.spec->name, "\""));
  }
}

// All of them end before this does, so that nothing of a failed wave is left under way.
kj::Promise<void> join(std::vector<kj::Promise<void>> calls) {
  if (calls.size() == 1) return kj::mv(calls.front());
  auto all = kj::heapArrayBuilder<kj::Promise<void>>(calls.size());
  for (auto& call : calls) all.add(kj::mv(call));
  return kj::joinPromises(all.finish());
}

// Marks its wave as failed unless ended_well() was called, and calls of a failed wave are not sent
// any more. It must be destroyed before the call's credit is released, since that lets the next
// call go.
class CallOfWave {
 public:
  explicit CallOfWave(bool& failed) : failed_(failed) {}
  ~CallOfWave() { failed_ = failed_ || !well_; }
  CallOfWave(const CallOfWave&) = delete;
  CallOfWave& operator=(const CallOfWave&) = delete;
  void ended_well() { well_ = true; }

 private:
  bool& failed_;
  bool well_ = false;
};

Bytes bytes_of(const Tensor& tensor, const std::byte* at, std::size_t size) {
  return {std::const_pointer_cast<void>(tensor.owner()), const_cast<std::byte*>(at), size};
}

bool aligned(const std::byte* data) { return reinterpret_cast<std::uintptr_t>(data) % 8 == 0; }

}  // namespace

RemoteStore::RemoteStore(rpc::Reactor& reactor, rpc::Network& network, LinkOptions options)
    : reactor_(reactor), network_(network), options_(options) {}

void RemoteStore::identify(LaneIdentity identity) {
  if (identity.hello.session != identity_.hello.session) links_.clear();
  parts_.clear();
  identity_ = std::move(identity);
  if (routing_)
    routing_ = std::make_shared<Routing>(std::make_shared<const Layout>(routing_->layout()),
                                         identity_.encoding, options_.piece_bytes_max);
}

void RemoteStore::forget_layout() {
  parts_.clear();
  links_.clear();
  routing_.reset();
}

void RemoteStore::set_layout(std::shared_ptr<const Layout> layout) {
  verify_layout(*layout);
  parts_.clear();
  auto next =
      std::make_shared<Routing>(std::move(layout), identity_.encoding, options_.piece_bytes_max);
  std::erase_if(links_, [&](const auto& entry) {
    const auto& [shard, linked] = entry;
    if (shard >= next->layout().shard_count()) return true;
    const ShardServer& server = next->server(shard);
    return server.incarnation != linked.incarnation ||
           rpc::Address::parse(server.address) != linked.link->shard().address;
  });
  routing_ = std::move(next);
}

std::shared_ptr<ShardLink> RemoteStore::link(ShardId shard) {
  CAIRN_CHECK(routing_ != nullptr, "no layout yet");
  if (auto found = links_.find(shard); found != links_.end()) return found->second.link;
  const ShardServer& server = routing_->server(shard);
  if (server.incarnation == 0)
    throw UnavailableError(str(rpc::task_name(rpc::Role::kPs, server.ps), " (", server.address,
                               ") is away in layout version ", routing_->layout().version));
  ShardAddress address{rpc::Address::parse(server.address), server.ps,
                       1 + shard - server.first_shard};
  auto link = std::make_shared<ShardLink>(reactor_, network_, std::move(address), identity_.hello,
                                          options_);
  links_[shard] = {server.incarnation, link};
  return link;
}

std::shared_ptr<ShardLink> RemoteStore::find_link(ShardId shard) const {
  const auto found = links_.find(shard);
  return found == links_.end() ? nullptr : found->second.link;
}

// One call of a wave, as status tells of it.
class RemoteStep::Call {
 public:
  Call(RemoteStep& step, const ShardLink& link, Doing doing)
      : step_(step),
        id_(step.calls_.begin(doing, {link.shard().ps, link.shard().endpoint - 1},
                              step.store_.reactor().now())) {}
  ~Call() { step_.calls_.end(id_, step_.store_.reactor().now()); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  void now(Doing doing) { step_.calls_.set(id_, doing, step_.store_.reactor().now()); }

 private:
  RemoteStep& step_;
  CallsUnderWay::Id id_;
};

RemoteStep::RemoteStep(RemoteStore& store, DoingSlot* slot)
    : store_(store), routing_(store.routing()), calls_(slot) {}

std::shared_ptr<ShardLink> RemoteStep::link(ShardId shard) {
  const auto& now = store_.routing();
  if (now != routing_ && (!now || shard >= now->layout().shard_count() ||
                          now->server(shard).address != routing_->server(shard).address))
    throw AbortedError(str("shard ", shard, " moved while the closure was at work"));
  return store_.link(shard);
}

rpc::Task<void> RemoteStep::pull(StepContext step, std::span<Read> reads) {
  const std::vector<ShardRequest> requests = routing_->reads(reads);
  if (requests.empty()) {
    for (Read& read : reads) {
      const VariableSpec& spec = *routing_->variable(read.variable).spec;
      read.value = Tensor(spec.dtype, value_shape(spec, read.ids));
    }
    co_return;
  }
  const TraceSpan span("pull", step.closure, TraceSpan::Kind::kOverlapping);
  meeting_places(reads, requests);
  bool failed = false;
  std::vector<kj::Promise<void>> calls;
  for (const ShardRequest& request : requests)
    calls.push_back(pull_one(step, reads, request, failed).start());
  auto all = join(std::move(calls));
  co_await kj::mv(all);
}

// Rows of a read that comes in several messages meet in one buffer: shared with the shard if they
// all come from one.
void RemoteStep::meeting_places(std::span<Read> reads, const std::vector<ShardRequest>& requests) {
  std::vector<std::uint32_t> sources(reads.size());
  std::vector<std::optional<ShardId>> only(reads.size());
  for (const auto& request : requests)
    for (const auto& segment : request.segments) {
      only[segment.item] = sources[segment.item] == 0 || only[segment.item] == request.shard
                               ? std::optional(request.shard)
                               : std::nullopt;
      ++sources[segment.item];
    }
  for (std::size_t i = 0; i < reads.size(); ++i) {
    reads[i].value = Tensor();
    if (sources[i] == 1) continue;
    const VariableSpec& spec = *routing_->variable(reads[i].variable).spec;
    const Shape shape = value_shape(spec, reads[i].ids);
    const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * dtype_bytes(spec.dtype);
    if (only[i].has_value() && !routing_->encoded(spec.dtype) && link(*only[i])->shares(bytes)) {
      Bytes place = link(*only[i])->take(bytes);
      reads[i].value = Tensor::borrowed(spec.dtype, shape, place.data, std::move(place.owner));
    } else {
      reads[i].value = pooled_tensor(store_.reactor().buffers(), spec.dtype, shape);
    }
  }
}

// Where the reply's rows belong, if they all belong to one place as they come.
Bytes RemoteStep::place_of(std::span<Read> reads, const ShardRequest& request,
                           const ShardLink& link) const {
  const Segment& segment = request.segments.front();
  Read& read = reads[segment.item];
  if (request.segments.size() != 1 || !read.value.defined() || !link.shares(request.value_bytes))
    return {};
  const VariableSpec& spec = *routing_->variable(read.variable).spec;
  if (routing_->encoded(spec.dtype)) return {};
  std::byte* at = read.value.mutable_raw() +
                  static_cast<std::size_t>(segment.first * spec.dim()) * dtype_bytes(spec.dtype);
  if (!aligned(at)) return {};
  return bytes_of(read.value, at, request.value_bytes);
}

rpc::Task<void> RemoteStep::pull_one(StepContext step, std::span<Read> reads,
                                     const ShardRequest& request, bool& failed) {
  auto link = this->link(request.shard);
  Call told(*this, *link, link->connected() ? Doing::kWaitingToPull : Doing::kConnecting);
  if (!link->connected()) co_await link->connect();  // who is there decides where the blobs go
  told.now(Doing::kWaitingToPull);
  const rpc::Credit credit = co_await link->acquire_credit(rpc::Way::kIn, request.value_bytes);
  if (failed) co_return;
  told.now(Doing::kPulling);
  CallOfWave of_wave(failed);
  PullCall call;
  call.step = step;
  call.headers.reserve(request.segments.size());
  for (const Segment& segment : request.segments)
    call.headers.push_back({reads[segment.item].variable, segment.part,
                            segment.whole ? 0 : static_cast<std::uint32_t>(segment.rows),
                            segment.whole});
  call.ids = ids_of(request, *link);
  call.encoding = routing_->encoding();
  call.value_bytes = request.value_bytes;
  call.into = place_of(reads, request, *link);
  const std::vector<PartCache::Copy> copies = copies_for(reads, request, call);
  const PullReply reply = co_await link->pull(std::move(call));
  saw(request.shard, *link, reply.version);
  scatter(reads, request, copies, reply);
  of_wave.ended_well();
}

std::vector<PartCache::Copy> RemoteStep::copies_for(std::span<Read> reads,
                                                    const ShardRequest& request,
                                                    PullCall& call) const {
  std::vector<PartCache::Copy> copies;
  // the cache is of another layout, whose numbers may mean other variables
  if (routing_ != store_.routing()) return copies;
  for (std::size_t i = 0; i < request.segments.size(); ++i) {
    if (!request.segments[i].whole) continue;
    const PartCache::Copy* copy =
        store_.parts().find(reads[request.segments[i].item].variable, request.segments[i].part);
    if (copy == nullptr || (call.copies_of != 0 && call.copies_of != copy->at.incarnation))
      continue;
    call.copies_of = copy->at.incarnation;
    call.headers[i].written = copy->at.written;
    copies.resize(request.segments.size());
    copies[i] = *copy;
  }
  return copies;
}

void RemoteStep::scatter(std::span<Read> reads, const ShardRequest& request,
                         std::span<const PartCache::Copy> copies, const PullReply& reply) {
  const std::byte *from = reply.values.data(), *const end = from + reply.values.size();
  std::size_t whole = 0;
  for (std::size_t i = 0; i < request.segments.size(); ++i) {
    const Segment& segment = request.segments[i];
    Read& read = reads[segment.item];
    const VariableSpec& spec = *routing_->variable(read.variable).spec;
    const PartCache::Written at =
        segment.whole ? PartCache::Written{reply.version.incarnation, reply.written.at(whole++)}
                      : PartCache::Written();
    if (segment.whole && !copies.empty() && copies[i].values.defined() && copies[i].at == at) {
      take_copy(read, segment, copies[i].values);
      continue;
    }
    const auto elements = static_cast<std::size_t>(segment.rows * spec.dim());
    const std::size_t bytes =
        static_cast<std::size_t>(segment.rows) * routing_->wire_row_bytes(spec);
    if (bytes > static_cast<std::size_t>(end - from))
      throw InternalError(str("shard ", request.shard, " left out values of variable \"", spec.name,
                              "\", of which no copy is at hand"));
    const bool encoded = routing_->encoded(spec.dtype);
    const bool alone = !read.value.defined();
    if (alone && !encoded && aligned(from)) {
      read.value = Tensor::borrowed(spec.dtype, value_shape(spec, read.ids), from, reply.owner);
    } else {
      if (alone)
        read.value =
            pooled_tensor(store_.reactor().buffers(), spec.dtype, value_shape(spec, read.ids));
      std::byte* to =
          read.value.mutable_raw() +
          static_cast<std::size_t>(segment.first * spec.dim()) * dtype_bytes(spec.dtype);
      if (encoded)
        widen_from_bfloat16(from, elements, reinterpret_cast<float*>(to));
      else if (bytes > 0 && to != from)
        copy_bulk(to, from, bytes);
    }
    from += bytes;
    if (segment.whole) keep_copy(read, segment, at);
  }
}

void RemoteStep::take_copy(Read& read, const Segment& segment, const Tensor& values) const {
  const VariableSpec& spec = *routing_->variable(read.variable).spec;
  if (!read.value.defined()) {
    read.value = values;
    return;
  }
  std::byte* to = read.value.mutable_raw() +
                  static_cast<std::size_t>(segment.first * spec.dim()) * dtype_bytes(spec.dtype);
  if (values.bytes() > 0) std::memcpy(to, values.raw(), values.bytes());
}

void RemoteStep::keep_copy(const Read& read, const Segment& segment,
                           const PartCache::Written& at) const {
  if (routing_ != store_.routing()) return;
  const VariableSpec& spec = *routing_->variable(read.variable).spec;
  const std::size_t row = static_cast<std::size_t>(spec.dim()) * dtype_bytes(spec.dtype),
                    bytes = static_cast<std::size_t>(segment.rows) * row;
  store_.parts().saw(read.variable, segment.part, at, bytes, [&] {
    const Shape shape = value_shape(spec, {});
    Tensor copy(spec.dtype, shape.rank() > 0 ? shape.with_dim(0, segment.rows) : shape);
    if (bytes > 0)
      std::memcpy(copy.mutable_raw(),
                  read.value.raw() + static_cast<std::size_t>(segment.first) * row, bytes);
    return copy;
  });
}

void RemoteStep::saw(ShardId shard, const ShardLink& link, Version version) {
  const auto [first, fresh] = pulled_.try_emplace(shard, version);
  if (!fresh && first->second.incarnation != version.incarnation)
    throw AbortedError(str(link.name(), " was replaced while the closure was at work"));
}

std::shared_ptr<std::byte> RemoteStep::update_place(VariableId variable, std::size_t bytes) {
  const VariableLayout& layout = routing_->variable(variable);
  if (layout.parts.size() != 1 || routing_->encoded(layout.spec->dtype)) return nullptr;
  const auto link = store_.find_link(layout.parts.front().shard);
  if (link == nullptr || !link->shares(bytes)) return nullptr;
  const Bytes place = link->take_shared(bytes);
  return {place.owner, place.data};
}

rpc::Task<void> RemoteStep::push(StepContext step, std::span<Update> updates) {
  const std::vector<ShardRequest> requests = routing_->updates(updates);
  if (requests.empty()) co_return;
  const TraceSpan span("push", step.closure, TraceSpan::Kind::kOverlapping);
  updated_ = true;
  step.push_number = pushes_++;
  bool failed = false;
  std::vector<kj::Promise<void>> calls;
  for (std::size_t begin = 0, end = 0; begin < requests.size(); begin = end) {
    Piece piece{0, 0};
    for (end = begin; end < requests.size() && requests[end].shard == requests[begin].shard; ++end)
      piece.count += requests[end].slice == 0 ? 1 : 0;
    for (std::size_t i = begin; i < end; ++i) {
      const ShardRequest& request = requests[i];
      const Piece place = request.slice == 0 ? piece : Piece();
      calls.push_back(push_one(step, updates, request, place, failed).start());
      piece.number += request.slice == 0 ? 1 : 0;
    }
  }
  auto all = join(std::move(calls));
  co_await kj::mv(all);
}

rpc::Task<void> RemoteStep::push_one(StepContext step, std::span<Update> updates,
                                     const ShardRequest& request, Piece piece, bool& failed) {
  auto link = this->link(request.shard);
  Call told(*this, *link, link->connected() ? Doing::kWaitingToPush : Doing::kConnecting);
  if (!link->connected()) co_await link->connect();
  told.now(Doing::kWaitingToPush);
  const rpc::Credit credit = co_await link->acquire_credit(rpc::Way::kOut, request.value_bytes);
  if (failed) co_return;
  told.now(Doing::kPushing);
  CallOfWave of_wave(failed);
  PushCall call;
  call.step = step;
  if (auto seen = pulled_.find(request.shard); seen != pulled_.end()) call.pulled = seen->second;
  call.headers.reserve(request.segments.size());
  for (const Segment& segment : request.segments) {
    const Update& update = updates[segment.item];
    const PartRows rows{update.variable, segment.part,
                        segment.whole ? 0 : static_cast<std::uint32_t>(segment.rows),
                        segment.whole};
    call.headers.push_back({rows, update.rule, update.learning_rate});
  }
  call.ids = ids_of(request, *link);
  call.values = shared_values(updates, request, *link);
  call.values_shared = !call.values.empty();
  if (!call.values_shared) call.values = travelling_values(updates, request);
  call.encoding = routing_->encoding();
  call.piece = piece.number;
  call.pieces = piece.count;
  call.slice = request.slice;
  const PushReply reply = co_await link->push(std::move(call));
  staleness_ = std::max(staleness_, reply.staleness);
  of_wave.ended_well();
}

Bytes RemoteStep::ids_of(const ShardRequest& request, ShardLink& link) const {
  if (request.ids == 0) return {};
  Bytes bytes = link.take(request.ids * sizeof(std::int64_t));
  auto* out = reinterpret_cast<std::int64_t*>(bytes.data);
  for (const Segment& segment : request.segments) {
    if (segment.whole) continue;
    if (segment.ids != nullptr)
      std::transform(segment.ids, segment.ids + segment.rows, out,
                     [begin = segment.begin](std::int64_t id) { return id - begin; });
    else
      std::iota(out, out + segment.rows, segment.first - segment.begin);
    out += segment.rows;
  }
  return bytes;
}

std::size_t RemoteStep::wire_bytes(std::span<const Update> updates, const Segment& segment) const {
  return static_cast<std::size_t>(segment.rows) *
         routing_->wire_row_bytes(*routing_->variable(updates[segment.item].variable).spec);
}

const std::byte* RemoteStep::rows_of(std::span<const Update> updates,
                                     const Segment& segment) const {
  const VariableSpec& spec = *routing_->variable(updates[segment.item].variable).spec;
  return updates[segment.item].value.raw() +
         static_cast<std::size_t>(segment.first * spec.dim()) * dtype_bytes(spec.dtype);
}

// Nothing where the values travel as something else, or start where no place may.
Bytes RemoteStep::where_it_lies(std::span<const Update> updates, const Segment& segment) const {
  const Tensor& value = updates[segment.item].value;
  const std::byte* from = rows_of(updates, segment);
  return aligned(from) && !routing_->encoded(value.dtype())
             ? bytes_of(value, from, wire_bytes(updates, segment))
             : Bytes();
}

void RemoteStep::lay_out(std::span<const Update> updates, const Segment& segment,
                         std::byte* out) const {
  const VariableSpec& spec = *routing_->variable(updates[segment.item].variable).spec;
  const std::byte* from = rows_of(updates, segment);
  if (routing_->encoded(spec.dtype))
    narrow_to_bfloat16(reinterpret_cast<const float*>(from),
                       static_cast<std::size_t>(segment.rows * spec.dim()), out);
  else
    copy_bulk(out, from, wire_bytes(updates, segment));
}

std::vector<Bytes> RemoteStep::shared_values(std::span<const Update> updates,
                                             const ShardRequest& request, ShardLink& link) const {
  // places start at multiples of 8
  const auto room_for = [](const Bytes& bytes) { return (bytes.size + 7) / 8 * 8; };
  if (!link.shares(request.value_bytes)) return {};
  std::vector<Bytes> values(request.segments.size());
  std::size_t elsewhere = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Segment& segment = request.segments[i];
    if (segment.rows == 0) continue;
    values[i] = where_it_lies(updates, segment);
    if (link.shared(values[i])) continue;
    values[i] = {nullptr, nullptr, wire_bytes(updates, segment)};
    elsewhere += room_for(values[i]);
  }
  if (elsewhere == 0) return values;
  const Bytes room = link.take_shared(elsewhere);
  if (room.data == nullptr) return {};
  std::byte* out = room.data;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].size == 0 || values[i].data != nullptr) continue;
    values[i].owner = room.owner;
    values[i].data = out;
    lay_out(updates, request.segments[i], out);
    out += room_for(values[i]);
  }
  return values;
}

// From where they lie, unless they travel as something else or are many and small: those meet in
// one buffer.
std::vector<Bytes> RemoteStep::travelling_values(std::span<const Update> updates,
                                                 const ShardRequest& request) const {
  if (request.value_bytes == 0) return {};
  std::vector<Bytes> values;
  if (request.value_bytes % 8 == 0 &&
      (request.segments.size() == 1 ||
       request.value_bytes >= request.segments.size() * kScatteredBytesMin)) {
    values.reserve(request.segments.size());
    for (const Segment& segment : request.segments)
      if (segment.rows > 0) values.push_back(where_it_lies(updates, segment));
    if (std::all_of(values.begin(), values.end(),
                    [](const Bytes& one) { return one.data != nullptr; }))
      return values;
  }
  const Bytes all = pooled_bytes(store_.reactor().buffers(), request.value_bytes);
  std::byte* out = all.data;
  for (const Segment& segment : request.segments) {
    if (segment.rows == 0) continue;
    lay_out(updates, segment, out);
    out += wire_bytes(updates, segment);
  }
  return {all};
}

}  // namespace cairn::worker
