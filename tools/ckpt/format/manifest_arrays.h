// How a checkpoint's variables are named as arrays, and its manifest as metadata beside them: what
// an export writes and an import finds again.
//   Thread  any.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "storage/manifest.h"
#include "tools/ckpt/format/array_file.h"

namespace cairn::tools::ckpt {

// A dense variable NAME is an array NAME; a hashed one, or the rows that were touched of a dense
// one, NAME/keys and NAME/values. A slot is NAME/SLOT.
inline std::string keys_name(const std::string& variable) { return variable + "/keys"; }
inline std::string values_name(const std::string& variable) { return variable + "/values"; }
inline std::string slot_name(const std::string& variable, const std::string& slot) {
  return variable + "/" + slot;
}

// The list of several files: FILE.index.json beside FILE-00001-of-00003.
inline constexpr const char* kIndexEnding = ".index.json";
std::vector<std::string> shard_files(const std::string& file, std::size_t count);

// The manifest, whose databases are left out, and the count of updates of each variable.
using Updates = std::map<std::string, std::int64_t>;
ArrayMetadata metadata_of(const storage::Manifest& manifest, const Updates& updates);
// Errors  DataLoss: the metadata was changed. `manifest` stays as it is where there is none.
//   Result  whether there is one.
bool read_metadata(const ArrayMetadata& metadata, const std::string& path,
                   storage::Manifest& manifest, Updates& updates);

}  // namespace cairn::tools::ckpt
