#include "tests/simulation/matrix.h"

#include <map>
#include <utility>

#include "coordinator/dispatch/hybrid_consistency.h"
#include "core/base/error.h"
#include "tests/simulation/draw.h"

namespace cairn::simulation {
namespace {

using Kind = Fault::Kind;
using std::chrono::microseconds;

constexpr std::pair<MatrixFault, const char*> kFaults[] = {
    {MatrixFault::kPsDies, "ps-dies"},
    {MatrixFault::kPsStaysAway, "ps-stays-away"},
    {MatrixFault::kPsStops, "ps-stops"},
    {MatrixFault::kPsCutOff, "ps-cut-off"},
    {MatrixFault::kPsCutOffOneWay, "ps-cut-off-one-way"},
    {MatrixFault::kTwoPsCutOff, "two-ps-cut-off"},
    {MatrixFault::kTwoPsCutOffOneWay, "two-ps-cut-off-one-way"},
    {MatrixFault::kWorkerDies, "worker-dies"},
    {MatrixFault::kWorkerZombie, "worker-zombie"},
    {MatrixFault::kConnectionBreaks, "connection-breaks"},
    {MatrixFault::kCoordinatorDies, "coordinator-dies"},
    {MatrixFault::kPowerLoss, "power-loss"},
};

constexpr std::pair<Phase, const char*> kPhases[] = {
    {Phase::kIdle, "idle"},       {Phase::kPush, "push"},           {Phase::kCut, "cut"},
    {Phase::kRound, "round"},     {Phase::kCatchUp, "catching-up"}, {Phase::kTakeOver, "take-over"},
    {Phase::kJournal, "journal"}, {Phase::kRebuild, "rebuild"},
};

constexpr std::pair<MatrixKind, const char*> kKinds[] = {
    {MatrixKind::kAsynchronous, "asynchronous"},
    {MatrixKind::kBounded, "bounded"},
    {MatrixKind::kSynchronous, "synchronous"},
    {MatrixKind::kSynchronousB, "synchronous-b"},
    {MatrixKind::kHybrid, "hybrid"},
};

template <typename Key, std::size_t kSize>
const char* name_in(const std::pair<Key, const char*> (&names)[kSize], Key key) {
  for (const auto& [one, name] : names)
    if (one == key) return name;
  return "";
}

bool is_in_rounds(MatrixKind kind) {
  return kind != MatrixKind::kAsynchronous && kind != MatrixKind::kBounded;
}

bool of_coordinator(MatrixFault fault) {
  return fault == MatrixFault::kCoordinatorDies || fault == MatrixFault::kPowerLoss;
}

void draw_cluster(Draw& draw, const Cell& cell, Scenario& scenario) {
  const bool two_workers =
      cell.kind == MatrixKind::kSynchronousB || cell.fault == MatrixFault::kWorkerZombie;
  scenario.ps = static_cast<int>(draw.between(2, 3));
  scenario.workers = static_cast<int>(draw.between(two_workers ? 2 : 1, 3));
  // Where power is lost a ps counts as lacking a closure if any of its shards does, and each is
  // judged by itself.
  scenario.shards =
      cell.fault == MatrixFault::kPowerLoss ? 1 : static_cast<std::uint32_t>(draw.between(1, 2));
  scenario.lanes =
      cell.kind == MatrixKind::kHybrid ? 1 : static_cast<std::uint32_t>(draw.between(1, 2));
  scenario.sending.depth = 1u << draw.between(0, 2);
  scenario.sending.window = static_cast<std::uint32_t>(draw.between(1, 16));
  scenario.copies.replicas = 2;
  scenario.copies.all_at_once = cell.phase == Phase::kRebuild;
  scenario.delays.network = draw.time(microseconds(100), microseconds(3'000));
  scenario.delays.disk = draw.time(microseconds(10), microseconds(10'000));
}

Consistency draw_consistency(Draw& draw, MatrixKind kind, int workers) {
  switch (kind) {
    case MatrixKind::kAsynchronous: return {};
    case MatrixKind::kBounded:
      return Consistency::bounded(static_cast<std::uint32_t>(draw.between(1, 8)));
    case MatrixKind::kSynchronous: return Consistency::synchronous(0);
    case MatrixKind::kSynchronousB:
      return Consistency::synchronous(static_cast<std::uint32_t>(draw.between(1, workers - 1)));
    case MatrixKind::kHybrid: return HybridConsistency::make();
  }
  return {};
}

void draw_job(Draw& draw, const Cell& cell, Scenario& scenario) {
  scenario.closures = draw.between(24, 48);
  scenario.rows = draw.between(2, 40);
  scenario.wide = draw.index(2) == 0 ? draw.between(20, 100) : 0;
  scenario.hashed.dim = draw.index(2) == 0 ? 16 : 1;
  scenario.spread = draw.index(2) == 0 ? Spread::kOneRow : Spread::kEveryShard;
  // Updates of closures that pull nothing are never stale, and are of no round.
  const bool assigned = cell.kind == MatrixKind::kAsynchronous && draw.index(4) == 0;
  scenario.updates = assigned ? Updates::kAssigned : Updates::kByRule;
  if (cell.phase == Phase::kCut)
    scenario.saves.every = is_in_rounds(cell.kind) ? draw.between(1, 3) : draw.between(4, 10);
  else if (cell.phase == Phase::kRebuild || draw.index(4) == 0)
    scenario.saves.every = draw.between(4, 16);
  scenario.saves.slow = draw.index(2) == 0;
  if (draw.index(3) == 0) scenario.saves.full_every = static_cast<std::size_t>(draw.between(2, 4));
  scenario.saves.on_demand = draw.index(2) == 0;
  scenario.saves.journal =
      of_coordinator(cell.fault) || cell.phase == Phase::kJournal || draw.index(4) == 0;
}

// Which processes the fault strikes, and for how long.
Fault draw_strike(Draw& draw, const Cell& cell, const Scenario& scenario) {
  const int ps = draw.index(scenario.ps), worker = draw.index(scenario.workers);
  const int other = (ps + 1 + draw.index(scenario.ps - 1)) % scenario.ps;
  const std::string name = str("ps", ps);
  const Duration short_while = draw.time(microseconds(100), microseconds(50'000)),
                 long_while = draw.time(microseconds(800'000), microseconds(2'000'000));
  Fault fault{.kind = Kind::kKillPs, .a = ps, .lasts = short_while};
  const auto between = [&](Kind kind, std::string from, std::string to) {
    if (draw.index(2) == 0) std::swap(from, to);
    fault = {.kind = kind, .from = std::move(from), .to = std::move(to), .lasts = long_while};
  };
  switch (cell.fault) {
    case MatrixFault::kPsDies: break;
    case MatrixFault::kPsStaysAway: fault.lasts = long_while; break;
    case MatrixFault::kPsStops:
      fault = {.kind = Kind::kStop, .from = name, .lasts = long_while};
      break;
    case MatrixFault::kPsCutOff: between(Kind::kPartitionBoth, name, "chief"); break;
    case MatrixFault::kPsCutOffOneWay: between(Kind::kPartition, name, "chief"); break;
    case MatrixFault::kTwoPsCutOff: between(Kind::kPartitionBoth, name, str("ps", other)); break;
    case MatrixFault::kTwoPsCutOffOneWay: between(Kind::kPartition, name, str("ps", other)); break;
    case MatrixFault::kWorkerDies:
      fault = {.kind = Kind::kKillWorker, .a = worker, .lasts = short_while};
      break;
    case MatrixFault::kWorkerZombie:
      fault = {.kind = Kind::kZombie, .a = worker, .to = name};
      fault.lasts = draw.time(microseconds(1'300'000), microseconds(2'500'000));
      break;
    case MatrixFault::kConnectionBreaks:
      between(Kind::kCut, str("worker", worker), name);
      fault.lasts = short_while;
      break;
    case MatrixFault::kCoordinatorDies:
      fault = {.kind = Kind::kKillChief, .lasts = short_while};
      break;
    case MatrixFault::kPowerLoss:
      fault = {.kind = Kind::kPowerLoss, .lasts = short_while};
      fault.a = draw.index(3) == 0 ? 0 : draw.index(101);
      break;
  }
  return fault;
}

Fault death_of(int ps, Phase phase, Duration then, Duration lasts) {
  return {.kind = Kind::kKillPs, .a = ps, .then = then, .lasts = lasts, .phase = phase};
}

// Faults that bring the phase about. As long as backups take over or catch up, no other ps may die
// than the one that did: the others have the only copies of some shards.
std::vector<Fault> draw_before(Draw& draw, const Cell& cell, const Scenario& scenario,
                               const Fault& strike) {
  const bool dies = cell.fault == MatrixFault::kPsDies || cell.fault == MatrixFault::kPsStaysAway;
  const int ps = dies ? strike.a : draw.index(scenario.ps);
  const Duration then = draw.time(microseconds(1), microseconds(1'000));
  const auto begin = draw.index(3) == 0 ? Phase::kIdle : Phase::kPush;
  if (cell.phase == Phase::kCatchUp)
    return {death_of(ps, begin, then, draw.time(microseconds(100), microseconds(100'000)))};
  if (cell.phase == Phase::kTakeOver)
    return {death_of(
        ps, begin, then,
        dies ? Duration(microseconds(1)) : draw.time(microseconds(100), microseconds(1'000'000)))};
  if (cell.phase != Phase::kRebuild) return {};
  std::vector<Fault> deaths{
      death_of(ps, begin, then, draw.time(microseconds(100), microseconds(20'000)))};
  const bool all = draw.index(2) == 0;
  for (int i = 1; i < (all ? scenario.ps : 2); ++i)
    deaths.push_back(death_of((ps + i) % scenario.ps, Phase::kTakeOver, microseconds(1),
                              draw.time(microseconds(100), microseconds(20'000))));
  return deaths;
}

}  // namespace

std::string Cell::row() const { return str(name_in(kFaults, fault), "/", name_in(kPhases, phase)); }
std::string Cell::name() const { return str(row(), "/", name_in(kKinds, kind)); }

Promise Cell::promise() const {
  return phase == Phase::kRebuild || fault == MatrixFault::kPowerLoss ? Promise::kCounted
                                                                      : Promise::kNoUpdate;
}

std::vector<Cell> matrix_cells() {
  std::vector<Cell> cells;
  for (const auto& [fault, fault_name] : kFaults)
    for (const auto& [phase, phase_name] : kPhases)
      for (const auto& [kind, kind_name] : kKinds)
        if (phase != Phase::kRound || is_in_rounds(kind)) cells.push_back({fault, phase, kind});
  return cells;
}

std::vector<std::string> matrix_faults() {
  std::vector<std::string> names;
  for (const auto& [fault, name] : kFaults) names.emplace_back(name);
  return names;
}

std::vector<std::string> matrix_kinds() {
  std::vector<std::string> names;
  for (const auto& [kind, name] : kKinds) names.emplace_back(name);
  return names;
}

std::vector<Cell> cells_named(const std::string& name) {
  std::vector<Cell> cells;
  for (const Cell& cell : matrix_cells())
    if ((cell.name() + "/").starts_with(name + "/")) cells.push_back(cell);
  return cells;
}

Scenario cell_scenario(const Cell& cell, std::uint64_t seed) {
  Draw draw(seed, cell.name().c_str());
  Scenario scenario;
  scenario.seed = seed;
  draw_cluster(draw, cell, scenario);
  scenario.consistency = draw_consistency(draw, cell.kind, scenario.workers);
  draw_job(draw, cell, scenario);
  Fault strike = draw_strike(draw, cell, scenario);
  strike.phase = cell.phase;
  strike.then = draw.time(microseconds(1), scenario.delays.network);
  scenario.faults = draw_before(draw, cell, scenario, strike);
  scenario.faults.push_back(strike);
  const std::int64_t at = draw.between(4, 12);
  for (Fault& fault : scenario.faults) fault.at_closure = at;
  return scenario;
}

std::string planted_bug(const std::string& row) {
  static const std::map<std::string, std::string> found{
      {"connection-breaks/catching-up", "answered_before_the_backup"},
      {"connection-breaks/take-over", "answered_before_the_backup"},
      {"ps-cut-off-one-way/cut", "primary_alone_before_durable"},
      {"ps-cut-off-one-way/idle", "backup_takes_old_epoch"},
      {"ps-cut-off-one-way/journal", "backup_takes_old_epoch"},
      {"ps-cut-off-one-way/push", "primary_alone_before_durable"},
      {"ps-cut-off-one-way/round", "backup_takes_old_epoch"},
      {"ps-cut-off/cut", "primary_alone_before_durable"},
      {"ps-cut-off/idle", "backup_takes_old_epoch"},
      {"ps-cut-off/journal", "backup_takes_old_epoch"},
      {"ps-cut-off/push", "backup_takes_old_epoch"},
      {"ps-cut-off/round", "backup_takes_old_epoch"},
      {"ps-cut-off/take-over", "missing_share_counts_as_empty"},
      {"ps-dies/catching-up", "missing_share_counts_as_empty"},
      {"ps-dies/push", "missing_share_counts_as_empty"},
      {"ps-dies/take-over", "missing_share_counts_as_empty"},
      {"ps-stays-away/catching-up", "answered_before_the_backup"},
      {"ps-stays-away/cut", "missing_share_counts_as_empty"},
      {"ps-stays-away/push", "missing_share_counts_as_empty"},
      {"ps-stays-away/take-over", "missing_share_counts_as_empty"},
      {"ps-stops/cut", "missing_share_counts_as_empty"},
      {"ps-stops/push", "missing_share_counts_as_empty"},
      {"ps-stops/round", "backup_takes_old_epoch"},
      {"two-ps-cut-off-one-way/catching-up", "answered_before_the_backup"},
      {"two-ps-cut-off-one-way/take-over", "answered_before_the_backup"},
      {"two-ps-cut-off/take-over", "answered_before_the_backup"}};
  const auto bug = found.find(row);
  return bug == found.end() ? "" : bug->second;
}

}  // namespace cairn::simulation
