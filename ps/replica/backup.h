// Backup: takes the records of a primary's log, in their order, and has the shard do what they say.
//
// It belongs to a shard that is configured like the primary's and not opened. The first record of a
// stream has the primary's books; each further one has the next number. What is not the next record
// of the stream is refused, and changes nothing.
//   Thread  the shard's own.
#pragma once
#include <capnp/message.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/incarnation.h"
#include "ps/shard/shard.h"
#include "rpc/cairn.capnp.h"

namespace cairn::ps {

class Backup {
 public:
  // A record has no more in all; no push does.
  static constexpr std::size_t kPayloadMax = std::size_t{1} << 30;

  explicit Backup(Shard& shard) : shard_(shard) {}

  //   Errors  FailedPrecondition: the call is of another epoch than the shard's, or not the next of
  //           its stream; ResourceExhausted: a payload above kPayloadMax; those of replay().
  void take(wire::Shard::RecordParams::Reader call);

 private:
  void verify(wire::Shard::RecordParams::Reader call) const;

  // A record of which further calls are to come.
  struct Begun {
    capnp::MallocMessageBuilder head;
    std::vector<std::byte> payload;
  };
  struct Stream {
    Epoch epoch;
    std::uint64_t number = 0;  // 0: there is none
    std::uint64_t next = 0;    // record
  };

  Shard& shard_;
  Stream stream_;
  std::unique_ptr<Begun> begun_;
};

}  // namespace cairn::ps
