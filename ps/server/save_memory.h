// The flag --save-memory of cairn-ps.
#pragma once
#include <string_view>

#include "ps/shard/shard.h"

namespace cairn::ps {

// "25%" or "0.25" of the bytes of the rows; or bytes with their unit, as "2 GB"; "auto" is the
// default share.
//   Errors  InvalidArgument: none of these.
SaveMemory parse_save_memory(std::string_view text);

}  // namespace cairn::ps
