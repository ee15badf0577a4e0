// The services of a member to the others, and how parcels are written into messages and read.
#pragma once
#include <capnp/capability.h>
#include <kj/async.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collective/network/inbox.h"
#include "collective/peer.capnp.h"
#include "core/base/error.h"
#include "core/base/incarnation.h"
#include "rpc/loop/task.h"
#include "rpc/net/connection.h"

namespace cairn {

// Whom the service asks: PeerLinks. Thread: the reactor's.
class PeerHost {
 public:
  virtual ~PeerHost() noexcept = default;
  virtual rpc::Task<void> join(std::uint64_t generation, std::uint64_t agreed,
                               std::vector<ProcessIncarnation> incarnations) = 0;
  // Resolves when the parcel, which lies in the message, was used.
  virtual rpc::Task<void> deliver(int from, rpc::Connection& connection, std::uint64_t generation,
                                  Parcel parcel) = 0;
  virtual std::uint64_t own_calls() const = 0;
  virtual void told(int from, rpc::Connection& connection, ErrorParts error, bool left) = 0;
  // The connection is being destroyed.
  virtual void closed(int from, rpc::Connection& connection) = 0;
};

// The way from the services to their host, which they may outlive: connections belong to an
// acceptor, which need not be the host's own.
class PeerDoor {
 public:
  explicit PeerDoor(PeerHost& host) : host_(&host) {}

  // Errors  Unavailable: the host has gone.
  PeerHost& host() const;
  // For a call that the host has begun: if the host goes, the call ends where it waits, as
  // Unavailable.
  kj::Promise<void> guard(rpc::Task<void> call) { return calls_.wrap(call.start()); }
  void closed(int from, rpc::Connection& connection) const {
    if (host_ != nullptr) host_->closed(from, connection);
  }
  void close();  // the host goes

 private:
  PeerHost* host_;
  kj::Canceler calls_;
};

// The service for the member of that rank.
capnp::Capability::Client serve_peer(std::shared_ptr<PeerDoor> door, int from,
                                     rpc::Connection& connection);

void write_parcel(wire::Parcel::Builder out, std::uint64_t generation, const Parcel& parcel);
// The data stay in the message.
//   Errors  InvalidArgument: a type that is none.
Parcel read_parcel(wire::Parcel::Reader in);

// FNV-1a, of 64 bits: equal on all hosts.
std::uint64_t hash_of(std::string_view text);

}  // namespace cairn
