#include "collective/local/hierarchical_group.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "collective/local/replicas_here.h"
#include "core/base/error.h"
#include "core/disk/trace.h"

namespace cairn {
namespace {

using Steady = std::chrono::steady_clock;

class HierarchicalMember final : public Collective {
 public:
  HierarchicalMember(std::shared_ptr<ReplicasHere> process, int replica)
      : process_(std::move(process)), replica_(replica) {}
  ~HierarchicalMember() override {
    process_->fail({Code::kUnavailable, str("rank ", rank(), " has left the group")});
  }

  int rank() const override { return process_->rank_of(replica_); }
  int size() const override { return process_->size(); }
  CollectiveCounts counts() const override { return counts_; }

  Ticket begin_all_reduce(std::vector<AllReduceBuffer> reductions) override {
    auto meeting = join({.kind = CallKind::kAllReduce, .reductions = std::move(reductions)});
    begun_.push_back(std::move(meeting));
    return next_ - 1;
  }
  void wait(Ticket ticket) override {
    const TraceSpan span("all_reduce wait");
    CAIRN_CHECK(ticket < next_, "ticket ", ticket, " was not given out by this member");
    while (!begun_.empty() && begun_.front()->number <= ticket) {
      finish(*begun_.front());
      begun_.pop_front();
    }
  }

  Tensor broadcast(const Tensor& value, int root) override {
    return meet({.kind = CallKind::kBroadcast, .root = root, .value = value})->results[0];
  }
  std::vector<Tensor> all_gather(const Tensor& value) override {
    return meet({.kind = CallKind::kAllGather, .value = value})->results;
  }
  Tensor reduce(ReduceOp op, const Tensor& value, int root) override {
    const auto met = meet({.kind = CallKind::kReduce, .root = root, .op = op, .value = value});
    return root == rank() ? met->results[0] : Tensor();
  }
  void barrier() override { meet({.kind = CallKind::kBarrier}); }

  void abort(const ErrorParts& error) override { process_->abort(replica_, error); }
  void when_failed(std::function<void()> act) override { process_->when_failed(std::move(act)); }
  void require_well() override { process_->require_well(); }

 private:
  HierarchicalCallPtr join(CollectiveCall call) {
    const std::uint64_t bytes = own_bytes(call, rank());
    auto meeting = process_->join(replica_, next_, std::move(call));
    ++next_;  // only now: a call that was refused was not made
    counts_.bytes += bytes;
    return meeting;
  }
  HierarchicalCallPtr meet(CollectiveCall call) {
    auto meeting = join(std::move(call));
    finish(*meeting);
    return meeting;
  }
  void finish(const HierarchicalCall& meeting) {
    const TimePoint began = Steady::now();
    const Duration waited = process_->finish(replica_, meeting);
    ++counts_.calls;
    counts_.held_seconds += std::chrono::duration<double>(Steady::now() - began).count();
    counts_.waited_seconds += std::chrono::duration<double>(waited).count();
  }

  const std::shared_ptr<ReplicasHere> process_;
  const int replica_;  // of this process
  Ticket next_ = 0;
  std::deque<HierarchicalCallPtr> begun_;  // all-reduces not waited for
  CollectiveCounts counts_;
};

// The only replica of its process: a member of the processes' group, which it does not own.
class OnlyReplica final : public Collective {
 public:
  explicit OnlyReplica(Collective& processes) : processes_(processes) {}
  int rank() const override { return processes_.rank(); }
  int size() const override { return processes_.size(); }
  Ticket begin_all_reduce(std::vector<AllReduceBuffer> reductions) override {
    return processes_.begin_all_reduce(std::move(reductions));
  }
  void wait(Ticket ticket) override { processes_.wait(ticket); }
  Tensor broadcast(const Tensor& value, int root) override {
    return processes_.broadcast(value, root);
  }
  std::vector<Tensor> all_gather(const Tensor& value) override {
    return processes_.all_gather(value);
  }
  Tensor reduce(ReduceOp op, const Tensor& value, int root) override {
    return processes_.reduce(op, value, root);
  }
  void barrier() override { processes_.barrier(); }
  void abort(const ErrorParts& error) override { processes_.abort(error); }
  void when_failed(std::function<void()> act) override { processes_.when_failed(std::move(act)); }
  void require_well() override { processes_.require_well(); }
  CollectiveCounts counts() const override { return processes_.counts(); }

 private:
  Collective& processes_;
};

}  // namespace

std::vector<std::unique_ptr<Collective>> make_hierarchical_group(Collective& processes,
                                                                 int replicas, Duration timeout) {
  if (replicas < 1)
    throw InvalidArgumentError(str("a process has at least one replica, not ", replicas));
  if (timeout <= Duration(0))
    throw InvalidArgumentError("a group's timeout must be positive: every wait is bounded");
  std::vector<std::unique_ptr<Collective>> members;
  if (replicas == 1) {
    members.push_back(std::make_unique<OnlyReplica>(processes));
    return members;
  }
  // Longer ones would overflow where the system adds them to its clock.
  const Duration bounded = std::min<Duration>(timeout, std::chrono::hours(9000));
  const auto process = std::make_shared<ReplicasHere>(processes, replicas, bounded);
  for (int i = 0; i < replicas; ++i)
    members.push_back(std::make_unique<HierarchicalMember>(process, i));
  return members;
}

}  // namespace cairn
