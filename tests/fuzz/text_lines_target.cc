#include "tests/fuzz/read_dataset.h"

namespace cairn::fuzz {

// Bits of the choice: short lines only, no blank ones, leaving bad ones out, stages above.
void text_lines(Bytes input) {
  const unsigned choice = take_choice(input);
  const TemporaryFile file(input);
  TextOptions options{.skip_blank = (choice & 2) != 0, .on_error = policy_of(choice, 4)};
  if ((choice & 1) != 0) options.line_bytes_max = 9;
  read_or_refuse([&] { return Dataset::text_lines(file.path(), options); }, (choice & 8) != 0);
}

}  // namespace cairn::fuzz
