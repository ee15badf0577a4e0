// The plan of an import: the variables of the new checkpoint, and the arrays that their rows come
// from. It is made, and found wrong, before anything is written.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/manifest.h"
#include "tools/ckpt/bundle_slots.h"
#include "tools/ckpt/format/array_file.h"

namespace cairn::tools::ckpt {

struct ImportedVariable {
  storage::VariableInfo variable;
  std::int64_t updates = 0;
  std::uint64_t rows = 0;             // that the arrays have
  std::optional<StoredArray> keys;    // their numbers; empty: from 0 on
  std::vector<StoredArray> fields{};  // as storage::RowFields has them
};
struct ImportPlan {
  storage::Manifest manifest;  // without databases
  std::vector<ImportedVariable> variables;
};

// Where the file has a manifest, as those of an export, its variables come from the arrays of their
// names; otherwise each array is a dense variable of that name, and NAME/keys with NAME/values a
// hashed one, whose ids are below `rows`[NAME].
// `slots`: take_bundle_slots().
//   Errors  InvalidArgument, listing all that is wrong: arrays that are missing, or have another
//           type than the manifest says, or belong to no variable.
ImportPlan plan_import(const std::string& file, ArrayListing listing,
                       const std::map<std::string, std::int64_t>& rows,
                       const std::map<std::string, BundleSlots>& slots = {});

// The arrays of a file, or of all files that an index names.
ArrayListing list_arrays(const std::string& file);

}  // namespace cairn::tools::ckpt
