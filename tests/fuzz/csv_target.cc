#include "tests/fuzz/read_dataset.h"

namespace cairn::fuzz {
namespace {

// The choice has a bit a property: header, trim, tabs, skipping bad lines (below), lists in a cell,
// comments, stages above (below), and cells of several lines; strict where there are comments, no
// quotes where there are tabs, too.
CsvSchema schema_of(unsigned choice) {
  CsvSchema schema;
  schema.columns = {{.name = "a", .dtype = DType::kFloat32},
                    {.name = "b", .dtype = DType::kString},
                    {.name = "c", .dtype = DType::kInt64}};
  schema.columns[2].default_value = "7";
  schema.label = {"a", {}, {}};
  schema.header = (choice & 1) != 0;
  schema.trim = (choice & 2) != 0;
  if ((choice & 4) != 0) schema.delimiter = '\t';
  if ((choice & 16) != 0) schema.columns[1].separator = '|';
  if ((choice & 32) != 0) schema.comment = "#";
  schema.unknown = "?";
  if ((choice & 128) != 0) schema.cell_lines_max = 3;
  schema.strict = (choice & (128 | 32)) == (128 | 32);
  if ((choice & (128 | 4)) == (128 | 4)) schema.quote = 0;
  return schema;
}

}  // namespace

void csv(Bytes input) {
  const unsigned choice = take_choice(input);
  const TemporaryFile file(input);
  const CsvOptions options{policy_of(choice, 8)};
  read_or_refuse([&] { return Dataset::csv(file.path(), schema_of(choice), options); },
                 (choice & 64) != 0);
}

}  // namespace cairn::fuzz
