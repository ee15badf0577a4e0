#include "collective/local/thread_group.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "collective/base/call.h"
#include "collective/base/sum.h"
#include "collective/local/open_meetings.h"
#include "core/base/error.h"
#include "core/disk/trace.h"

namespace cairn {
namespace {

// The number of elements that a waiting member claims at a time: few enough that two members end at
// nearly the same time, enough that a claim, one atomic addition, costs nothing beside the sums.
constexpr std::int64_t kChunkElements = 32 * 1024;

using Steady = std::chrono::steady_clock;

// One call, from the first member that makes it to the last that lets go of it. Fields without a
// note are guarded by the group's mutex until all have joined, and do not change afterwards.
struct Meeting : JoinedCalls {
  using JoinedCalls::JoinedCalls;

  std::vector<std::int64_t> begins;       // of each reduction, in the elements of all of them
  std::int64_t elements = 0;              // of all of them
  std::int64_t chunks = 0;                // of an all-reduce
  std::atomic<std::int64_t> claimed = 0;  // chunks
  std::int64_t summed = 0;                // chunks; guarded by the mutex
  bool ended = false;                     // guarded by the mutex: all that there is to do was done
};

class Group {
 public:
  Group(int size, const ThreadGroupOptions& options) : size_(size), options_(options) {}
  int size() const { return size_; }
  int adds() const { return options_.adds; }

  // Takes part in the call of this number.
  std::shared_ptr<Meeting> join(int rank, std::int64_t number, CollectiveCall call);
  // Returns when all have joined, and, of an all-reduce, all is summed: with this thread's help.
  // How long it took until all had joined.
  Duration finish(int rank, Meeting& meeting);
  // Every later call of every member, and those that wait, fail with this; the first one counts.
  void fail(const ErrorParts& error);
  // The sum, or the mean, of what all have passed to a reduce that all have joined.
  Tensor reduced(const Meeting& meeting) const;
  // Raises that error, if there is one.
  void require_well();
  // After fail(): returns when no thread sums any more.
  void wait_until_still();

 private:
  using Lock = std::unique_lock<std::mutex>;
  void complete(Meeting& meeting);
  void sum_chunks(Meeting& meeting, Lock& lock);
  void sum_chunk(const Meeting& meeting, std::int64_t chunk) const;
  void fail(const ErrorParts& error, const Lock& held);
  [[noreturn]] void raise(Lock& lock);
  std::string late(int rank, const Meeting& meeting) const;

