#include "collective/local/replicas_here.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collective/base/sum.h"
#include "core/disk/trace.h"

namespace cairn {
namespace {

using Steady = std::chrono::steady_clock;

// So many elements of the first replica stay in its core's cache while the others' are added.
constexpr std::int64_t kBlockElements = 4 * 1024;

}  // namespace

ReplicasHere::ReplicasHere(Collective& processes, int replicas, Duration timeout)
    : processes_(processes), replicas_(replicas), timeout_(timeout), thread_([this] {
        pthread_setname_np(pthread_self(), "replicas meet");
        work();
      }) {}

ReplicasHere::~ReplicasHere() {
  {
    std::lock_guard hold(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

HierarchicalCallPtr ReplicasHere::join(int replica, std::int64_t number, CollectiveCall call) {
  const int rank = rank_of(replica);
  check_call(call, rank, size());
  Lock lock(mutex_);
  if (error_) raise(lock);
  auto [meeting, differs] = open_.join(replica, rank_of(0), number, std::move(call), [&] {
    return std::make_shared<HierarchicalCall>(number, replicas_);
  });
  if (!differs.empty()) {
    fail({Code::kFailedPrecondition, differs}, lock);
    raise(lock);
  }
  if (meeting->all_joined()) {
    complete_.push_back(meeting);
    changed_.notify_all();
  }
  return meeting;
}

// Once all have joined, the wait is bounded by the timeout of the processes' group.
Duration ReplicasHere::finish(int replica, const HierarchicalCall& meeting) {
  Lock lock(mutex_);
  const TimePoint came = Steady::now();
  if (meeting.number > wanted_) {
    wanted_ = meeting.number;
    changed_.notify_all();
  }
  if (!changed_.wait_for(lock, timeout_, [&] { return meeting.all_joined() || error_; }))
    fail({Code::kDeadlineExceeded, late(replica, meeting)}, lock);
  changed_.wait(lock, [&] { return meeting.ended || error_; });
  if (!meeting.ended) raise(lock);
  const TimePoint ended = Steady::now(), met = std::clamp(meeting.met, came, ended);
  if (tracing() && met > came) record_span("wait for the slowest replica", came, met, 0);
  return met - came;
}

void ReplicasHere::fail(const ErrorParts& error) { fail(error, error, Lock(mutex_)); }

// The first error is the cause; those that follow are mostly members who were hit by it.
void ReplicasHere::fail(const ErrorParts& error, const ErrorParts& told, const Lock&) {
  if (!error_) {
    error_ = error;
    told_ = told;
  }
  changed_.notify_all();
}

void ReplicasHere::abort(int replica, const ErrorParts& error) {
  const int rank = rank_of(replica);
  const auto from = [&](const std::string& who) {
    return ErrorParts{error.code, who + error.message, error.task, {}, error.not_finite};
  };
  const ErrorParts told = from(str("its replica ", rank, ": "));
  fail(from(str("rank ", rank, " gave up: ")), told, Lock(mutex_));
  processes_.abort(told);
}

void ReplicasHere::require_well() {
  if (Lock lock(mutex_); error_) raise(lock);
  try {
    processes_.require_well();
  } catch (...) {
    fail(error_parts(std::current_exception()));
    throw;
  }
}

// A call that cannot be made here will be missed by the other processes.
void ReplicasHere::raise(Lock& lock) {
  const ErrorParts error = *error_, told = told_;
  lock.unlock();
  processes_.abort(told);
  throw_error(error);
}

std::string ReplicasHere::late(int replica, const HierarchicalCall& meeting) const {
  const auto& own = *meeting.calls[static_cast<std::size_t>(replica)];
  std::string missing;
  for (int other = 0; other < replicas_; ++other)
    if (!meeting.calls[static_cast<std::size_t>(other)])
      missing += str(missing.empty() ? "" : ", ", rank_of(other));
  const auto seconds = std::chrono::duration<double>(timeout_).count();
  return str("rank ", rank_of(replica), " waited ", seconds, " s in ", describe(own), " for rank ",
             missing,
             ", which did not make the call; if it only takes longer, give the group a longer "
             "timeout");
}

// ---- the group's thread ----

// Complete calls are begun before any of them is waited for: the processes then sum the later
// values while the earlier ones are under way. All-reduces are waited for when a replica does,
// since this thread could begin nothing meanwhile.
void ReplicasHere::work() {
  Lock lock(mutex_);
  for (;;) {
    auto settles = [&] { return !under_way_.empty() && under_way_.front()->number <= wanted_; };
    changed_.wait(lock, [&] { return stopped_ || error_ || !complete_.empty() || settles(); });
    if (stopped_ || error_) break;
    const bool begins = !complete_.empty();
    const HierarchicalCallPtr meeting = begins ? complete_.front() : under_way_.front();
    (begins ? complete_ : under_way_).pop_front();
    lock.unlock();
    std::optional<ErrorParts> error;
    try {
      begins ? begin(meeting) : settle(*meeting);
    } catch (...) {
      error = error_parts(std::current_exception());
    }
    lock.lock();
    if (error) fail(*error, lock);
  }
  open_.clear();
  complete_.clear();
  under_way_.clear();
}

void ReplicasHere::begin(const HierarchicalCallPtr& meeting) {
  switch (meeting->calls[0]->kind) {
    case CallKind::kAllReduce:
      add_up(*meeting);
      under_way_.push_back(meeting);
      return;
    case CallKind::kBroadcast: broadcast(*meeting); break;
    case CallKind::kAllGather: all_gather(*meeting); break;
    case CallKind::kReduce: reduce(*meeting); break;
    case CallKind::kBarrier: among_processes(*meeting, [&] { processes_.barrier(); }); break;
  }
  end(*meeting);
}

void ReplicasHere::settle(HierarchicalCall& meeting) {
  among_processes(meeting, [&] { processes_.wait(meeting.ticket); });
  hand_out(meeting);
  end(meeting);
}

// Owners are released before a replica can see the end.
void ReplicasHere::end(HierarchicalCall& meeting) {
  for (auto& call : meeting.calls) call->reductions.clear();
  {
    std::lock_guard hold(mutex_);
    meeting.ended = true;
  }
  changed_.notify_all();
}

// When the processes met is known from how long their group says that this thread waited.
template <typename Calls>
void ReplicasHere::among_processes(HierarchicalCall& meeting, const Calls& calls) {
  const TimePoint began = Steady::now();
  const double before = processes_.counts().waited_seconds;
  calls();
  const std::chrono::duration<double> waited(processes_.counts().waited_seconds - before);
  meeting.met = began + std::chrono::duration_cast<Duration>(waited);
}

void ReplicasHere::broadcast(HierarchicalCall& meeting) {
  const int root = meeting.calls[0]->root;
  const auto at_root = static_cast<std::size_t>(root % replicas_);
  among_processes(meeting, [&] {
    meeting.results = {processes_.broadcast(meeting.calls[at_root]->value, root / replicas_)};
  });
}

// Shapes and dtypes may differ, so that values of several replicas do not fit into one.
void ReplicasHere::all_gather(HierarchicalCall& meeting) {
  meeting.results.resize(static_cast<std::size_t>(size()));
  among_processes(meeting, [&] {
    for (int i = 0; i < replicas_; ++i) {
      const auto& own = meeting.calls[static_cast<std::size_t>(i)]->value;
      const std::vector<Tensor> all = processes_.all_gather(own);
      for (std::size_t process = 0; process < all.size(); ++process)
        meeting
            .results[process * static_cast<std::size_t>(replicas_) + static_cast<std::size_t>(i)] =
            all[process];
    }
  });
}

void ReplicasHere::reduce(HierarchicalCall& meeting) {
  const CollectiveCall& call = *meeting.calls[0];
  Tensor sum = call.value.clone();
  const auto elements = static_cast<std::size_t>(sum.elements());
  for (std::size_t i = 1; i < meeting.calls.size(); ++i)
    add_to(sum.dtype(), sum.mutable_raw(), meeting.calls[i]->value.raw(), elements);
  among_processes(meeting,
                  [&] { sum = processes_.reduce(ReduceOp::kSum, sum, call.root / replicas_); });
  if (!sum.defined()) return;
  if (call.op == ReduceOp::kMean) {
    sum = sum.clone();
    divide_by(static_cast<float>(size()), sum.mutable_raw(), elements);
  }
  meeting.results = {std::move(sum)};
}

// In the memory of the first replica, which the processes sum then. A mean is divided once, at the
// end, by the number of all replicas.
void ReplicasHere::add_up(HierarchicalCall& meeting) {
  std::vector<AllReduceBuffer> sums = meeting.calls[0]->reductions;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    AllReduceBuffer& sum = sums[k];
    sum.op = ReduceOp::kSum;
    if (lies_on_device(sum)) continue;
    for (std::int64_t begin = 0; begin < sum.elements; begin += kBlockElements) {
      const auto count = static_cast<std::size_t>(std::min(kBlockElements, sum.elements - begin));
      const std::size_t offset = static_cast<std::size_t>(begin) * dtype_bytes(sum.dtype);
      for (std::size_t i = 1; i < meeting.calls.size(); ++i)
        add_to(sum.dtype, sum.values + offset, meeting.calls[i]->reductions[k].values + offset,
               count);
    }
  }
  meeting.ticket = processes_.begin_all_reduce(std::move(sums));
}

void ReplicasHere::hand_out(HierarchicalCall& meeting) {
  const auto& sums = meeting.calls[0]->reductions;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    if (sums[k].elements == 0 || lies_on_device(sums[k])) continue;
    const auto elements = static_cast<std::size_t>(sums[k].elements);
    if (sums[k].op == ReduceOp::kMean)
      divide_by(static_cast<float>(size()), sums[k].values, elements);
    for (std::size_t i = 1; i < meeting.calls.size(); ++i)
      std::memcpy(meeting.calls[i]->reductions[k].values, sums[k].values,
                  elements * dtype_bytes(sums[k].dtype));
  }
}

}  // namespace cairn
