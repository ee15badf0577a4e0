#include "tests/simulation/flapping.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "coordinator/cluster/flapping.h"
#include "core/base/random.h"
#include "testing/simulated_cluster.h"
#include "tests/simulation/life.h"
#include "tests/simulation/world.h"

namespace cairn::simulation {
namespace {

using namespace std::chrono_literals;
using Kind = Fault::Kind;

constexpr Duration kWait = 60s;       // ps_wait and worker_wait
constexpr Duration kForEver = 3600s;  // longer than any job here may last
// Between two looks at a task that serves, and at one that does not.
constexpr Duration kLook = 100us, kLookAway = 1ms;
constexpr Duration kRecovery = 120s;  // as in every other mix
// To notice a loss, to connect and to configure, however slow the network is.
constexpr Duration kTurn = 5s;

// A task that flaps, and where it is in that.
struct Flapper {
  std::string host, task;
  int index = 0;
  bool away = false;
  Duration back_at{0};
  std::optional<Duration> lost_at = {};  // decided when it is seen to serve
};

class FlappingWorld {
 public:
  explicit FlappingWorld(const Scenario& scenario)
      : scenario_(scenario),
        fault_(scenario.faults.at(0)),
        random_(random_key(scenario.seed, "flapping")),
        cluster_(options(scenario)) {
    const bool ps = fault_.from != "workers";
    const int first = ps ? fault_.a : 0, end = ps ? fault_.a + 1 : scenario.workers;
    for (int i = first; i < end; ++i)
      flappers_.push_back({.host = str(ps ? "ps" : "worker", i),
                           .task = str("/job:", ps ? "ps" : "worker", "/task:", i),
                           .index = i});
  }

  Verdict run() {
    program_ = std::make_unique<Program>(cluster_.strategy(), scenario_);
    schedule(*program_, scenario_, 0, scenario_.closures);
    try {
      while (!program_->coordinator.done() && !too_late()) step();
      if (too_late())
        complain("neither done nor an error: the cluster is busy with who flaps");
      else
        judge_values();
    } catch (const UnavailableError& error) {
      judge_error(error.what());
    } catch (const Error& error) {
      complain(str("the error is not one of an absence: ", error.what()));
    }
    finish();
    return verdict_;
  }

 private:
  static SimulatedClusterOptions options(const Scenario& scenario) {
    SimulatedClusterOptions options = cluster_options(scenario);
    options.strategy.engine.ps_wait = options.strategy.engine.worker_wait = kWait;
    return options;
  }

  Duration now() const { return cluster_.reactor().now(); }
  bool too_late() const {
    const Duration limit = fault_.lasts < kForEver ? fault_.lasts + kRecovery : Duration(0);
    const Duration wait = kWait + Flapping::kPauseMax + 2 * kTurn + 2 * fault_.then;
    return now() > std::max(limit, last_work_ + wait) + kTurn;
  }

  void step() {
    cluster_.run_for(look());
    const QueueCounts counts = program_->coordinator.counts();
    if (counts.finished > finished_ || began_ == Duration(0)) {
      finished_ = counts.finished;
      last_work_ = now();
      losses_before_ = losses();
    }
    if (static_cast<std::int64_t>(finished_) < fault_.at_closure && began_ == Duration(0)) return;
    if (began_ == Duration(0)) began_ = now();
    const bool over = now() - began_ > fault_.lasts;
    for (Flapper& each : flappers_) move(each, over);
  }

  // Each look copies the reports of losses, and most of the virtual time nobody serves.
  Duration look() const {
    for (const Flapper& each : flappers_)
      if (each.lost_at) return kLook;
    return kLookAway;
  }

  // The last report of a task says whether it is back.
  bool serves(const Flapper& flapper) const {
    const auto all = program_->coordinator.stats().losses;
    const auto last = std::find_if(all.rbegin(), all.rend(), [&](const LossReport& loss) {
      return loss.task == flapper.task;
    });
    return last == all.rend() || last->back_after_seconds >= 0;
  }

  void move(Flapper& flapper, bool over) {
    if (flapper.away) {
      if (now() < flapper.back_at && !over) return;
      flapper.away = false;
      return come(flapper);
    }
    if (over || !serves(flapper)) {
      flapper.lost_at.reset();
      return;
    }
    if (!flapper.lost_at) flapper.lost_at = now() + drawn(fault_.then);
    if (now() < *flapper.lost_at) return;
    flapper.lost_at.reset();
    flapper.away = true;
    flapper.back_at = now() + drawn(500ms);
    go(flapper);
  }

