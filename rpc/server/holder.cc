#include "rpc/server/holder.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/utc.h"

namespace cairn::rpc {

// Whose host or network has gone leaves a connection behind that says nothing any more.
bool Holder::living() const {
  return connection_ != nullptr && clock_.now() - last_heard_ < claim_.silence;
}

std::string Holder::text() const {
  const double ago = std::chrono::duration<double>(clock_.now() - last_heard_).count();
  return str("session ", claim_.session, " (", claim_.who, ", from ", claim_.address, "), since ",
             utc_text(since_us_), ", last heard ", fixed(ago, 1), " s ago");
}

Holder::Answer Holder::join(const void* connection, const Claim& claim, std::function<void()> end) {
  if (claim.session == 0)
    throw InvalidArgumentError("a coordinator joins with its session, and 0 is none");
  Answer answer{true, {}};
  const bool another = connection_ != nullptr && claim_.session != claim.session;
  if (another && living()) {
    answer = {claim.take_over, text()};
    if (!answer.granted) return answer;
    log_warning("session ", claim.session, " (", claim.who, ", from ", claim.address,
                ") takes over from ", answer.other);
  }
  // The other connection is ended last, when the new claim stands: its end leads to left(), which
  // must find that it no longer holds this seat and change nothing. A coordinator that has only
  // lost its connection comes back with the same session and keeps the time since which it is here.
  auto end_other = another ? std::exchange(end_, nullptr) : nullptr;
  if (claim_.session != claim.session) since_us_ = clock_.wall_microseconds();
  claim_ = claim;
  claim_.silence = std::clamp(claim.silence, Duration(0), kSilenceMax);
  connection_ = connection;
  end_ = std::move(end);
  last_heard_ = clock_.now();
  if (end_other) end_other();
  return answer;
}

void Holder::heard(const void* connection) {
  if (connection == connection_) last_heard_ = clock_.now();
}

void Holder::left(const void* connection) {
  if (connection != connection_) return;
  connection_ = nullptr;
  end_ = nullptr;
}

}  // namespace cairn::rpc
