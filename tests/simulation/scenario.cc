#include "tests/simulation/scenario.h"

#include <algorithm>
#include <sstream>

#include "coordinator/dispatch/hybrid_consistency.h"
#include "core/base/error.h"
#include "tests/simulation/data_service.h"
#include "tests/simulation/draw.h"
#include "tests/simulation/flapping.h"
#include "tests/simulation/replicated.h"
#include "tests/simulation/turnover.h"

namespace cairn::simulation {
namespace {

using Kind = Fault::Kind;
using std::chrono::microseconds;

std::string ms(Duration duration) {
  return cairn::str(static_cast<double>(duration.count()) / 1e6, " ms");
}

bool in_rounds(Mix mix) { return mix == Mix::kSynchronous || mix == Mix::kHybrid; }

std::vector<Kind> kinds_of(Mix mix, const Scenario& scenario) {
  if (mix == Mix::kFlights) return {Kind::kKillWorker};
  std::vector<Kind> kinds{Kind::kKillWorker,    Kind::kKillWorker, Kind::kCut,     Kind::kPartition,
                          Kind::kPartitionBoth, Kind::kDropNext,   Kind::kWallJump};
  if (scenario.workers > 1 && scenario.ps > 1) kinds.push_back(Kind::kZombie);
  if (mix == Mix::kExactlyOnce) return kinds;
  kinds.insert(kinds.end(), {Kind::kKillPs, Kind::kKillPs, Kind::kKillChief});
  if (mix == Mix::kSuccessor) {
    kinds.insert(kinds.end(), {Kind::kKillChief, Kind::kKillChief, Kind::kDiskSlow,
                               Kind::kChiefDiesStarting, Kind::kChiefDiesStarting});
    if (scenario.seed % 2 == 1)
      kinds.insert(kinds.end(), {Kind::kPowerLoss, Kind::kPowerLoss, Kind::kPowerLoss});
    return kinds;
  }
  if (mix == Mix::kBounded || in_rounds(mix))
    kinds.insert(kinds.end(), {Kind::kSlow, Kind::kSlow, Kind::kSlow});
  if (scenario.saves.every > 0)
    kinds.insert(kinds.end(), {Kind::kDiskFull, Kind::kDiskDown, Kind::kDiskSlow});
  return kinds;
}

// Rows of 4 KB make blocks of sixteen rows, so that a checkpoint of a small job meets several of
// them.
constexpr std::int64_t kWideRow = 1024, kPieceRow = 16;

void draw_program(Scenario& scenario, Mix mix) {
  Draw draw(scenario.seed, "program");
  scenario.spread = draw.index(2) == 0 ? Spread::kOneRow : Spread::kEveryShard;
  scenario.updates = draw.index(2) == 0 ? Updates::kAssigned : Updates::kByRule;
  const bool wide = draw.index(2) == 0;
  if (mix == Mix::kEverything) scenario.hashed.dim = wide ? kWideRow : 1;
  // updates of closures that pull nothing are never stale
  if (!scenario.consistency.in_rounds() && scenario.consistency.steps() > 0)
    scenario.updates = Updates::kByRule;
  if (mix == Mix::kSlices) scenario.hashed.dim = wide ? kPieceRow : 1;
  // now and then closures that assign, and so run alone
  if (in_rounds(mix) && draw.index(4) != 0) scenario.updates = Updates::kByRule;
  // a closure has hundreds of rows anyway
  if (mix == Mix::kFlights) scenario.spread = Spread::kOneRow;
}

// Half of the jobs have a shard's memory for a few hashed rows.
void draw_memory(Scenario& scenario) {
  Draw draw(scenario.seed, "memory");
  if (draw.index(2) == 0) scenario.hashed.in_memory = draw.between(1, 8);
}

// With disks so slow that closures run while rows are still to come.
void draw_restore(Scenario& scenario) {
  Draw draw(scenario.seed, "restore");
  scenario.saves.on_demand = draw.index(2) == 0;
  if (scenario.saves.on_demand)
    scenario.delays.disk = draw.time(microseconds(1'000), microseconds(50'000));
}

// Faults strike while there is so much left to do that no worker has ended yet: a worker that is
// started again when the others have ended would wait for them in vain.
Scenario group_scenario(std::uint64_t seed) {
  Draw draw(seed, "scenario of a group");
  Scenario scenario;
  scenario.seed = seed;
  scenario.job = Job::kInStep;
  scenario.ps = 0;
  scenario.workers = static_cast<int>(draw.between(2, 5));
  const bool large = draw.index(6) == 0;
  scenario.wide = large ? draw.between(5'000, 40'000) : draw.between(3, 200);
  scenario.closures = large ? draw.between(40, 60) : draw.between(60, 160);
  scenario.saves.every = draw.between(3, 20);
  scenario.delays.network = draw.time(microseconds(60), microseconds(5'000));
  constexpr Kind kKinds[] = {Kind::kKillWorker, Kind::kKillWorker, Kind::kKillWorker,
                             Kind::kCut,        Kind::kPartition,  Kind::kPartitionBoth,
                             Kind::kDropNext,   Kind::kSlow};
  const std::int64_t faults = draw.between(1, 5);
  for (std::int64_t i = 0; i < faults; ++i) {
    Fault fault{.kind = kKinds[draw.index(std::size(kKinds))]};
    fault.at_closure = draw.between(0, scenario.closures * 3 / 4);
    fault.then = draw.time(microseconds(1), microseconds(1'000));
    fault.lasts = draw.time(microseconds(100), microseconds(4'000'000));
    const int from = draw.index(scenario.workers);
    const int to = (from + 1 + draw.index(scenario.workers - 1)) % scenario.workers;
    fault.a = fault.kind == Kind::kSlow ? 2 + draw.index(8) : from;
    fault.from = cairn::str("worker", from);
    fault.to = cairn::str("worker", to);
    scenario.faults.push_back(fault);
  }
  return scenario;
}

// Faults between the subscriber and a ps, besides the others.
void draw_follower(Scenario& scenario) {
  Draw draw(scenario.seed, "follower's faults");
  scenario.followed = true;
  if (scenario.job != Job::kNumbers) return;
  constexpr Kind kKinds[] = {Kind::kCut, Kind::kPartition, Kind::kPartitionBoth, Kind::kDropNext,
                             Kind::kDropNext};
  for (std::int64_t faults = draw.between(0, 5); faults > 0; --faults) {
    Fault fault = draw_fault(draw, scenario, {kKinds[draw.index(std::size(kKinds))]});
    fault.from = "server";
    fault.to = cairn::str("ps", draw.index(scenario.ps));
    if (draw.index(2) == 0) std::swap(fault.from, fault.to);
    scenario.faults.push_back(fault);
  }
}

// At least one worker is waited for.
void draw_rounds(Scenario& scenario, Draw& draw) {
  scenario.consistency = Consistency::synchronous(
      static_cast<std::uint32_t>(draw.between(0, std::min(2, scenario.workers - 1))));
  scenario.wide = draw.index(3) == 0 ? draw.between(20, 400) : 0;
}

void draw_successor(Scenario& scenario, Draw& draw) {
  scenario.saves.journal = true;
  // A ps counts as lacking a closure if any of its shards does, and each is judged by itself.
  if (scenario.seed % 2 == 1) scenario.shards = 1;
  if (draw.index(3) == 0)
    scenario.consistency = Consistency::bounded(static_cast<std::uint32_t>(draw.between(1, 8)));
}

// A worker has one lane.
void draw_hybrid(Scenario& scenario, Draw& draw) {
  scenario.consistency = HybridConsistency::make();
  scenario.lanes = 1;
  scenario.wide = draw.index(3) == 0 ? draw.between(20, 400) : 0;
}

}  // namespace

Scenario make_scenario(std::uint64_t seed, Mix mix) {
  if (mix == Mix::kGroups) return group_scenario(seed);
  if (mix == Mix::kDataService) return data_service_scenario(seed);
  if (mix == Mix::kFlapping) return flapping_scenario(seed);
  if (mix == Mix::kTurnover) return turnover_scenario(seed);
  if (mix == Mix::kReplicated) return replicated_scenario(seed);
  if (mix == Mix::kFollowed) {
    Scenario scenario =
        seed % 2 == 0 ? turnover_scenario(seed) : make_scenario(seed, Mix::kEverything);
    draw_follower(scenario);
    return scenario;
  }
  Draw draw(seed, "scenario");
  Scenario scenario;
  scenario.seed = seed;
  scenario.ps = static_cast<int>(draw.between(1, 3));
  scenario.workers = static_cast<int>(draw.between(1, 4));
  scenario.shards = static_cast<std::uint32_t>(draw.between(1, 2));
  scenario.lanes = static_cast<std::uint32_t>(draw.between(1, 2));
  scenario.sending.depth = 1u << draw.between(0, 2);
  scenario.sending.window = static_cast<std::uint32_t>(draw.between(1, 16));
  scenario.closures = draw.between(40, 160);
  scenario.rows = draw.between(2, 60);
  scenario.saves.every = draw.between(0, 3) == 0 ? 0 : draw.between(5, 40);
  scenario.delays.network = draw.time(microseconds(60), microseconds(5'000));
  scenario.delays.disk = draw.time(microseconds(10), microseconds(20'000));
  std::int64_t faults = draw.between(0, 6);
  if (mix == Mix::kExactlyOnce) {
    scenario.ps = 2;
    scenario.workers = 4;
    scenario.sending.depth = seed % 2 == 1 ? 1 : 4;
    scenario.closures = 10'000;
    scenario.rows = 1'000;
    faults = draw.between(4, 24);
  } else if (mix == Mix::kFlights) {
    scenario.job = Job::kFlights;
    scenario.workers = 3;
    scenario.lanes = 1;
    scenario.closures = kFlightClosures;
    scenario.rows = kFlightRows;
    faults = draw.between(1, 6);
  }
  if (mix == Mix::kSlices)
    scenario.wide = draw.between(20, 400);
  else if (mix == Mix::kBounded)
    scenario.consistency = Consistency::bounded(static_cast<std::uint32_t>(draw.between(1, 8)));
  else if (mix == Mix::kSynchronous)
    draw_rounds(scenario, draw);
  else if (mix == Mix::kHybrid)
    draw_hybrid(scenario, draw);
  else if (mix == Mix::kSuccessor)
    draw_successor(scenario, draw);
  else if (mix != Mix::kEverything)
    scenario.saves.every = 0;
  draw_program(scenario, mix);
  const std::vector<Kind> kinds = kinds_of(mix, scenario);
  for (std::int64_t i = 0; i < faults; ++i)
    scenario.faults.push_back(draw_fault(draw, scenario, kinds));
  Draw blows(seed, "blow");
  const bool everything = mix == Mix::kEverything || mix == Mix::kSlices || mix == Mix::kBounded ||
                          mix == Mix::kSuccessor || in_rounds(mix);
  Draw saving(seed, "saves");
  scenario.saves.slow = everything && saving.index(2) == 0;
  if (scenario.saves.slow && saving.index(3) == 0) scenario.saves.memory = 1;
  if (everything && saving.index(2) == 0) scenario.saves.full_every = 2 + saving.index(4);
  if (scenario.saves.full_every > 1 && saving.index(2) == 0) {
    scenario.saves.consolidate_after = 1 + saving.index(2);
    scenario.saves.full_every += 20;  // so that chains become long for no other reason
  }
  if (everything || mix == Mix::kExactlyOnce) draw_memory(scenario);
  if (everything) draw_restore(scenario);
  if (everything && blows.index(3) == 0) {
    const std::vector<Fault> blow = draw_blow(blows, scenario);
    scenario.faults.insert(scenario.faults.end(), blow.begin(), blow.end());
  }
  return scenario;
}

namespace {

const char* text_of(Phase phase) {
  switch (phase) {
    case Phase::kAny: break;
    case Phase::kIdle: return ", once nothing is under way";
    case Phase::kPush: return ", once a push is under way";
    case Phase::kCut: return ", once a cut is under way";
    case Phase::kRound: return ", once a round is being applied";
    case Phase::kCatchUp: return ", once a backup catches up";
    case Phase::kTakeOver: return ", once a take-over is under way";
    case Phase::kJournal: return ", once the journal is being written";
    case Phase::kRebuild: return ", once a ps is being rebuilt";
  }
  return "";
}

}  // namespace

std::string Fault::str() const {
  const std::string when =
      cairn::str("after closure ", at_closure, text_of(phase), " and ", ms(then), ": ");
  const std::string while_ = cairn::str(" for ", ms(lasts));
  switch (kind) {
    case Kind::kKillWorker:
      return cairn::str(when, "worker ", a, " is killed, back after ", ms(lasts));
    case Kind::kKillPs: return cairn::str(when, "ps ", a, " is killed, back after ", ms(lasts));
    case Kind::kKillUnheard:
      return cairn::str(when, "no ps hears ps ", a,
                        " any more, which is killed later, and back after ", ms(lasts));
    case Kind::kKillChief:
      return cairn::str(when, "the coordinator is killed, back after ", ms(lasts));
    case Kind::kPowerLoss:
      return cairn::str(when, "the coordinator's machine loses its power, back after ", ms(lasts),
                        "; ", a, " % stay of what the journal has not synced");
    case Kind::kChiefDiesStarting:
      return cairn::str(when, "the coordinator that starts next dies at step ", a, " on the disk");
    case Kind::kCut:
      return cairn::str(when, from, " and ", to, " are cut off from each other", while_);
    case Kind::kPartition:
      return cairn::str(when, "what ", from, " sends to ", to, " does not arrive", while_);
    case Kind::kPartitionBoth:
      return cairn::str(when, "nothing passes between ", from, " and ", to, while_);
    case Kind::kDropNext:
      return cairn::str(when, "the next message from ", from, " to ", to,
                        " is lost with its connection");
    case Kind::kDiskFull: return cairn::str(when, "the disk is full", while_);
    case Kind::kDiskDown:
      return cairn::str(when, "the disk tears the next write and is down", while_);
    case Kind::kDiskSlow: return cairn::str(when, "disks take 50 ms more", while_);
    case Kind::kZombie:
      return cairn::str(when, "the coordinator and worker ", a,
                        " hear nothing of each other, and what it sends to ", to, " is held,",
                        while_, "; what others send there after 900 ms comes later");
    case Kind::kStop: return cairn::str(when, from, " stands still", while_);
    case Kind::kSlow: return cairn::str(when, from, " is ", a, " times slower", while_);
    case Kind::kWallJump: return cairn::str(when, "wall clocks jump by ", a, " s");
  }
  return when;
}

bool Scenario::loses_power() const {
  return std::ranges::any_of(faults,
                             [](const Fault& fault) { return fault.kind == Kind::kPowerLoss; });
}

std::string Scenario::str() const {
  std::ostringstream out;
  out << "seed " << seed << ": " << closures << " closures on " << ps << " ps of " << shards
      << " shards and " << workers << " workers of " << lanes << " lanes, depth " << sending.depth
      << ", window " << sending.window << ", " << consistency.text() << ", " << rows << " rows"
      << (spread == Spread::kEveryShard ? ", one of each shard's per closure, " : ", ")
      << (updates == Updates::kByRule ? "updated by a rule, " : "assigned to, ") << hashed.dim
      << " elements per hashed row, " << wide << " wide, a checkpoint every " << saves.every
      << " steps, network delays up to " << ms(delays.network) << ", disk delays up to "
      << ms(delays.disk);
  if (saves.full_every > 1) out << ", one in " << saves.full_every << " of them full";
  if (saves.consolidate_after > 0)
    out << ", " << saves.consolidate_after << " deltas made full beside the training";
  if (saves.slow) out << ", records saved one by one";
  if (hashed.in_memory > 0) out << ", " << hashed.in_memory << " hashed rows of a shard in memory";
  if (saves.on_demand) out << ", restored on demand";
  if (saves.journal) out << ", with a journal";
  if (copies.any()) out << ", " << copies.replicas << " copies of each shard";
  if (copies.some_lost()) out << ", all of which may be lost at once";
  if (late_variables > 0) out << ", " << late_variables << " variables made on the way";
  if (followed) out << ", followed";
  if (saves.memory > 0) out << ", no row copied aside during saves";
  for (std::size_t i = 0; i < faults.size(); ++i)
    out << "\n  fault " << i << ": " << faults[i].str();
  return out.str();
}

}  // namespace cairn::simulation
