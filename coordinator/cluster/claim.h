// The question that a coordinator asks each task before it uses it, and the answer
// (rpc/server/holder.h).
#pragma once
#include <cstdint>
#include <string>

#include "core/base/clock.h"

namespace cairn {

struct JoinRequest {
  std::uint64_t session = 0;
  std::string who;
  Duration silence{0};
  bool take_over = false;
};

struct JoinAnswer {
  bool granted = false;
  std::string holder;            // the coordinator that was found at work there; empty: none
  std::uint64_t configured = 0;  // the session that the task was last configured for
};

}  // namespace cairn
