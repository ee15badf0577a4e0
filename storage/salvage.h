// Reads a damaged database as far as it is sound: `cairn ckpt repair`.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/manifest.h"

namespace cairn::storage {

// Rows of a variable that could not be read: at most these, since damage hides where it ends.
struct LostRows {
  std::string variable;
  std::int64_t begin = 0, end = 0;
  std::string why;  // names the file
  bool operator==(const LostRows&) const = default;
};

// Hands each sound record of the database's sorted files to `take`, in ascending order of keys. A
// record is sound if its own checksum is right, so that damage costs the blocks that it is in, and
// a file that is missing, or has lost its index, its own rows alone. Nothing but sorted files is
// needed: the database's descriptor may be gone.
//   folder     the checkpoint's
//   variables  the manifest's, among which what is lost is looked for
//   Result     lost ranges, in the order of keys
//   Thread  any that may block on files.
std::vector<LostRows> salvage_database(
    const std::string& folder, const DatabaseInfo& database,
    const std::vector<VariableInfo>& variables,
    const std::function<void(std::string_view key, std::string_view value)>& take);

}  // namespace cairn::storage
