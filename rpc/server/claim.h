// Claim: how a coordinator asks a task for its place before it uses the task, and the answer.
//
// task_owner.h decides, claim_wire.h carries both in messages; whatever a coordinator has to say of
// itself to be heard by a task belongs here.
#pragma once
#include <cstdint>
#include <string>

#include "core/base/clock.h"
#include "core/base/incarnation.h"

namespace cairn::rpc {

struct Claim {
  std::uint64_t session = 0;
  std::string who;      // "pid 4711 on host ada"
  Duration silence{0};  // after which the coordinator counts as gone
  bool take_over = false;
  Term term;  // in which it goes on with the session, as the connection's hello said
};

struct ClaimAnswer {
  bool granted = false;
  // The coordinator that was found at work, and that this one has replaced if the claim is granted;
  // empty: there was none.
  std::string owner;
  std::uint64_t configured = 0;  // the session that the task was last configured for; 0: none
  // The latest term that has joined with the claim's session. If it is later than the claim's, that
  // coordinator goes on with the session, and the claim is not granted.
  Term newest_term;
};

}  // namespace cairn::rpc
