#include "rpc/server/task_owner.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/utc.h"

namespace cairn::rpc {

// A coordinator whose host or network has gone leaves a connection behind that stays silent.
bool TaskOwner::living() const {
  return connection_ != nullptr && clock_.now() - heard_->when() < claim_.silence;
}

std::string TaskOwner::text() const {
  const double ago = std::chrono::duration<double>(clock_.now() - heard_->when()).count();
  return str("session ", claim_.session, claim_.term > 1 ? str(", term ", claim_.term) : "", " (",
             claim_.who, ", from ", address_, "), since ", utc_text(since_us_), ", last heard ",
             fixed(ago, 1), " s ago");
}

ClaimAnswer TaskOwner::join(const void* connection, const Claim& claim, const std::string& address,
                            std::function<void()> end) {
  if (claim.session == 0)
    throw InvalidArgumentError("a coordinator joins with its session, and 0 is none");
  ClaimAnswer answer;
  const bool goes_on = claim_.session == claim.session;
  answer.newest_term = goes_on ? std::max(claim_.term, claim.term) : claim.term;
  // It has been succeeded, whether or not its successor is still here.
  if (claim.term < answer.newest_term) {
    answer.owner = text();
    return answer;
  }
  answer.granted = true;
  const bool another = connection_ != nullptr && (!goes_on || claim_.term != claim.term);
  if (another && living()) {
    answer.granted = claim.take_over || goes_on;
    answer.owner = text();
    if (!answer.granted) return answer;
    log_warning("session ", claim.session, " (", claim.who, ", from ", address,
                ") takes over from ", answer.owner);
  }
  // The other connection is ended last, when the new claim stands: its end leads to left(), which
  // must find that it no longer owns this task and change nothing. A coordinator that has only
  // lost its connection comes back with the same session and keeps the time since which it is here.
  auto end_other = another ? std::exchange(end_, nullptr) : nullptr;
  if (claim_.session != claim.session) since_us_ = clock_.wall_microseconds();
  claim_ = claim;
  claim_.silence = std::clamp(claim.silence, Duration(0), kSilenceMax);
  address_ = address;
  connection_ = connection;
  end_ = std::move(end);
  heard_->note(clock_.now());
  if (end_other) end_other();
  return answer;
}

void TaskOwner::heard(const void* connection) {
  if (connection == connection_) heard_->note(clock_.now());
}

void TaskOwner::left(const void* connection) {
  if (connection != connection_) return;
  connection_ = nullptr;
  end_ = nullptr;
}

}  // namespace cairn::rpc