  bool killed() const { return fault_.kind == Kind::kKillPs || fault_.kind == Kind::kKillWorker; }
  void go(const Flapper& flapper) {
    if (fault_.kind == Kind::kKillPs) cluster_.kill_ps(flapper.index);
    if (fault_.kind == Kind::kKillWorker) cluster_.kill_worker(flapper.index);
    if (!killed()) cluster_.network().cut("chief", flapper.host);
  }
  void come(const Flapper& flapper) {
    if (fault_.kind == Kind::kKillPs) cluster_.start_ps(flapper.index);
    if (fault_.kind == Kind::kKillWorker) cluster_.start_worker(flapper.index);
    if (!killed()) cluster_.network().heal("chief", flapper.host);
  }
  Duration drawn(Duration most) {
    return Duration(
        1 + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most.count()))));
  }

  // ---- the judge ----
  void complain(std::string what) { verdict_.complaints.push_back(std::move(what)); }
  std::uint64_t losses() const { return program_->coordinator.stats().losses.size(); }

  void judge_values() {
    for (Flapper& each : flappers_)
      if (std::exchange(each.away, false)) come(each);
    const Due all = due(scenario_);
    const Values now = values_of(*program_, all);
    cluster_.run_for(100ms);  // a ps answers before the loss report is written
    const auto layout = cluster_.strategy().host().engine().registry().layout();
    const auto lost = losses_by_ps(program_->coordinator.stats(), scenario_.ps);
    for (auto& complaint :
         judge_life(scenario_, fresh_base(scenario_), all, scenario_.closures, now, *layout, lost))
      complain(std::move(complaint));
    verdict_.fingerprint = static_cast<std::uint64_t>(now.v);
  }

  void judge_error(const std::string& what) {
    const double waited = std::chrono::duration<double>(now() - last_work_).count();
    if (now() - last_work_ + kLookAway < kWait)  // the work may have been done a look before
      complain(str("after ", waited, " s without work, too early: ", what));
    for (const Flapper& each : flappers_)
      if (what.find(each.task) == what.npos) complain(str(each.task, " is not named: ", what));
    // Pauses double from 20 ms to 10 s.
    const auto most = flappers_.size() * static_cast<std::size_t>(12 + kWait / 5s);
    if (losses() - losses_before_ > most)
      complain(str(losses() - losses_before_, " losses without work: the cluster spins"));
  }

  void finish() {
    const EngineStats stats = program_->coordinator.stats();
    verdict_.retried = program_->coordinator.counts().retried;
    verdict_.losses = stats.losses.size();
    verdict_.lost_updates = stats.lost_updates;
    verdict_.virtual_seconds = std::chrono::duration<double>(now()).count();
    verdict_.fingerprint = random_key(verdict_.fingerprint, cluster_.network().fingerprint());
    program_.reset();
  }

  const Scenario scenario_;
  const Fault fault_;  // `then`: at most so long is it there; `lasts`: so long does it flap
  Random random_;
  SimulatedCluster cluster_;
  std::unique_ptr<Program> program_;
  std::vector<Flapper> flappers_;
  Duration began_{0}, last_work_{0};
  std::uint64_t finished_ = 0, losses_before_ = 0;
  Verdict verdict_;
};

}  // namespace

Scenario flapping_scenario(std::uint64_t seed) {
  Random random(random_key(seed, "scenario of flapping"));
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
  };
  Scenario scenario;
  scenario.seed = seed;
  scenario.job = Job::kFlapping;
  scenario.ps = static_cast<int>(between(1, 3));
  scenario.workers = static_cast<int>(between(1, 3));
  scenario.shards = static_cast<std::uint32_t>(between(1, 2));
  scenario.lanes = static_cast<std::uint32_t>(between(1, 2));
  scenario.sending.depth = 1u << between(0, 2);
  scenario.closures = between(40, 160);
  scenario.updates = between(0, 1) == 0 ? Updates::kAssigned : Updates::kByRule;
  scenario.delays.network = Duration(between(60'000, 5'000'000));
  Fault fault;
  const bool ps = between(0, 1) == 0;
  const bool killed = between(0, 1) == 0;
  fault.kind = !killed ? Kind::kCut : ps ? Kind::kKillPs : Kind::kKillWorker;
  fault.a = static_cast<int>(between(0, scenario.ps - 1));
  fault.from = ps ? str("ps", fault.a) : "workers";
  fault.to = "chief";
  fault.at_closure = between(0, scenario.closures - 1);
  // From a tenth of a millisecond, in which nothing is done, to a second, in which much is.
  fault.then = Duration(static_cast<std::int64_t>(1e5 * std::pow(10.0, random.uniform() * 4)));
  fault.lasts = between(0, 2) == 0 ? Duration(between(0, 40'000'000'000)) : kForEver;
  scenario.faults.push_back(fault);
  return scenario;
}

Verdict run_flapping(const Scenario& scenario) { return FlappingWorld(scenario).run(); }

}  // namespace cairn::simulation
