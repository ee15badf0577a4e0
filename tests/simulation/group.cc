#include "tests/simulation/group.h"

#include <algorithm>

namespace cairn::simulation {
namespace {

using namespace std::chrono_literals;
using rpc::Task;
using Kind = Fault::Kind;

constexpr Duration kNamedWithin = 1s;  // as collective/network/network_group.h promises
// How long after a fault its effects may still be met: a heartbeat's silence and a second.
constexpr Duration kAftermath = 2s;
constexpr Duration kForming = 30s;  // more than faults last
constexpr Duration kPatience = 2min;

std::string host_of(int rank) { return str("worker", rank); }
std::string task_of(int rank) { return str("/job:worker/task:", rank); }

CollectiveCall sum_of(Tensor& values) {
  CollectiveCall call;
  call.kind = CallKind::kAllReduce;
  call.reductions = {
      {ReduceOp::kSum, values.dtype(), values.elements(), values.mutable_raw(), values.owner()}};
  return call;
}

CollectiveCall call_of(CallKind kind, Tensor value = {}) {
  CollectiveCall call;
  call.kind = kind;
  call.value = std::move(value);
  return call;
}

}  // namespace

GroupWorld::GroupWorld(const Scenario& scenario)
    : scenario_(scenario),
      random_(random_key(scenario.seed, "group")),
      network_(reactor_, {.seed = scenario.seed, .delay_max = scenario.delays.network}),
      workers_(static_cast<std::size_t>(scenario.workers)),
      pending_(scenario.faults) {
  for (int rank = 0; rank < size(); ++rank)
    options_.members.push_back(
        {"worker", static_cast<std::uint32_t>(rank), "sim://" + host_of(rank)});
  options_.start_timeout = kForming;
  if (random_.below(2) == 0) options_.communication.bytes_per_pack = 4096;
  if (random_.below(3) == 0)
    options_.communication.implementation = CommunicationImplementation::kRing;
  saved_.values.resize(static_cast<std::size_t>(scenario_.wide));
  expected_[0] = saved_.values;
}

GroupWorld::~GroupWorld() {
  for (Worker& each : workers_) {
    each.lives = nullptr;
    each.group.reset();
  }
}

// ---- a worker ----

void GroupWorld::start(int rank) {
  worker(rank).lives = keep(rank).start().eagerlyEvaluate(nullptr);
}

// Starts a process again, as `cairn up` does, unless others have done the job: then its last
// checkpoint is there, and no other worker to go on with.
Task<void> GroupWorld::keep(int rank) {
  Worker& own = worker(rank);
  for (;;) {
    co_await live(rank);
    if (own.done) co_return;
    if (somebody_is_done()) {
      own.done = true;
      own.step = saved_.step;
      own.values = saved_.values;
      co_return;
    }
    ++verdict_.retried;
    co_await reactor_.sleep(Duration(1'000'000 + random_.below(50'000'000)));
  }
}

Task<void> GroupWorld::live(int rank) {
  Worker& own = worker(rank);
  NetworkGroupOptions options = options_;
  options.rank = rank;
  options.incarnation = own.process = ++processes_;
  std::optional<ErrorParts> error;
  try {
    own.group = std::make_unique<PeerGroup>(reactor_, network_.host(host_of(rank)), options);
    co_await own.group->form();
    own.formed = true;
    co_await restore(rank);
    co_await train(rank);
  } catch (const Error&) {
    error = error_parts(std::current_exception());
  }
  if (error) ended_by(rank, *error);
  own.done = !error;
  own.formed = false;
  if (own.group != nullptr) co_await own.group->leave();
  co_await reactor_.sleep(100us);  // a group is not destroyed from inside one of its promises
  own.group.reset();
  own.process = 0;
}

Task<void> GroupWorld::restore(int rank) {
  Worker& own = worker(rank);
  Values told{saved_.step};
  told.insert(told.end(), saved_.values.begin(), saved_.values.end());
  CollectiveCall call = call_of(CallKind::kBroadcast);
  if (rank == 0)
    call.value = Tensor::of<std::int64_t>({static_cast<std::int64_t>(told.size())}, told);
  const std::vector<Tensor> came = co_await own.group->run(std::move(call));
  const auto values = came.at(0).values<std::int64_t>();
  own.step = values[0];
  own.values.assign(values.begin() + 1, values.end());
}

// Two all-reduces are under way at a time, as the gradients of two layers are.
Task<void> GroupWorld::train(int rank) {
  Worker& own = worker(rank);
  const std::int64_t middle = scenario_.wide / 3;
  while (own.step < scenario_.closures) {
    Tensor first = share(rank, own.step, 0, middle);
    Tensor second = share(rank, own.step, middle, scenario_.wide);
    CollectiveCall one = sum_of(first), other = sum_of(second);
    auto begun = own.group->run(std::move(one)), begun_too = own.group->run(std::move(other));
    co_await kj::mv(begun);
    co_await kj::mv(begun_too);
    std::size_t i = 0;
    for (const Tensor& sum : {first, second})
      for (const std::int64_t value : sum.values<std::int64_t>()) own.values[i++] += value;
    progressed(++own.step);
    if (own.step % scenario_.saves.every == 0 || own.step == scenario_.closures)
      co_await save(rank);
  }
}

// As MultiWorkerMirroredStrategy::save(): all have ended the step, the chief writes, all hear it.
Task<void> GroupWorld::save(int rank) {
  Worker& own = worker(rank);
  CollectiveCall meet = call_of(CallKind::kBarrier);
  co_await own.group->run(std::move(meet));
  judge_values(rank, "at a checkpoint");
  if (rank == 0) {
    co_await reactor_.sleep(Duration(random_.below(3'000'000)));
    for (int other = 0; other < size(); ++other)
      if (worker(other).formed && worker(other).step != own.step)
        complain(str("the checkpoint of step ", own.step, " was written with worker ", other,
                     " at step ", worker(other).step));
    saved_ = {own.step, own.values};
    ++verdict_.checkpoints;
  }
  CollectiveCall told = call_of(CallKind::kBroadcast);
  if (rank == 0) told.value = Tensor::of<std::int64_t>({1}, Values{own.step});
  const std::vector<Tensor> heard = co_await own.group->run(std::move(told));
  if (heard.at(0).values<std::int64_t>()[0] != own.step)
    complain(str("worker ", rank, " at step ", own.step, " hears of a checkpoint of another step"));
}

Tensor GroupWorld::share(int rank, std::int64_t step, std::int64_t begin, std::int64_t end) const {
  Tensor made(DType::kInt64, {end - begin});
  const auto values = made.mutable_values<std::int64_t>();
  for (std::int64_t i = begin; i < end; ++i)
    values[static_cast<std::size_t>(i - begin)] = (step * 31 + rank * 7 + i) % 97;
  return made;
}

// ---- faults ----

void GroupWorld::progressed(std::int64_t step) {
  furthest_ = std::max(furthest_, step);
  for (std::size_t i = 0; i < pending_.size();) {
    if (pending_[i].at_closure > furthest_) {
      ++i;
      continue;
    }
    const Fault fault = pending_[i];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    later(fault.then, [this, fault] { strike(fault); });
  }
}

void GroupWorld::later(Duration delay, std::function<void()> work) {
  quiet_after_ = std::max(quiet_after_, reactor_.now() + delay);
  reactor_.schedule(delay, [this, work = std::move(work)] {
    if (!ended_) work();
  });
}

void GroupWorld::strike(const Fault& fault) {
  if (fault.kind == Kind::kKillWorker) return kill(fault.a, fault.lasts);
  if (fault.kind == Kind::kSlow) {
    network_.slow(fault.from, fault.a);
    return later(fault.lasts, [this, fault] { network_.slow(fault.from, 1); });
  }
  switch (fault.kind) {
    case Kind::kCut: network_.cut(fault.from, fault.to); break;
    case Kind::kPartition: network_.partition(fault.from, fault.to); break;
    case Kind::kPartitionBoth: network_.partition_both(fault.from, fault.to); break;
    default: network_.drop_next(fault.from, fault.to);
  }
  // Each end may be the one that the other misses.
  for (int rank = 0; rank < size(); ++rank)
    if (fault.from == host_of(rank) || fault.to == host_of(rank)) suspect(rank, fault.lasts);
  disturbed_until_ = std::max(disturbed_until_, reactor_.now() + fault.lasts + kAftermath);
  later(fault.lasts, [this, fault] { network_.heal(fault.from, fault.to); });
}

void GroupWorld::kill(int rank, Duration away) {
  Worker& victim = worker(rank);
  if (victim.group == nullptr || victim.done) return;
  ++verdict_.losses;
  // Where nothing else is wrong, who was in the group with it has to know within a second.
  if (victim.formed && reactor_.now() >= disturbed_until_)
    for (int other = 0; other < size(); ++other)
      if (other != rank && worker(other).formed)
        later(kNamedWithin, [this, rank, other, process = worker(other).process] {
          if (worker(other).process == process && worker(other).formed)
            complain(str("worker ", other, " has not noticed for a second that worker ", rank,
                         " was killed"));
        });
  suspect(rank, kNamedWithin);
  network_.crash(host_of(rank));
  victim.lives = nullptr;
  victim.group.reset();
  victim.formed = false;
  victim.process = 0;
  later(away, [this, rank] { start(rank); });
}

// ---- the judge ----

void GroupWorld::suspect(int rank, Duration from_now) {
  Duration& until = suspects_[rank];
  until = std::max(until, reactor_.now() + from_now + kAftermath);
}

// A group that forms may meet one that goes again, and form anew. One that stood ends only because
// a worker was lost, and names that worker: not one that only heard of the loss sooner.
void GroupWorld::ended_by(int rank, const ErrorParts& error) {
  const std::string told = str("worker ", rank, " ended with ", code_name(error.code), ": ",
                               error.message, " (raised by ", error.task, ")");
  const bool formed = worker(rank).formed;
  if (error.code == Code::kDeadlineExceeded && !formed && somebody_is_done()) return;
  if (error.code != Code::kUnavailable) return complain(told);
  if (!formed) return;
  for (const auto& [suspected, until] : suspects_)
    if (until >= reactor_.now() && error.task == task_of(suspected)) return;
  complain(str(told, ", who was not lost"));
}

void GroupWorld::judge_values(int rank, const char* when) {
  const Worker& one = worker(rank);
  const Values& wanted = expected(one.step);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (one.values.at(i) != wanted[i])
      return complain(str("worker ", rank, " ", when, " of step ", one.step, ": value ", i, " is ",
                          one.values[i], ", and ", wanted[i], " is what all updates come to"));
}

const GroupWorld::Values& GroupWorld::expected(std::int64_t step) {
  auto last = std::prev(expected_.upper_bound(step));
  if (last->first == step) return last->second;
  Values sums = last->second;
  for (std::int64_t s = last->first; s < step; ++s)
    for (int rank = 0; rank < size(); ++rank) {
      const Tensor one = share(rank, s, 0, scenario_.wide);
      const auto values = one.values<std::int64_t>();
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
    }
  return expected_[step] = std::move(sums);
}

bool GroupWorld::somebody_is_done() const {
  return std::ranges::any_of(workers_, [](const Worker& each) { return each.done; });
}

Verdict GroupWorld::run() {
  for (int rank = 0; rank < size(); ++rank) start(rank);
  const auto all_done = [this] {
    return std::ranges::all_of(workers_, [](const Worker& each) { return each.done; });
  };
  while (!all_done() && reactor_.now() < quiet_after_ + kPatience) reactor_.advance(10ms);
  ended_ = true;
  for (int rank = 0; rank < size(); ++rank) {
    const Worker& each = worker(rank);
    if (!each.done)
      complain(str("worker ", rank, " waits for ever, ", each.formed ? "in" : "for",
                   " its group, at step ", each.step));
    else if (each.step != scenario_.closures)
      complain(str("worker ", rank, " has done its job at step ", each.step));
    else
      judge_values(rank, "at the end");
  }
  verdict_.fingerprint = network_.fingerprint();
  verdict_.virtual_seconds = std::chrono::duration<double>(reactor_.now()).count();
  return verdict_;
}

}  // namespace cairn::simulation
