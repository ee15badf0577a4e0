// CommunicationOptions: how the members of a group that spans processes exchange values; as
// tf.distribute.experimental.CommunicationOptions, with bounds where that has none.
#pragma once
#include <cstdint>

#include "collective/base/collective.h"

namespace cairn {

// How and, for replicas of MultiWorkerMirroredStrategy on GPUs, where members exchange values.
enum class CommunicationImplementation : std::uint8_t {
  // A tree for what is small, which costs fewest waits; a ring, which moves fewest bytes. Where
  // every replica has a GPU of its own and all processes have the same version of NCCL, the GPUs
  // sum by NCCL instead.
  kAuto,
  // A ring for all all-reduces, through the host's memory.
  kRing,
  // As kAuto; but the strategy is refused if its GPUs cannot sum by NCCL.
  kNccl,
};

struct CommunicationOptions {
  // The values of one all-reduce are joined, in the order given, and cut into packs of this many
  // bytes. Packs are begun in order, and several are under way at once. 0 means 4 MB. A value above
  // 4 MB per member counts as 4 MB, because the message of one pack must not hold up others.
  std::int64_t bytes_per_pack = 0;
  // How long a call waits for members that do not make theirs. 0: kCollectiveTimeout, since a wait
  // without a bound would hide a program whose members do not make the same calls.
  Duration timeout{0};
  CommunicationImplementation implementation = CommunicationImplementation::kAuto;
  // float32 travels as bfloat16: half the bytes, and each hop of a sum rounds to 8 bits of
  // significand. All members still end with the same bits. GPUs that sum by NCCL send float32.
  bool bfloat16_on_wire = false;
};

// The options with 0 replaced by what it stands for.
//   Errors  InvalidArgument: bytes_per_pack or timeout is negative.
CommunicationOptions checked(CommunicationOptions options, int members);

}  // namespace cairn
