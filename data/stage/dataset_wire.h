// A Dataset as bytes (data/pipeline.capnp), for the wire and for checkpoints: a magic number, a
// version and a checksum of 8 bytes each, then a Cap'n Proto message.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/feature/dataset_bounds.h"

namespace cairn {

// Equal descriptions give equal bytes.
//   Errors  InvalidArgument: the description is larger than kDatasetBytesMax.
std::vector<std::byte> serialize(const Dataset& dataset);
// Reads and verifies, as the calls of Dataset do.
//   Errors  InvalidArgument: the bytes are damaged, of another version, or beyond a limit; nothing
//           is allocated on a sender's word alone.
Dataset parse_dataset(std::span<const std::byte> bytes);
// A hash of the description in 64 bits. An IteratorState is bound to it, and the name of a cache
// file ends in it.
std::uint64_t fingerprint(const Dataset& dataset);
// Whether an iterator over `dataset` can be opened at `state`, as far as their fingerprints tell.
// True also for bytes that are not a state: opening them says why.
bool is_state_of(const Dataset& dataset, std::span<const std::byte> state);

}  // namespace cairn
