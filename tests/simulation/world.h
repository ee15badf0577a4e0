// World: one run of a scenario: the cluster, its user, its faults, and the judge.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "ps/shard/shard.h"
#include "testing/simulated_cluster.h"
#include "tests/simulation/cut.h"
#include "tests/simulation/follower.h"
#include "tests/simulation/life.h"
#include "tests/simulation/program.h"
#include "tests/simulation/run.h"

namespace cairn::simulation {

inline constexpr const char* kCheckpoints = "/checkpoints";

// The cluster of a scenario, without an observer.
SimulatedClusterOptions cluster_options(const Scenario& scenario);

class World final {
 public:
  explicit World(const Scenario& scenario);
  Verdict run();

 private:
  // ---- a user's life: world.cc ----
  SimulatedClusterOptions options(const Scenario& scenario);
  bool done();           // are all closures?
  bool live_one_life();  // from a coordinator's start to the end of the job (true) or its own
  void begin_life();
  void start_chief();
  void resume();
  void go_on();
  void end_life();
  bool waited_too_long() const;

  // ---- faults.cc ----
  std::int64_t finished() const;
  std::int64_t wanted_now() const;
  void feed();
  void tick();
  void later(Duration delay, std::function<void()> work);
  void strike(const Fault& fault);
  void strike_in_turn(const Fault& fault);
  void strike_counted(const Fault& fault, const std::set<int>& struck);
  bool may_strike(const std::set<int>& struck);
  std::size_t copies_without(const std::set<int>& struck);
  void make_zombie(const Fault& fault);
  void kill_unheard(const Fault& fault);
  void heal_everything();

  // ---- phases.cc ----
  void watch_for(const Fault& fault);
  bool meets(const Fault& fault);
  bool all_in_sync(const Layout& layout);
  bool any_closure_beyond(std::size_t begun) const;
  bool is_being_saved(const Layout& layout);
  bool catches_up(const Layout& layout);
  const ps::Shard* primary_of(const ShardLayout& shard);
  bool is_unanswered(const ShardLayout& shard);
  bool is_rebuilt(const ShardLayout& shard);
  bool writes_journal();

  // ---- judge.cc ----
  void complain(std::string what) { verdict_.complaints.push_back(std::move(what)); }
  class Watch;  // of one ps's pushes
  bool answers(int ps, std::optional<Epoch> epoch) const;
  void pushed(const StepContext& step, bool applied, std::uint64_t staleness);
  void fenced(LaneIncarnation newest, std::span<const LaneIncarnation> alive);
  void applied_round(const ps::RoundRequest& request, bool applied);
  std::optional<std::uint64_t> fence_of(LaneIncarnation incarnation) const;
  std::vector<std::uint64_t> lost_in_this_life();
  void note_losses();
  std::map<int, std::int64_t> judge_restored(const std::string& checkpoint,
                                             const storage::Manifest& manifest,
                                             const Values& values);
  void judge_values();
  void judge_follower(const Values& values);
  void judge_copies();
  void judge_checkpoints();
  void finish_stats();
  void finish_verdict();

  const Scenario scenario_;
  const Due due_;  // at the end
  std::vector<Fault> pending_;
  Random random_;
  Verdict verdict_;
  struct Pushed {
    LaneIncarnation incarnation;
    std::uint64_t at = 0;  // of `watched`
  };
  struct Fence {
    LaneIncarnation newest;
    std::vector<LaneIncarnation> alive;
    std::uint64_t at = 0;  // of `watched`
  };
  struct Seen {                                                  // in this session
    std::map<std::uint64_t, Pushed> last_pushed;                 // by closure
    std::map<std::uint64_t, std::vector<std::uint64_t>> rounds;  // their members
    std::set<std::uint64_t> summed;                              // members of them all
    std::vector<Fence> fences;
    std::uint64_t watched = 0;  // pushes and fences so far
  };
  Seen seen_;
  std::vector<std::unique_ptr<Watch>> watches_;  // by ps
  SimulatedCluster cluster_;
  std::unique_ptr<Program> program_;
  Base base_;                               // of this life
  std::map<int, std::int64_t> base_lacks_;  // updates that each ps lacked in it
  std::string base_checkpoint_;
  struct Lives {
    int begun = 0, counted = 0;
    std::int64_t scheduled = 0;   // closures, of all
    Duration fed_at{0};           // when the last one was scheduled
    std::int64_t first_step = 0;  // of this one
    std::int64_t known_step = 0;  // that the program of the last one knew
  };
  Lives lives_;
  struct ChiefDeath {
    bool due = false, by_power = false;
    int kept = 0;  // of 100 bytes that are not synced
    Duration away{0};
    std::vector<int> starting;  // steps at which those that start next lose their power
  };
  ChiefDeath chief_;
  bool ended_ = false;
  Duration quiet_after_{0};
  std::set<int> lost_ever_;  // ps that were killed at some time
  std::unique_ptr<Follower> follower_;
  LateVariables late_;
  // Faults that strike ps with copies.
  struct Strikes {
    std::shared_ptr<const Layout> layout;  // as the coordinator had it last
    int waiting = 0, under_way = 0;
    // Those struck since all copies were in sync last.
    std::set<int> victims;
    Duration healed_at{0};    // the last one that was no death
    Duration laid_out_at{0};  // when `layout` was another one last
    bool over = false;
    // Faults whose phase is looked for, those of them for kIdle, and those that have met theirs.
    int watched = 0, for_idle = 0, met = 0;
  };
  Strikes strikes_;
};

class World::Watch final : public ps::PushObserver {
 public:
  Watch(World& world, int ps) : world_(world), ps_(ps) {}
  void pushed(const StepContext& step, bool applied, std::uint64_t staleness) override {
    if (world_.answers(ps_, step.epoch)) world_.pushed(step, applied, staleness);
  }
  void fenced(LaneIncarnation newest, std::span<const LaneIncarnation> alive) override {
    world_.fenced(newest, alive);
  }
  void applied_round(const ps::RoundRequest& request, bool applied) override {
    if (world_.answers(ps_, std::nullopt)) world_.applied_round(request, applied);
  }

 private:
  World& world_;
  const int ps_;
};

}  // namespace cairn::simulation