  const int size_;
  const ThreadGroupOptions options_;
  std::mutex mutex_;  // guards what is below, and the meetings
  std::condition_variable changed_;
  OpenMeetings<Meeting> open_;
  int summing_ = 0;  // threads that are in members' memory
  std::optional<ErrorParts> error_;
  std::atomic<bool> failed_ = false;  // the same for a thread that sums
};

std::shared_ptr<Meeting> Group::join(int rank, std::int64_t number, CollectiveCall call) {
  check_call(call, rank, size_);
  Lock lock(mutex_);
  if (error_) raise(lock);
  auto [meeting, differs] = open_.join(rank, 0, number, std::move(call),
                                       [this] { return std::make_shared<Meeting>(size_); });
  if (!differs.empty()) {
    fail({Code::kFailedPrecondition, differs}, lock);
    raise(lock);
  }
  if (meeting->all_joined()) complete(*meeting);
  return meeting;
}

void Group::complete(Meeting& meeting) {
  for (const AllReduceBuffer& each : meeting.calls[0]->reductions) {
    if (lies_on_device(each)) continue;
    meeting.begins.push_back(meeting.elements);
    meeting.elements += each.elements;
  }
  meeting.chunks = (meeting.elements + kChunkElements - 1) / kChunkElements;
  meeting.ended = meeting.chunks == 0;
  changed_.notify_all();
}

Duration Group::finish(int rank, Meeting& meeting) {
  Lock lock(mutex_);
  auto moved_on = [&] { return meeting.ended || meeting.all_joined() || error_; };
  const bool waits = !moved_on();  // else no clock is read
  const TimePoint came = waits ? Steady::now() : TimePoint();
  if (!changed_.wait_for(lock, options_.timeout, moved_on))
    fail({Code::kDeadlineExceeded, late(rank, meeting)}, lock);
  const TimePoint all_there = waits ? Steady::now() : TimePoint();
  const bool adds = options_.adds == ThreadGroupOptions::kAllMembers || options_.adds == rank;
  if (adds && !meeting.ended && !error_) sum_chunks(meeting, lock);
  if (!changed_.wait_for(lock, options_.timeout, [&] { return meeting.ended || error_; }))
    fail({Code::kDeadlineExceeded, late(rank, meeting)}, lock);
  if (!meeting.ended) raise(lock);
  if (waits && tracing()) record_span("wait for the slowest replica", came, all_there, 0);
  return all_there - came;
}

// Members claim chunks instead of having a share each: one that comes late, or whose core does
// something else, then delays no other. Any member computes the same bits of a chunk, because the
// chunk's place in the call's values fixes the order in which the members' are added.
void Group::sum_chunks(Meeting& meeting, Lock& lock) {
  ++summing_;
  lock.unlock();
  std::int64_t summed = 0;
  while (!failed_.load(std::memory_order_relaxed)) {
    const std::int64_t chunk = meeting.claimed.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= meeting.chunks) break;
    sum_chunk(meeting, chunk);
    ++summed;
  }
  lock.lock();
  --summing_;
  // The mutex orders the sums before whatever a member does after its wait().
  meeting.summed += summed;
  if (meeting.summed == meeting.chunks) {
    meeting.ended = true;
    for (auto& call : meeting.calls) call->reductions.clear();  // lets go of their owners
  }
  changed_.notify_all();
}

// A chunk is a range of the elements of all values of the call, one after another.
void Group::sum_chunk(const Meeting& meeting, std::int64_t chunk) const {
  const auto& reductions = meeting.calls[0]->reductions;
  const std::int64_t begin = chunk * kChunkElements, end = begin + kChunkElements;
  const auto behind = std::ranges::upper_bound(meeting.begins, begin);
  std::vector<std::byte*> arrays(meeting.calls.size());
  for (auto i = static_cast<std::size_t>(behind - meeting.begins.begin()) - 1;
       i < reductions.size() && meeting.begins[i] < end; ++i) {
    const AllReduceBuffer& each = reductions[i];
    const std::int64_t from = std::max<std::int64_t>(begin - meeting.begins[i], 0);
    const std::int64_t to = std::min(end - meeting.begins[i], each.elements);
    if (from >= to) continue;
    for (std::size_t rank = 0; rank < arrays.size(); ++rank)
      arrays[rank] = meeting.calls[rank]->reductions[i].values +
                     static_cast<std::size_t>(from) * dtype_bytes(each.dtype);
    reduce_range(options_.order, each.op, each.dtype, arrays,
                 {meeting.begins[i] + from, to - from, meeting.elements});
  }
}

// By rank one copy will do: the others are added to it from where they lie. The other orders
// overwrite what they add up, and these are the members' own values.
Tensor Group::reduced(const Meeting& meeting) const {
  const CollectiveCall& call = *meeting.calls[0];
  Tensor sum = call.value.clone();
  const std::int64_t elements = sum.elements();
  if (options_.order != SumOrder::kRanks) {
    std::vector<Tensor> copies;
    std::vector<std::byte*> arrays{sum.mutable_raw()};
    for (std::size_t rank = 1; rank < meeting.calls.size(); ++rank)
      arrays.push_back(copies.emplace_back(meeting.calls[rank]->value.clone()).mutable_raw());
    reduce_range(options_.order, call.op, sum.dtype(), arrays, {0, elements, elements});
    return sum;
  }
  const auto count = static_cast<std::size_t>(elements);
  for (std::size_t rank = 1; rank < meeting.calls.size(); ++rank)
    add_to(sum.dtype(), sum.mutable_raw(), meeting.calls[rank]->value.raw(), count);
  if (call.op == ReduceOp::kMean) divide_by(static_cast<float>(size_), sum.mutable_raw(), count);
  return sum;
}

void Group::fail(const ErrorParts& error) { fail(error, Lock(mutex_)); }

// The first error is the cause; those that follow are mostly members who were hit by it.
void Group::fail(const ErrorParts& error, const Lock&) {
  if (!error_) error_ = error;
  failed_ = true;
  changed_.notify_all();
}

void Group::require_well() {
  if (Lock lock(mutex_); error_) raise(lock);
}

void Group::wait_until_still() {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return summing_ == 0; });  // as long as a chunk takes
}

// No thread writes to this member's values once the error is out: its buffers may go.
void Group::raise(Lock& lock) {
  changed_.wait(lock, [&] { return summing_ == 0; });
  const ErrorParts error = *error_;
  lock.unlock();
  throw_error(error);
}

std::string Group::late(int rank, const Meeting& meeting) const {
  const auto& own = *meeting.calls[static_cast<std::size_t>(rank)];
  std::string missing;
  for (int other = 0; other < size_; ++other)
    if (!meeting.calls[static_cast<std::size_t>(other)])
      missing += str(missing.empty() ? "" : ", ", other);
  const auto seconds = std::chrono::duration<double>(options_.timeout).count();
  const std::string sum = options_.adds == ThreadGroupOptions::kAllMembers
                              ? "a sum that another member had begun"
                              : str("the sum, which rank ", options_.adds, " makes for all");
  return str("rank ", rank, " waited ", seconds, " s in ", describe(own), " for ",
             missing.empty() ? sum : str("rank ", missing, ", which did not make the call"),
             "; if it only takes longer, give the group a longer timeout");
}

