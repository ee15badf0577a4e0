// TaskOwner: the one coordinator that a ps or a worker works for, until that ends, falls silent, or
// is replaced on demand.
//
// A new session forgets what an old one has here, so it must not begin by mistake while the old one
// is at work. A coordinator joins each task on its control connection before it configures
// anything. One that goes on with the same session has taken a later term where only one can, so it
// needs nobody's leave; from then on the earlier one is refused.
//   Thread  one loop's.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "rpc/server/claim.h"
#include "rpc/server/last_heard.h"

namespace cairn::rpc {

class TaskOwner {
 public:
  static constexpr Duration kSilenceMax = std::chrono::seconds(60);

  // `heard` is told of each sign of life of the owner, and shows it to other threads.
  explicit TaskOwner(const Clock& clock,
                     std::shared_ptr<LastHeard> heard = std::make_shared<LastHeard>())
      : clock_(clock), heard_(std::move(heard)) {
    heard_->note(clock.now());
  }

  // `connection` names the connection that asks, which comes from `address`; `end` ends it, and is
  // called when another coordinator takes over. A claim's silence counts up to kSilenceMax. The
  // answer's `configured` is left to the caller.
  //   Errors  InvalidArgument: a claim without a session.
  ClaimAnswer join(const void* connection, const Claim& claim, const std::string& address,
                   std::function<void()> end);
  // The newest coordinator, for people; empty: none has joined yet.
  std::string newest() const { return claim_.session == 0 ? "" : text(); }
  // Since it was heard of; of none, since this owner was made.
  Duration silent_for() const { return clock_.now() - heard_->when(); }
  void heard(const void* connection);  // it shows life
  void left(const void* connection);   // it has ended

 private:
  bool living() const;
  std::string text() const;

  const Clock& clock_;
  Claim claim_;
  std::string address_;               // from where the coordinator dialled
  const void* connection_ = nullptr;  // null: no coordinator is here
  std::function<void()> end_;
  std::int64_t since_us_ = 0;
  std::shared_ptr<LastHeard> heard_;
};

}  // namespace cairn::rpc
