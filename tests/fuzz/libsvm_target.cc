#include "tests/fuzz/read_dataset.h"

namespace cairn::fuzz {

// Bits of the choice: indexes from 0, a dimension, a column of qids, leaving bad lines out, stages
// above, texts as labels.
void libsvm(Bytes input) {
  const unsigned choice = take_choice(input);
  const TemporaryFile file(input);
  LibsvmSchema schema{.zero_based = (choice & 1) != 0};
  if ((choice & 2) != 0) schema.dimension = 100;
  if ((choice & 4) != 0) schema.qid = "query";
  if ((choice & 32) != 0) schema.label = {"label", {"1", "+1"}, {"-1"}};
  const FileOptions options{policy_of(choice, 8)};
  read_or_refuse([&] { return Dataset::libsvm(file.path(), schema, options); }, (choice & 16) != 0);
}

}  // namespace cairn::fuzz
