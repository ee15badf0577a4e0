#include "tests/simulation/replicated.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "coordinator/dispatch/hybrid_consistency.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "ps/shard/shard_copy.h"
#include "tests/simulation/draw.h"

namespace cairn::simulation {
namespace {

using Kind = Fault::Kind;
using std::chrono::microseconds;

void draw_consistency(Draw& draw, Scenario& scenario) {
  const int which = draw.index(4);
  if (which == 2)
    scenario.consistency = Consistency::bounded(static_cast<std::uint32_t>(draw.between(1, 8)));
  if (which == 3)
    scenario.consistency = Consistency::synchronous(
        static_cast<std::uint32_t>(draw.between(0, std::min(2, scenario.workers - 1))));
  // Under HybridStrategy a worker has one lane. From a source of its own, so that other scenarios
  // stay what they are.
  if (Draw(scenario.seed, "hybrid").index(5) != 0) return;
  scenario.consistency = HybridConsistency::make();
  scenario.lanes = 1;
}

void draw_program(Draw& draw, Scenario& scenario) {
  scenario.closures = draw.between(100, 300);
  scenario.rows = draw.between(2, 60);
  scenario.wide = draw.index(2) == 0 ? draw.between(20, 400) : 0;
  scenario.hashed.dim = draw.index(2) == 0 ? 16 : 1;
  scenario.spread = draw.index(2) == 0 ? Spread::kOneRow : Spread::kEveryShard;
  scenario.updates = draw.index(4) == 0 ? Updates::kAssigned : Updates::kByRule;
  // Updates of closures that pull nothing are never stale.
  if (!scenario.consistency.in_rounds() && scenario.consistency.steps() > 0)
    scenario.updates = Updates::kByRule;
}

void draw_saves(Draw& draw, Scenario& scenario) {
  const bool in_rounds = scenario.consistency.in_rounds();
  scenario.saves.every = draw.index(4) == 0 ? 0 : draw.between(5, 40);
  scenario.saves.slow = draw.index(2) == 0;
  if (draw.index(2) == 0) scenario.saves.full_every = static_cast<std::size_t>(draw.between(2, 5));
  scenario.saves.on_demand = draw.index(2) == 0;
  // A program that goes on with a journal does not know how many closures its rounds had.
  scenario.saves.journal = draw.index(3) == 0 && !in_rounds;
  scenario.late_variables = draw.index(2) == 0 ? static_cast<int>(draw.between(1, 3)) : 0;
}

std::vector<Kind> kinds_of(const Scenario& scenario) {
  std::vector<Kind> kinds{
      Kind::kKillWorker, Kind::kKillPs,  Kind::kKillPs,      Kind::kKillPs,        Kind::kKillPs,
      Kind::kStop,       Kind::kStop,    Kind::kStop,        Kind::kPartitionBoth, Kind::kPartition,
      Kind::kPartition,  Kind::kCut,     Kind::kKillUnheard, Kind::kKillUnheard,   Kind::kDropNext,
      Kind::kWallJump,   Kind::kDiskSlow};
  if (scenario.workers > 1) kinds.push_back(Kind::kZombie);
  if (scenario.consistency.in_rounds() || scenario.consistency.steps() > 0)
    kinds.push_back(Kind::kSlow);
  if (scenario.saves.journal)
    kinds.insert(kinds.end(), {Kind::kKillChief, Kind::kKillChief, Kind::kChiefDiesStarting});
  else if (scenario.seed % 2 == 0)
    kinds.insert(kinds.end(), {Kind::kKillChief, Kind::kKillChief});
  if (!scenario.saves.journal && scenario.saves.every > 0)
    kinds.insert(kinds.end(), {Kind::kDiskFull, Kind::kDiskDown});
  return kinds;
}

// Two ps at once, or almost.
std::vector<Fault> draw_both(Draw& draw, const Scenario& scenario) {
  Fault fault{.kind = Kind::kKillPs, .at_closure = draw.between(0, scenario.closures - 1)};
  std::vector<Fault> both;
  const int first = draw.index(scenario.ps);
  for (const int ps : {first, (first + 1 + draw.index(scenario.ps - 1)) % scenario.ps}) {
    fault.a = ps;
    fault.then += draw.time(microseconds(1), microseconds(300'000));
    fault.lasts = draw.time(microseconds(100), microseconds(2'000'000));
    both.push_back(fault);
  }
  return both;
}

// A ps, and another one as soon as the first has all rows again: what began before the first death
// meets a primary that has become a copy in between.
std::vector<Fault> draw_in_turn(Draw& draw, const Scenario& scenario) {
  Fault fault{.kind = Kind::kKillPs, .at_closure = draw.between(0, scenario.closures - 1)};
  std::vector<Fault> both;
  for (int i = 0, ps = draw.index(scenario.ps); i < 2; ++i) {
    fault.a = ps;
    fault.lasts = draw.time(microseconds(100), microseconds(20'000));
    both.push_back(fault);
    fault.then += microseconds(1);
    ps = (ps + 1 + draw.index(scenario.ps - 1)) % scenario.ps;
  }
  return both;
}

// Partitions of a ps from the coordinator and from other ps, more than the mixes without copies
// have.
Fault between_servers(Draw& draw, const Scenario& scenario, Fault fault) {
  const int ps = draw.index(scenario.ps);
  fault.from = str("ps", ps);
  fault.to = draw.index(2) == 0 ? "chief"
                                : str("ps", (ps + 1 + draw.index(scenario.ps - 1)) % scenario.ps);
  if (draw.index(2) == 0) std::swap(fault.from, fault.to);
  return fault;
}

bool is_between(Kind kind) {
  return kind == Kind::kCut || kind == Kind::kPartition || kind == Kind::kPartitionBoth ||
         kind == Kind::kDropNext;
}

std::optional<int> ps_named(const std::string& host) {
  if (!host.starts_with("ps")) return std::nullopt;
  return std::stoi(host.substr(2));
}

}  // namespace

Scenario replicated_scenario(std::uint64_t seed) {
  Draw draw(seed, "scenario with replicas");
  Scenario scenario;
  scenario.seed = seed;
  scenario.ps = static_cast<int>(draw.between(2, 4));
  scenario.workers = static_cast<int>(draw.between(1, 4));
  scenario.shards = static_cast<std::uint32_t>(draw.between(1, 3));
  scenario.lanes = static_cast<std::uint32_t>(draw.between(1, 2));
  scenario.sending.depth = 1u << draw.between(0, 2);
  scenario.sending.window = static_cast<std::uint32_t>(draw.between(1, 16));
  scenario.copies.replicas = scenario.ps > 2 && draw.index(4) == 0 ? 3 : 2;
  scenario.copies.all_at_once = draw.index(6) == 0;
  scenario.delays.network = draw.time(microseconds(60), microseconds(5'000));
  scenario.delays.disk = draw.time(microseconds(10), microseconds(20'000));
  draw_consistency(draw, scenario);
  draw_program(draw, scenario);
  draw_saves(draw, scenario);
  // Then pushes wait while a checkpoint is written.
  Draw memory(seed, "memory of saves with replicas");
  if (scenario.saves.slow && memory.index(2) == 0) scenario.saves.memory = 1;
  const std::vector<Kind> kinds = kinds_of(scenario);
  for (std::int64_t faults = draw.between(1, 7); faults > 0; --faults) {
    Fault fault = draw_fault(draw, scenario, kinds);
    if (is_between(fault.kind) && draw.index(2) == 0)
      fault = between_servers(draw, scenario, fault);
    scenario.faults.push_back(fault);
  }
  Draw turns(seed, "deaths in turn");
  if (turns.index(3) == 0) {
    const std::vector<Fault> both = draw_in_turn(turns, scenario);
    scenario.faults.insert(scenario.faults.end(), both.begin(), both.end());
  }
  if (scenario.copies.all_at_once) {
    const std::vector<Fault> both = draw_both(draw, scenario);
    scenario.faults.insert(scenario.faults.end(), both.begin(), both.end());
  }
  return scenario;
}

std::set<int> struck_by(const Fault& fault, const Scenario& scenario) {
  if (fault.kind == Kind::kKillPs) return {fault.a};
  if (fault.kind == Kind::kKillUnheard) {
    std::set<int> all;
    for (int ps = 0; ps < scenario.ps; ++ps) all.insert(ps);
    return all;
  }
  const std::optional<int> from = ps_named(fault.from), to = ps_named(fault.to);
  if (fault.kind == Kind::kStop) return from ? std::set<int>{*from} : std::set<int>{};
  if (!is_between(fault.kind)) return {};
  if (from && to) return {*from, *to};
  if (from && fault.to == "chief") return {*from};
  if (to && fault.from == "chief") return {*to};
  return {};
}

bool in_sync(const std::string& status_json, const Scenario& scenario) {
  const Json status = parse_json(status_json, "the status");
  std::int64_t all = 0;
  for (const Json& ps : status.at("ps")) {
    const auto in_sync = ps.value("in_sync", std::int64_t{0}),
               wanted = ps.value("backups", std::int64_t{0});
    if (in_sync != wanted) return false;
    all += in_sync;
  }
  return all ==
         scenario.ps * static_cast<std::int64_t>(scenario.shards) * (scenario.copies.replicas - 1);
}

namespace {

// The rows of a table that differ from nothing at all, by their numbers.
std::map<std::uint64_t, std::vector<std::byte>> rows_of(const ps::Table& table) {
  const storage::StoredRows rows = table.rows_at({0, table.held()});
  std::map<std::uint64_t, std::vector<std::byte>> all;
  const std::size_t bytes = rows.row_bytes();
  for (std::size_t i = 0; i < rows.offsets.size(); ++i) {
    const std::byte* row = rows.data.data() + i * bytes;
    all.emplace(static_cast<std::uint64_t>(rows.first_row) + rows.offsets[i],
                std::vector<std::byte>(row, row + bytes));
  }
  return all;
}

std::string difference(ps::Table& one, ps::Table& other) {
  const auto rows = rows_of(one), others = rows_of(other);
  for (const auto& [row, bytes] : rows) {
    const auto found = others.find(row);
    if (found == others.end()) return str("row ", row, " is on the primary alone");
    if (found->second != bytes) return str("row ", row, " differs");
  }
  for (const auto& [row, bytes] : others)
    if (!rows.contains(row)) return str("row ", row, " is on the backup alone");
  return one.written() == other.written() ? "" : "the counts of writes differ";
}

std::string difference(ps::Shard& one, ps::Shard& other) {
  const auto tables = ps::ShardCopy(one).tables(), others = ps::ShardCopy(other).tables();
  if (tables.size() != others.size())
    return str(tables.size(), " tables on the primary, ", others.size(), " on the backup");
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (!(tables[i].first == others[i].first)) return "other tables";
    if (std::string wrong = difference(*tables[i].second, *others[i].second); !wrong.empty())
      return str("of '", tables[i].second->spec().name, "' ", wrong);
  }
  return one.version() == other.version() ? "" : "their versions differ";
}

}  // namespace

std::vector<std::string> compare_copies(SimulatedCluster& cluster, const Scenario& scenario) {
  std::vector<std::string> complaints;
  const auto layout = cluster.strategy().host().engine().registry().layout();
  for (std::size_t shard = 0; shard < layout->shards.size(); ++shard) {
    const ShardLayout& one = layout->shards[shard];
    if (one.backups.size() + 1 != scenario.copies.replicas)
      complaints.push_back(str("shard ", shard, " has ", one.backups.size(), " backups in sync"));
    ps::Shard* const primary =
        cluster.ps(static_cast<int>(one.primary.ps)).shard_at(one.primary.endpoint);
    std::set<std::uint32_t> on{one.primary.ps};
    for (const ShardReplica& backup : one.backups) {
      ps::Shard* const copy = cluster.ps(static_cast<int>(backup.ps)).shard_at(backup.endpoint);
      if (!on.insert(backup.ps).second)
        complaints.push_back(str("two copies of shard ", shard, " are on ps ", backup.ps));
      const std::string wrong = primary == nullptr || copy == nullptr ? "there is no such place"
                                                                      : difference(*primary, *copy);
      if (!wrong.empty())
        complaints.push_back(str("shard ", shard, "'s copy on ps ", backup.ps, ", endpoint ",
                                 backup.endpoint, ", is not equal to that on ps ", one.primary.ps,
                                 ", endpoint ", one.primary.endpoint, ": ", wrong));
    }
  }
  return complaints;
}

}  // namespace cairn::simulation
