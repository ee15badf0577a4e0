#include "tests/fuzz/read_dataset.h"

namespace cairn::fuzz {

// Bits of the choice: a scalar or [2, 3] per example; numbers of 32 bits; reals; stages above; two
// columns of the file.
void idx(Bytes input) {
  const unsigned choice = take_choice(input);
  const TemporaryFile file(input);
  IdxColumn column{"a", {file.path()}};
  if ((choice & 1) != 0) column.shape = {2, 3};
  if ((choice & 2) != 0) column.dtype = DType::kInt32;
  if ((choice & 4) != 0) column.dtype = DType::kFloat32;
  std::vector<IdxColumn> columns{column};
  column.name = "b";
  if ((choice & 16) != 0) columns.push_back(column);
  read_or_refuse([&] { return Dataset::idx(columns); }, (choice & 8) != 0);
}

}  // namespace cairn::fuzz
