#include "serving/server/follower.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "serving/model/live_rows.h"
#include "serving/model/served_model.h"
#include "serving/server/background.h"

namespace cairn::serving {
namespace {

constexpr Duration kPatience = std::chrono::milliseconds(100);
constexpr Duration kAgainLast = std::chrono::seconds(30);
constexpr Duration kAgain = std::chrono::seconds(1);    // until a run is looked for again
constexpr Duration kAllAway = std::chrono::seconds(5);  // then its ps may be others by now

bool same_places(const RowStreamOptions& a, const RowStreamOptions& b) {
  return a.ps == b.ps && a.cluster == b.cluster && a.token == b.token;
}

void verify_same(const VariableSpec& mine, const VariableSpec& theirs) {
  if (mine.dtype == theirs.dtype && mine.hashed == theirs.hashed && mine.shape == theirs.shape)
    return;
  throw FailedPreconditionError(
      str("the run's variable ", mine.name, " is ", dtype_name(theirs.dtype),
          theirs.shape.to_string(), ", and the model's ", dtype_name(mine.dtype),
          mine.shape.to_string(), ": the run trains another model; start the server anew"));
}

}  // namespace

Follower::Follower(std::string name, std::shared_ptr<const ServedModel> model, RowsOfRun where)
    : name_(std::move(name)), model_(std::move(model)), where_(std::move(where)) {
  thread_ = std::thread([this] { run(); });
}

Follower::~Follower() {
  {
    const std::lock_guard hold(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

Follower::Position Follower::position() const {
  const std::lock_guard hold(mutex_);
  return position_;
}

bool Follower::wait_complete(Duration patience) const {
  std::unique_lock hold(mutex_);
  return changed_.wait_for(hold, patience, [this] { return position_.complete || stopping_; }) &&
         position_.complete;
}

TimePoint Follower::covered() const {
  const std::lock_guard hold(mutex_);
  return position_.covered;
}

std::int64_t Follower::step() const {
  const std::lock_guard hold(mutex_);
  return position_.step;
}

bool Follower::stopping() const {
  const std::lock_guard hold(mutex_);
  return stopping_;
}

bool Follower::pause(Duration duration) const {
  std::unique_lock hold(mutex_);
  return !changed_.wait_for(hold, duration, [this] { return stopping_; });
}

void Follower::run() {
  run_in_background();
  Duration again = kAgain;
  do {
    try {
      RowStreamOptions options = where_();
      options.variables.clear();
      for (const auto& [name, rows] : model_->live()) options.variables.push_back(name);
      RowStream stream(std::move(options));
      follow(stream);
      again = kAgain;
    } catch (const UnavailableError& error) {
      in_trouble(error.what());
      again = kAgain;
    } catch (const std::exception& error) {  // it is likely to come again, and a beginning is dear
      in_trouble(error.what());
      again = std::min(2 * again, kAgainLast);
    }
  } while (pause(again));
}

// Until the run's ps are at other places, or it is to end.
void Follower::follow(RowStream& stream) {
  const RowStreamOptions here = where_();
  TimePoint heard = system_clock().now();
  RowChanges changes;
  while (!stopping()) {
    const bool came = stream.next(changes, kPatience);
    const RowStreamState state = stream.state();
    if (came) apply(changes, state.seed);
    tell(state);
    const TimePoint now = system_clock().now();
    if (state.away.size() < here.ps.size()) heard = now;
    if (now - heard < kAllAway) continue;
    heard = now;
    if (!same_places(where_(), here)) return;
  }
}

void Follower::apply(const RowChanges& changes, std::uint64_t seed) {
  const auto found = model_->live().find(changes.variable->name);
  if (found == model_->live().end()) return;
  LiveRows& rows = *found->second;
  verify_same(rows.spec(), *changes.variable);
  if (changes.begins) rows.begin(changes.part, changes.variable->initializer, seed);
  rows.put(changes.rows, changes.values.data());
  rows.drop(changes.gone);
  if (changes.complete) rows.complete(changes.part);
  const std::lock_guard hold(mutex_);
  position_.rows += changes.rows.size() + changes.gone.size();
}

void Follower::tell(const RowStreamState& state) {
  const TimePoint now = system_clock().now();
  const std::lock_guard hold(mutex_);
  if (!position_.trouble.empty()) log_info("model ", name_, ": its run is followed again");
  position_.trouble.clear();
  if (position_.away.empty() && !state.away.empty())
    log_warning("model ", name_,
                ": its rows are those of before, and serve on: ", state.away.front());
  position_.away = state.away;
  position_.step = std::max(position_.step, state.step);
  if (state.age != Duration::max()) position_.covered = now - state.age;
  if (state.complete && !std::exchange(position_.complete, true)) {
    log_info("model ", name_, ": follows its run, and is at step ", position_.step);
    changed_.notify_all();
  }
}

void Follower::in_trouble(const std::string& why) {
  const std::lock_guard hold(mutex_);
  if (std::exchange(position_.trouble, why) != why)
    log_warning("model ", name_, ": nothing is followed, and its rows serve on as they are: ", why);
}

}  // namespace cairn::serving
