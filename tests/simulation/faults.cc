#include "tests/simulation/world.h"

#include <algorithm>
#include <limits>

#include "tests/simulation/replicated.h"

namespace cairn::simulation {
namespace {
using Kind = Fault::Kind;
using std::chrono::milliseconds;
}  // namespace

std::int64_t World::finished() const {
  if (!program_) return lives_.first_step;
  return lives_.first_step + static_cast<std::int64_t>(program_->coordinator.counts().finished);
}

// All closures at once. Where a phase is looked for, so many that there is work. Where ps have
// copies, as many as the next fault asks for, and few while one is struck: so there are some for
// each fault, and for the time in which rows are copied anew.
std::int64_t World::wanted_now() const {
  constexpr std::int64_t kAhead = 10;
  constexpr Duration kBetween = milliseconds(40);
  if (!scenario_.copies.any()) return scenario_.closures;
  std::int64_t until = scenario_.closures;
  for (const Fault& fault : pending_)
    until = std::min(until, fault.at_closure + (fault.phase == Phase::kIdle ? 0 : kAhead));
  if (strikes_.for_idle > 0) return lives_.scheduled;
  if (strikes_.watched > 0 && strikes_.met == 0) return std::min(until, finished() + kAhead);
  if (strikes_.waiting > 0 || strikes_.under_way > 0 || strikes_.watched > 0) until = 0;
  if (until <= lives_.scheduled && cluster_.reactor().now() >= lives_.fed_at + kBetween)
    until = lives_.scheduled + 1;
  return std::min(until, scenario_.closures);
}

void World::feed() {
  const auto layout = cluster_.strategy().host().engine().registry().layout();
  if (layout != std::exchange(strikes_.layout, layout))
    strikes_.laid_out_at = cluster_.reactor().now();
  const std::int64_t until = wanted_now();
  if (until <= lives_.scheduled) return;
  schedule(*program_, scenario_, lives_.scheduled, until);
  lives_.scheduled = until;
  lives_.fed_at = cluster_.reactor().now();
}

void World::tick() {
  if (ended_) return;
  const std::int64_t now = finished();
  for (std::size_t i = 0; i < pending_.size();) {
    if (pending_[i].at_closure > now) {
      ++i;
      continue;
    }
    Fault fault = pending_[i];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    if (fault.phase != Phase::kAny) {
      ++strikes_.watched;
      strikes_.for_idle += fault.phase == Phase::kIdle ? 1 : 0;
      watch_for(fault);
      continue;
    }
    later(fault.then, [this, fault] { strike_in_turn(fault); });
  }
  if (!pending_.empty()) later(Duration(20'000 + random_.below(200'000)), [this] { tick(); });
}

void World::later(Duration delay, std::function<void()> work) {
  quiet_after_ = std::max(quiet_after_, cluster_.reactor().now() + delay);
  cluster_.reactor().schedule(delay, [this, work = std::move(work)] {
    if (!ended_) work();
  });
}

// A ps that was struck may be struck again, as long as it has the only copy of nothing; another one
// only once all copies are in sync. The coordinator takes a while to notice that a copy has stopped
// following, and if it dies soon after a change of the layout, its journal may lack that change.
bool World::may_strike(const std::set<int>& struck) {
  constexpr Duration kNoticed = milliseconds(500), kKept = milliseconds(200);
  if (scenario_.copies.all_at_once) return true;
  if (!program_ || chief_.due) return false;
  const Duration now = cluster_.reactor().now();
  if (scenario_.saves.journal && now < strikes_.laid_out_at + kKept) return false;
  if (struck.size() == 1 && strikes_.victims == struck) return copies_without(struck) > 0;
  if (strikes_.under_way > 0 || now < strikes_.healed_at + kNoticed) return false;
  if (copies_without({}) < scenario_.copies.replicas) return false;
  strikes_.victims.clear();
  return true;
}

// The copies in sync that the shard with the fewest has on other ps, in processes that live.
std::size_t World::copies_without(const std::set<int>& struck) {
  const auto lives = [&](const ShardReplica& replica) {
    const int ps = static_cast<int>(replica.ps);
    return !struck.contains(ps) && cluster_.has_ps(ps) &&
           cluster_.ps(ps).incarnation() == replica.process;
  };
  std::size_t least = scenario_.copies.replicas;
  for (const ShardLayout& shard : cluster_.strategy().host().engine().registry().layout()->shards) {
    const auto backups = static_cast<std::size_t>(std::ranges::count_if(shard.backups, lives));
    least = std::min(least, backups + (lives(shard.primary) ? 1 : 0));
  }
  return least;
}

void World::strike_in_turn(const Fault& fault) {
  const std::set<int> struck =
      scenario_.copies.any() ? struck_by(fault, scenario_) : std::set<int>{};
  if (struck.empty()) return strike(fault);
  if (!may_strike(struck)) {
    ++strikes_.waiting;
    cluster_.reactor().schedule(milliseconds(1), [this, fault] {
      --strikes_.waiting;
      if (!ended_ && !strikes_.over) strike_in_turn(fault);
    });
    return;
  }
  strike_counted(fault, struck);
}

void World::strike_counted(const Fault& fault, const std::set<int>& struck) {
  strikes_.victims.insert(struck.begin(), struck.end());
  ++strikes_.under_way;
  strike(fault);
  later(fault.lasts, [this, fault] {
    // It may not have met a message so far.
    if (fault.kind == Kind::kDropNext) cluster_.network().keep_next(fault.from, fault.to);
    --strikes_.under_way;
    if (fault.kind != Kind::kKillPs) strikes_.healed_at = cluster_.reactor().now();
  });
}

