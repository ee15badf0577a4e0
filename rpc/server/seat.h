// Seat: one control connection's part in who holds a ps or worker (holder.h), as both control
// services have it.
#pragma once
#include <memory>

#include "rpc/cairn.capnp.h"
#include "rpc/net/connection.h"
#include "rpc/server/holder.h"

namespace cairn::rpc {

// Thread: the connection's, which outlives it.
class Seat {
 public:
  Seat(std::shared_ptr<Holder> holder, Connection& connection)
      : holder_(std::move(holder)), connection_(connection) {}
  ~Seat() { holder_->left(this); }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  void heard() { holder_->heard(this); }
  // `configured`: the session that this process was last configured for.
  //   Errors  PermissionDenied: who asks is no coordinator.
  void join(wire::Claim::Reader asked, std::uint64_t configured, wire::ClaimAnswer::Builder out);

 private:
  std::shared_ptr<Holder> holder_;
  Connection& connection_;
};

}  // namespace cairn::rpc
