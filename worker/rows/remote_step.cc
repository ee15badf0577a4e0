#include "worker/rows/remote_step.h"

#include <kj/async.h>

#include <algorithm>
#include <vector>

#include "core/disk/trace.h"

namespace cairn::worker {
namespace {

// Smaller values are not worth a buffer of the pool.
constexpr std::size_t kPooledPlaceMin = 16 << 10;

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

}  // namespace

// One call of a wave, as `cairn status` shows it.
class RemoteStep::Call {
 public:
  Call(RemoteStep& step, const ShardLink& link, Activity activity)
      : step_(step),
        id_(step.calls_.begin(activity, {link.shard().ps, link.shard().endpoint - 1},
                              step.store_.reactor().now())) {}
  ~Call() { step_.calls_.end(id_, step_.store_.reactor().now()); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  void now(Activity activity) { step_.calls_.set(id_, activity, step_.store_.reactor().now()); }

 private:
  RemoteStep& step_;
  CallsUnderWay::Id id_;
};

RemoteStep::RemoteStep(RemoteStore& store, ActivitySlot* slot)
    : store_(store), routing_(store.routing()), calls_(slot) {}

// The layout may be replaced while a closure is at work. It keeps the one it began with, unless
// that would lead it to another process than its earlier waves.
std::shared_ptr<ShardLink> RemoteStep::link(ShardId shard) {
  const auto& now = store_.routing();
  if (now != routing_ && (!now || shard >= now->layout().shard_count() ||
                          now->shard(shard).epoch != routing_->shard(shard).epoch))
    throw AbortedError(
        str("another process answers for shard ", shard, " since the closure began"));
  return store_.link(shard);
}

// Copies are kept by the numbers of the newest layout; a closure that began with an older one goes
// without them.
PartCache* RemoteStep::parts() const {
  return routing_ == store_.routing() ? &store_.parts() : nullptr;
}

rpc::Task<void> RemoteStep::pull(StepContext step, std::span<Read> reads) {
  const std::vector<ShardRequest> requests = routing_->reads(reads);
  const ReadScatter::MemoryOf memory_of = [this](ShardId shard) -> BlobMemory& {
    return *link(shard);  // the store keeps it
  };
  ReadScatter scatter(*routing_, reads, requests, store_.reactor().buffers(), memory_of);
  if (requests.empty()) co_return;
  const TraceSpan span("pull", step.closure, TraceSpan::Kind::kOverlapping);
  bool failed = false;
  std::vector<kj::Promise<void>> calls;
  for (const ShardRequest& request : requests)
    calls.push_back(pull_one(step, scatter, request, failed).start());
  auto all = join(std::move(calls));
  co_await kj::mv(all);
}

rpc::Task<void> RemoteStep::pull_one(StepContext step, ReadScatter& scatter,
                                     const ShardRequest& request, bool& failed) {
  auto link = this->link(request.shard);
  Call shown(*this, *link, link->connected() ? Activity::kWaitingToPull : Activity::kConnecting);
  if (!link->connected()) co_await link->connect();  // which host it is on decides where blobs go
  shown.now(Activity::kWaitingToPull);
  const rpc::Credit credit = co_await link->acquire_credit(rpc::Way::kIn, request.value_bytes);
  if (failed) co_return;
  shown.now(Activity::kPulling);
  CallOfWave of_wave(failed);
  PullCall call;
  call.step = step;
  call.step.epoch = routing_->shard(request.shard).epoch;
  // Only now, with credit in hand: memory is taken, and copies are looked up, for calls that go.
  const ReadScatter::Copies copies = scatter.ask(request, *link, parts(), call);
  const PullReply reply = co_await link->pull(std::move(call));
  saw(request.shard, *link, reply.version);
  scatter.land(request, copies, reply, parts());
  of_wave.ended_well();
}

// Two waves of one closure must read one shard's rows, not those of two processes of which the
// second may have been restored from a checkpoint.
void RemoteStep::saw(ShardId shard, const ShardLink& link, ShardVersion version) {
  const auto [first, fresh] = pulled_.try_emplace(shard, version);
  if (!fresh && first->second.lineage != version.lineage)
    throw AbortedError(str(link.name(), " was replaced while the closure was at work"));
}

std::shared_ptr<std::byte> RemoteStep::update_place(VariableId variable, std::size_t bytes) {
  Bytes place = shared_place(variable, bytes);
  rpc::BufferPool& pool = store_.reactor().buffers();
  if (place.data == nullptr && pool.registers() && bytes >= kPooledPlaceMin)
    place = pooled_bytes(pool, bytes);
  return {place.owner, place.data};
}

Bytes RemoteStep::shared_place(VariableId variable, std::size_t bytes) {
  const VariableLayout& layout = routing_->variable(variable);
  if (layout.parts.size() != 1 || routing_->encoded(layout.spec->dtype)) return {};
  const auto link = store_.find_link(layout.parts.front().shard);
  return link != nullptr && link->shares(bytes) ? link->take_shared(bytes) : Bytes{};
}

// A closure counts its pushes, so that a shard can tell one that is repeated from the next one.
rpc::Task<void> RemoteStep::push(StepContext step, std::span<Update> updates) {
  std::vector<ShardRequest> requests = routing_->updates(updates);
  step.push_number = pushes_;
  pushes_ += requests.empty() ? 0 : 1;
  co_await push_all(step, updates, std::move(requests));
}

rpc::Task<void> RemoteStep::push_as(StepContext step, std::span<Update> updates,
                                    std::uint32_t number) {
  step.push_number = number;
  co_await push_all(step, updates, routing_->updates(updates));
}

rpc::Task<void> RemoteStep::push_all(StepContext step, std::span<Update> updates,
                                     std::vector<ShardRequest> requests) {
  if (requests.empty()) co_return;
  const TraceSpan span("push", step.closure, TraceSpan::Kind::kOverlapping);
  updated_ = true;
  const UpdateGather gather(*routing_, updates, store_.reactor().buffers());
  bool failed = false;
  std::vector<kj::Promise<void>> calls;
  // A shard's requests stand together. Those that are not slices are the pieces of one push, which
  // the shard applies when it has them all; each slice is applied on its own.
  for (std::size_t begin = 0, end = 0; begin < requests.size(); begin = end) {
    Piece piece{0, 0};
    for (end = begin; end < requests.size() && requests[end].shard == requests[begin].shard; ++end)
      piece.count += requests[end].slice == 0 ? 1 : 0;
    for (std::size_t i = begin; i < end; ++i) {
      const ShardRequest& request = requests[i];
      const bool sliced = request.slice != 0;
      calls.push_back(push_one(step, gather, request, sliced ? Piece() : piece, failed).start());
      piece.number += sliced ? 0 : 1;
    }
  }
  auto all = join(std::move(calls));
  co_await kj::mv(all);
}

// The version that was pulled goes along, by which the shard finds out how stale the update is.
rpc::Task<void> RemoteStep::push_one(StepContext step, const UpdateGather& gather,
                                     const ShardRequest& request, Piece piece, bool& failed) {
  auto link = this->link(request.shard);
  Call shown(*this, *link, link->connected() ? Activity::kWaitingToPush : Activity::kConnecting);
  if (!link->connected()) co_await link->connect();
  shown.now(Activity::kWaitingToPush);
  const rpc::Credit credit = co_await link->acquire_credit(rpc::Way::kOut, request.value_bytes);
  if (failed) co_return;
  shown.now(Activity::kPushing);
  CallOfWave of_wave(failed);
  PushCall call;
  call.step = step;
  call.step.epoch = routing_->shard(request.shard).epoch;
  if (auto seen = pulled_.find(request.shard); seen != pulled_.end()) call.pulled = seen->second;
  gather.fill(request, *link, call);
  call.piece = piece.number;
  call.pieces = piece.count;
  call.slice = request.slice;
  const PushReply reply = co_await link->push(std::move(call));
  staleness_ = std::max(staleness_, reply.staleness);
  of_wave.ended_well();
}

}  // namespace cairn::worker