void World::strike(const Fault& fault) {
  auto& network = cluster_.network();
  auto& disk = cluster_.disk();
  switch (fault.kind) {
    case Kind::kKillWorker:
      if (!cluster_.has_worker(fault.a)) return;
      cluster_.kill_worker(fault.a);
      return later(fault.lasts, [this, fault] { cluster_.start_worker(fault.a); });
    case Kind::kKillPs:
      if (!cluster_.has_ps(fault.a)) return;
      if (!scenario_.copies.none_lost()) lost_ever_.insert(fault.a);
      cluster_.kill_ps(fault.a);
      return later(fault.lasts, [this, fault] { cluster_.start_ps(fault.a); });
    case Kind::kKillUnheard: return kill_unheard(fault);
    case Kind::kKillChief:
    case Kind::kPowerLoss:
      if (!cluster_.has_chief() || chief_.due) return;
      chief_.due = true;
      chief_.by_power = fault.kind == Kind::kPowerLoss;
      chief_.kept = fault.a;
      chief_.away = fault.lasts;
      cluster_.network().crash("chief");
      // Else it lives on without connections for up to a millisecond.
      if (fault.phase != Phase::kAny) cluster_.stop_chief_disk();
      return later(fault.lasts, [] {});
    case Kind::kChiefDiesStarting: chief_.starting.push_back(fault.a); return;
    case Kind::kCut: network.cut(fault.from, fault.to); break;
    case Kind::kPartition: network.partition(fault.from, fault.to); break;
    case Kind::kPartitionBoth: network.partition_both(fault.from, fault.to); break;
    case Kind::kDropNext: network.drop_next(fault.from, fault.to); return;
    case Kind::kDiskFull:
      disk.set_capacity(disk.bytes_used() + static_cast<std::uint64_t>(fault.a));
      return later(fault.lasts, [this] {
        cluster_.disk().set_capacity(std::numeric_limits<std::uint64_t>::max());
      });
    case Kind::kDiskDown:
      disk.crash_at_write(0, random_.below(200));
      return later(fault.lasts, [this] { cluster_.disk().recover(); });
    case Kind::kDiskSlow:
      cluster_.slow_disks(milliseconds(50));
      return later(fault.lasts, [this] { cluster_.slow_disks(Duration(0)); });
    case Kind::kSlow:
      network.slow(fault.from, fault.a);
      return later(fault.lasts, [this, fault] { cluster_.network().slow(fault.from, 1); });
    case Kind::kStop:
      network.stop(fault.from);
      return later(fault.lasts, [this, fault] { cluster_.network().go_on(fault.from); });
    case Kind::kZombie: return make_zombie(fault);
    case Kind::kWallJump: cluster_.reactor().jump_wall(std::chrono::seconds(fault.a)); return;
  }
  later(fault.lasts, [this, fault] { cluster_.network().heal(fault.from, fault.to); });
}

// It dies before a primary gives up on its backups: until then all of them count as in sync. The
// records that it had sent arrive when others have taken over. Meanwhile closures lose their
// connection to it and run again, so that it is asked to answer for pushes that its backups lack.
void World::kill_unheard(const Fault& fault) {
  const std::string host = str("ps", fault.a);
  const Duration until = std::min<Duration>(fault.lasts / 2, milliseconds(600));
  auto others = [this, fault](const auto& each) {
    for (int i = 0; i < scenario_.ps; ++i)
      if (i != fault.a) each(str("ps", i));
  };
  auto workers = [this](const auto& each) {
    for (int i = 0; i < scenario_.workers; ++i) each(str("worker", i));
  };
  others([&](const std::string& other) { cluster_.network().partition(host, other); });
  later(until / 4, [this, host, workers] {
    workers([&](const std::string& worker) { cluster_.network().cut(worker, host); });
  });
  later(until / 3, [this, host, workers] {
    workers([&](const std::string& worker) { cluster_.network().heal(worker, host); });
  });
  Fault kill = fault;
  kill.kind = Kind::kKillPs;
  kill.lasts = fault.lasts - until;
  later(until, [this, kill] { strike(kill); });
  later(fault.lasts, [this, host, others] {
    others([&](const std::string& other) { cluster_.network().heal(host, other); });
  });
}

void World::make_zombie(const Fault& fault) {
  auto& network = cluster_.network();
  const std::string zombie = str("worker", fault.a);
  network.partition_both("chief", zombie);
  network.partition(zombie, fault.to);
  auto others = [this, fault](const std::function<void(const std::string&)>& each) {
    for (int i = 0; i < scenario_.workers; ++i)
      if (i != fault.a) each(str("worker", i));
  };
  later(milliseconds(900), [this, fault, others] {
    others([&](const std::string& other) { cluster_.network().partition(other, fault.to); });
  });
  later(fault.lasts, [this, fault, zombie] { cluster_.network().heal(zombie, fault.to); });
  later(fault.lasts + milliseconds(200), [this, fault, others, zombie] {
    others([&](const std::string& other) { cluster_.network().heal(other, fault.to); });
    cluster_.network().heal("chief", zombie);
  });
}

// Faults that are still to come find the job done.
void World::heal_everything() {
  pending_.clear();
  strikes_.over = true;
  if (quiet_after_ > cluster_.reactor().now())
    cluster_.run_for(quiet_after_ - cluster_.reactor().now());
  cluster_.network().heal_all();
  cluster_.disk().recover();
}

}  // namespace cairn::simulation
