#include "data/format/json/json_lines.h"
#include "tests/fuzz/read_dataset.h"

namespace cairn::fuzz {

// Bits of the choice: a label of texts, leaving bad lines out, a condition, stages above, defaults
// and indicators.
void json_lines(Bytes input) {
  const unsigned choice = take_choice(input);
  const TemporaryFile file(input);
  CsvSchema schema;
  schema.columns = {{.name = "a", .dtype = DType::kInt64},
                    {.name = "b", .dtype = DType::kString},
                    {.name = "c", .dtype = DType::kFloat32, .separator = '|'},
                    {.name = "d", .dtype = DType::kString, .separator = '|'}};
  if ((choice & 1) != 0) schema.label = {.column = "b", .positive = {"yes"}};
  if ((choice & 4) != 0) schema.where = {"a >= 0"};
  if ((choice & 16) != 0) {
    schema.columns[0].default_value = "7";
    schema.columns[0].missing_indicator = true;
    schema.columns[1].default_value = "none";
  }
  const CsvOptions options{policy_of(choice, 2)};
  read_or_refuse([&] { return cairn::json_lines({file.path()}, schema, options); },
                 (choice & 8) != 0);
}

}  // namespace cairn::fuzz
