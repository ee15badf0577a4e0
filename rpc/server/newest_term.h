// NewestTerm: the latest coordinator that has joined a task, known to all threads of its process.
// An earlier one of the same session has no say from then on, on whatever connection.
//   Thread  any.
#pragma once
#include <cstdint>
#include <mutex>
#include <string_view>

#include "core/base/incarnation.h"

namespace cairn::rpc {

struct PeerInfo;

class NewestTerm {
 public:
  // A coordinator has joined. One of another session begins anew.
  void raise(std::uint64_t session, Term term);
  // For a server method, `call`, made by the coordinator `peer`.
  //   Errors  FailedPrecondition: a later one of its session has joined; both are named.
  void verify(std::string_view call, const PeerInfo& peer) const;

 private:
  mutable std::mutex mutex_;  // guards both
  std::uint64_t session_ = 0;
  Term term_;
};

}  // namespace cairn::rpc
