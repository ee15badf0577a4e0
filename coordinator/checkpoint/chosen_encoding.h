// Which variables CheckpointPolicy::encoding is said of.
//   Thread  any.
#pragma once
#include <string>
#include <vector>

#include "core/graph/variable.h"
#include "storage/manifest.h"
#include "storage/row_encoding.h"

namespace cairn {

// InvalidArgument: a pattern is none.
void verify_encoding(const storage::RowEncoding& encoding);
// Hashed variables, and those that a pattern matches, of float32.
storage::ChosenEncoding choose_encoding(const storage::RowEncoding& encoding,
                                        const std::vector<const VariableSpec*>& variables);
// States in the manifest's variable how it is held.
void note_encoding(const storage::ChosenEncoding& encoding, storage::VariableInfo& variable);
// For the log, as in ", 3 variables with rows as bf16, slots dropped, zstd"; empty: all is exact.
std::string encoding_text(const storage::RowEncoding& asked, const storage::ChosenEncoding& chosen);

}  // namespace cairn
