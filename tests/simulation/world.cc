#include "tests/simulation/world.h"

#include "storage/checkpoint_folder.h"
#include "tests/simulation/data_service.h"
#include "tests/simulation/flapping.h"
#include "tests/simulation/group.h"
#include "tests/simulation/turnover.h"

namespace cairn::simulation {
namespace {
using std::chrono::milliseconds;
constexpr Duration kAfterTheLastFault = std::chrono::minutes(2);  // virtual
}  // namespace

World::World(const Scenario& scenario)
    : scenario_(scenario),
      due_(due(scenario)),
      pending_(scenario.faults),
      random_(random_key(scenario.seed, "world")),
      cluster_(options(scenario)),
      late_(scenario) {
  if (scenario.followed) follower_ = std::make_unique<Follower>(cluster_, scenario);
}

Verdict World::run() {
  try {
    cluster_.reactor().schedule(Duration(0), [this] { tick(); });
    while (!live_one_life()) {
    }
    if (verdict_.good()) judge_checkpoints();
  } catch (const std::exception& error) {
    complain(str("an error reached the user: ", error.what()));
  }
  ended_ = true;
  finish_verdict();
  follower_.reset();
  program_.reset();
  late_.end();
  return verdict_;
}

SimulatedClusterOptions cluster_options(const Scenario& scenario) {
  SimulatedClusterOptions options{.ps = scenario.ps,
                                  .workers = scenario.workers,
                                  .shards = scenario.shards,
                                  .lanes = scenario.lanes,
                                  .seed = scenario.seed};
  options.strategy.partitioner =
      FixedShardsPartitioner(scenario.ps * static_cast<std::int64_t>(scenario.shards));
  options.strategy.placement = Placement::kRoundRobin;
  options.strategy.engine.pipeline_depth = scenario.sending.depth;
  options.strategy.engine.send_window = scenario.sending.window;
  options.strategy.consistency = scenario.consistency;
  options.network = {.seed = scenario.seed,
                     .delay_min = std::chrono::microseconds(50),
                     .delay_max = scenario.delays.network};
  options.disk_delay_max = scenario.delays.disk;
  options.save_memory = scenario.saves.memory;
  options.rows_in_memory = scenario.hashed.in_memory;
  if (scenario.saves.slow) options.save_batch_bytes = 1;
  options.strategy.engine.recovery.on_demand = scenario.saves.on_demand;
  if (scenario.saves.on_demand) options.restore_batch_bytes = 1;
  if (scenario.wide > 0) options.piece_bytes_max = 64;
  options.journal = scenario.saves.journal;
  options.strategy.engine.recovery.replicas = scenario.copies.replicas;
  return options;
}

SimulatedClusterOptions World::options(const Scenario& scenario) {
  SimulatedClusterOptions options = cluster_options(scenario);
  for (int i = 0; i < scenario.ps; ++i) watches_.push_back(std::make_unique<Watch>(*this, i));
  options.observer_of = [this](int ps) { return watches_.at(static_cast<std::size_t>(ps)).get(); };
  return options;
}

bool World::live_one_life() {
  begin_life();
  while (!done()) {
    feed();
    // A round that is short of members is completed once the program asks.
    if (strikes_.for_idle > 0) program_->coordinator.done();
    cluster_.run_for(milliseconds(1));
    if (chief_.due) {
      end_life();
      return false;
    }
    if (waited_too_long()) {
      complain(str("closures still wait: ", program_->coordinator.status_json()));
      return true;
    }
    late_.make(cluster_.strategy(), finished(), scenario_.closures);
  }
  if (chief_.due) {
    end_life();
    return false;
  }
  heal_everything();
  judge_values();
  judge_copies();
  return true;
}

// Flights end with the data, and not before all of them are committed.
bool World::done() {
  try {
    return lives_.scheduled == scenario_.closures && program_->coordinator.done();
  } catch (const OutOfRangeError&) {
    if (scenario_.job != Job::kFlights) throw;
    return true;
  }
}

void World::start_chief() {
  while (!cluster_.has_chief()) {
    if (!chief_.starting.empty()) {
      constexpr MemoryDisk::Moment kMoments[] = {
          MemoryDisk::Moment::kBefore, MemoryDisk::Moment::kWithin, MemoryDisk::Moment::kAfter};
      cluster_.disk().crash_at_step(static_cast<std::uint64_t>(chief_.starting.back()),
                                    kMoments[random_.below(std::size(kMoments))]);
      cluster_.disk().set_unsynced_kept(scenario_.loses_power() ? 50 : 100);
      chief_.starting.pop_back();
    }
    try {
      cluster_.start_chief();
    } catch (const UnavailableError&) {
      if (waited_too_long()) throw;
    }
    if (!scenario_.saves.journal) continue;
    // The power may have gone after the last write that the start waited for.
    if (cluster_.disk().down()) cluster_.kill_chief();
    cluster_.disk().recover();
  }
}

void World::begin_life() {
  start_chief();
  if (!scenario_.saves.journal || lives_.begun == 0) {
    seen_ = {};
    base_ = fresh_base(scenario_);
    base_lacks_.clear();
    base_checkpoint_.clear();
  }
  program_ = std::make_unique<Program>(cluster_.strategy(), scenario_);
  if (lives_.begun++ > 0) scenario_.saves.journal ? go_on() : resume();
  if (!scenario_.saves.journal) lives_.first_step = base_.step;
  late_.begin_again(cluster_.strategy(), scenario_.saves.journal);
  lives_.scheduled = lives_.first_step;
  feed();
  // A variable that is made later takes its rows from the checkpoint that was restored, which must
  // not have been removed for newer ones by then.
  constexpr std::size_t kAll = 1000;
  if (scenario_.saves.every > 0)
    program_->coordinator.save_automatically(
        {.folder = kCheckpoints,
         .every_steps = scenario_.saves.every,
         .keep_last = scenario_.late_variables > 0 ? kAll : 3,
         .full_every = scenario_.saves.full_every,
         .consolidate_after = scenario_.saves.consolidate_after});
}

// Where the coordinator before stood. A round is one step, and each of its closures one element.
// Without a loss of power that is what its program knew, at least.
void World::go_on() {
  const std::optional<ResumedRun> resumed = program_->coordinator.resumed();
  if (!resumed)
    return complain("a coordinator began a run of its own, though there was one to go on with");
  lives_.first_step = resumed->global_step - late_.updates();
  if (scenario_.consistency.in_rounds())
    lives_.first_step = static_cast<std::int64_t>(
        cluster_.strategy().host().engine().elements_committed(*program_->data));
  if (!scenario_.loses_power() && resumed->global_step < lives_.known_step)
    complain(str("the run goes on at step ", resumed->global_step, ", and had reached step ",
                 lives_.known_step));
  if (!scenario_.loses_power() && resumed->unrecorded > 0)
    complain(str(resumed->unrecorded, " closures are not in the journal, and no power was lost"));
}

// From the newest checkpoint, as `--resume latest` does; the disk may be down for a while.
void World::resume() {
  storage::Manifest manifest;
  for (;;) {
    try {
      auto latest = storage::CheckpointFolder(cluster_.disk(), kCheckpoints).latest();
      if (!latest) return;
      manifest = storage::read_manifest(cluster_.disk(), latest->path);
      program_->coordinator.restore(latest->path);
      base_checkpoint_ = latest->path;
      break;
    } catch (const UnavailableError&) {
      if (waited_too_long()) throw;
      cluster_.run_for(milliseconds(50));
    }
  }
  base_ = {values_of(*program_, due_), committed_at(manifest, scenario_),
           elements_committed(manifest)};
  base_lacks_ = judge_restored(base_checkpoint_, manifest, base_.values);
}

void World::end_life() {
  note_losses();
  finish_stats();
  lives_.known_step = program_->coordinator.stats().global_step;
  program_.reset();
  late_.end();
  cluster_.disk().set_unsynced_kept(chief_.kept);
  if (chief_.by_power)
    cluster_.kill_chief_by_power();
  else
    cluster_.kill_chief();
  const Duration away = chief_.away;
  chief_ = {.starting = std::move(chief_.starting)};
  cluster_.run_for(away);
}

bool World::waited_too_long() const {
  const Duration patience = pending_.empty() ? kAfterTheLastFault : 2 * kAfterTheLastFault;
  return cluster_.reactor().now() > quiet_after_ + patience;
}

Verdict run(const Scenario& scenario) {
  if (scenario.job == Job::kDataService) return run_data_service(scenario);
  if (scenario.job == Job::kFlapping) return run_flapping(scenario);
  if (scenario.job == Job::kTurnover) return run_turnover(scenario);
  return scenario.job == Job::kInStep ? GroupWorld(scenario).run() : World(scenario).run();
}

}  // namespace cairn::simulation
