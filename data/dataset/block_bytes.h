// A Block as bytes, for files that this machine writes and reads (data/stage/cache_file.cc):
// little-endian, values as they lie. It is not a format for other machines; a dataset travels as
// its description.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "data/dataset/block.h"

namespace cairn {

std::vector<std::byte> encode(const Block& block);
// The block in `bytes`.
//   Errors  InvalidArgument: the bytes do not hold a block of this layout. Row counts and row
//           splits are checked, the columns' types are not.
Block decode_block(std::span<const std::byte> bytes,
                   const std::shared_ptr<const BlockLayout>& layout);

}  // namespace cairn
