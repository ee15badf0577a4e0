// Reading for stages that hold many elements at once.
#pragma once
#include <cstddef>
#include <cstdint>

#include "data/dataset/stage.h"

namespace cairn {

// The next `wanted` elements in one block; fewer only at the end of the data.
//   Errors  ResourceExhausted: they take more than `bytes_max`; `what` ("a batch") is to blame.
Block next_whole(Stage& input, std::int64_t wanted, std::size_t bytes_max, const char* what);

}  // namespace cairn
