#include "data/stage/next_whole.h"

#include <algorithm>

namespace cairn {
namespace {

// A source makes as many elements as it is asked for before their bytes are counted, so it is
// asked for a limited number at a time: a batch of 2^31 elements then ends with an error and not
// with the machine's memory.
constexpr std::int64_t kAtOnce = 1 << 16;

}  // namespace

Block next_whole(Stage& input, std::int64_t wanted, std::size_t bytes_max, const char* what) {
  std::vector<Block> parts;
  std::int64_t size = 0;
  std::size_t bytes = 0;
  while (size < wanted) {
    Block part = input.next(std::min(wanted - size, kAtOnce));
    if (part.empty()) break;
    size += part.size();
    bytes += part.bytes();
    if (bytes > bytes_max)
      throw ResourceExhaustedError(str(what, " of ", wanted, " elements takes more than ",
                                       bytes_max, " bytes with its first ", size,
                                       "; make it smaller"));
    parts.push_back(std::move(part));
  }
  return Block::concat(std::move(parts));
}

}  // namespace cairn
