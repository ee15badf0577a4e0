#include "tests/simulation/follower.h"

#include <utility>

#include "core/base/error.h"

namespace cairn::simulation {

using namespace std::chrono_literals;

Follower::Follower(SimulatedCluster& cluster, const Scenario& scenario)
    : cluster_(cluster), scenario_(scenario), random_(random_key(scenario.seed, "follower")) {
  begin();
}

Follower::~Follower() = default;

void Follower::begin() {
  subscriber_.reset();
  RowStreamOptions options{.every = 10ms};
  for (int i = 0; i < scenario_.ps; ++i) options.ps.push_back(str("sim://ps", i));
  if (random_.below(2) == 0) options.bytes_per_second = 100'000 + random_.below(1'000'000);
  subscriber_ =
      std::make_unique<serving::RowSubscriber>(cluster_.reactor(), cluster_.network().host(kHost),
                                               std::move(options), ++number_, [this] { take(); });
}

// All that has come is taken on a turn of its own: the subscriber may be replaced there.
void Follower::take() {
  if (std::exchange(resting_, true)) return;
  const bool slow = !judging_ && random_.below(50) == 0;
  const Duration rest = slow ? Duration(1ms + random_.below(2'000) * 1ms) : Duration(1us);
  cluster_.reactor().schedule(rest, [this, alive = std::weak_ptr<const bool>(alive_)] {
    if (alive.expired()) return;
    resting_ = false;
    go_on();
  });
}

void Follower::go_on() {
  for (const auto& delivery : subscriber_->take())
    for (const RowChanges& changes : delivery.changes) copy_.apply(changes);
  if (judging_ || random_.below(200) != 0) return;
  // Another process, which may have kept its copy.
  if (random_.below(2) == 0) copy_ = {};
  begin();
}

std::string Follower::judge(const Values& values) {
  judging_ = true;
  std::string wrong;
  for (int i = 0; i < 600; ++i) {
    cluster_.run_for(100ms);
    wrong = difference(values);
    if (wrong.empty()) break;
  }
  judging_ = false;
  for (const auto& away : subscriber_->away())
    if (!wrong.empty()) wrong += str("; ", away.address, " is away: ", away.why);
  return wrong;
}

// Rows that have not come are at their initial values, which are all 0.
std::string Follower::difference(const std::string& name, const RowCounts& wanted,
                                 const serving::RowCopy::Rows& rows) {
  for (const auto& [row, count] : wanted) {
    const auto at = rows.find(row);
    const float has = at == rows.end() ? 0 : at->second.front();
    if (has != static_cast<float>(count))
      return str("a follower's copy of '", name, "' has ", has, " in row ", row, ", the ps have ",
                 count);
  }
  return "";
}

std::string Follower::difference(const Values& values) {
  RowCounts wide;
  for (const std::int64_t one : values.wide)
    wide.emplace_back(static_cast<std::int64_t>(wide.size()), one);
  const std::vector<std::pair<std::string, RowCounts>> all{{"v", {{0, values.v}}},
                                                           {"w", {{0, values.w}}},
                                                           {"rows", values.rows},
                                                           {"hashed", values.hashed},
                                                           {"wide", wide}};
  for (const auto& [name, wanted] : all)
    if (std::string wrong = difference(name, wanted, copy_.of(name)); !wrong.empty()) return wrong;
  return "";
}

}  // namespace cairn::simulation