class Member final : public Collective {
 public:
  Member(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}
  ~Member() override {
    group_->fail({Code::kUnavailable, str("rank ", rank_, " has left the group")});
    group_->wait_until_still();
  }

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }
  CollectiveCounts counts() const override { return counts_; }

  Ticket begin_all_reduce(std::vector<AllReduceBuffer> reductions) override {
    auto meeting = join({.kind = CallKind::kAllReduce, .reductions = std::move(reductions)});
    begun_.emplace_back(next_ - 1, std::move(meeting));
    return next_ - 1;
  }

  void wait(Ticket ticket) override {
    const TraceSpan span("all_reduce");
    CAIRN_CHECK(ticket < next_, "ticket ", ticket, " was not given out by this member");
    while (!begun_.empty() && begun_.front().first <= ticket) {
      finish(*begun_.front().second);
      begun_.pop_front();
    }
  }

  // The members of one process get the root's own tensor, not copies of it.
  Tensor broadcast(const Tensor& value, int root) override {
    const auto met = meet({.kind = CallKind::kBroadcast, .root = root, .value = value});
    return met->calls[static_cast<std::size_t>(root)]->value;
  }

  std::vector<Tensor> all_gather(const Tensor& value) override {
    const auto met = meet({.kind = CallKind::kAllGather, .value = value});
    std::vector<Tensor> all;
    for (const auto& call : met->calls) all.push_back(call->value);
    return all;
  }

  // The root alone sums: the others go on as soon as all have come.
  Tensor reduce(ReduceOp op, const Tensor& value, int root) override {
    const auto met = meet({.kind = CallKind::kReduce, .root = root, .op = op, .value = value});
    return root == rank_ ? group_->reduced(*met) : Tensor();
  }

  void barrier() override { meet({.kind = CallKind::kBarrier}); }
  void require_well() override { group_->require_well(); }

  void abort(const ErrorParts& error) override {
    ErrorParts told = error;
    told.message = str("rank ", rank_, " gave up: ", error.message);
    group_->fail(told);
  }

 private:
  std::shared_ptr<Meeting> join(CollectiveCall call) {
    const std::uint64_t bytes = own_bytes(call, rank_);
    auto meeting = group_->join(rank_, next_, std::move(call));
    ++next_;  // only now: a call that was refused was not made
    counts_.bytes += bytes;
    return meeting;
  }
  // One that adds for all does it before it waits for them in another call: where the members'
  // graphs differ, another may wait for the sum before it makes that call.
  std::shared_ptr<Meeting> meet(CollectiveCall call) {
    if (group_->adds() == rank_) wait(next_ - 1);
    auto meeting = join(std::move(call));
    finish(*meeting);
    return meeting;
  }
  void finish(Meeting& meeting) {
    const TimePoint began = Steady::now();
    const Duration waited = group_->finish(rank_, meeting);
    ++counts_.calls;
    counts_.held_seconds += std::chrono::duration<double>(Steady::now() - began).count();
    counts_.waited_seconds += std::chrono::duration<double>(waited).count();
  }

  const std::shared_ptr<Group> group_;
  const int rank_;
  Ticket next_ = 0;
  std::deque<std::pair<Ticket, std::shared_ptr<Meeting>>> begun_;  // all-reduces not waited for
  CollectiveCounts counts_;
};

}  // namespace

std::vector<std::unique_ptr<Collective>> make_thread_group(int size, Duration timeout) {
  return make_thread_group(size, ThreadGroupOptions{.timeout = timeout});
}

std::vector<std::unique_ptr<Collective>> make_thread_group(int size,
                                                           const ThreadGroupOptions& options) {
  if (size < 1) throw InvalidArgumentError(str("a group has at least one member, not ", size));
  if (options.adds != ThreadGroupOptions::kAllMembers && (options.adds < 0 || options.adds >= size))
    throw InvalidArgumentError(str("rank ", options.adds, " is to add for a group of ", size,
                                   " members: it must be one of them, 0 to ", size - 1));
  if (options.timeout <= Duration(0))
    throw InvalidArgumentError("a group's timeout must be positive: every wait is bounded");
  // Longer ones would overflow where the system adds them to its clock.
  ThreadGroupOptions bounded = options;
  bounded.timeout = std::min<Duration>(options.timeout, std::chrono::hours(9000));
  auto group = std::make_shared<Group>(size, bounded);
  std::vector<std::unique_ptr<Collective>> members;
  for (int rank = 0; rank < size; ++rank) members.push_back(std::make_unique<Member>(group, rank));
  return members;
}

}  // namespace cairn
