#include "data/dataset.h"
#include "data/dataset_iterator.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/temporary_file.h"

namespace cairn::fuzz {
namespace {

constexpr int kElementsMax = 200;

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

void read_some(DatasetIterator& iterator) {
  for (int i = 0; i < kElementsMax && iterator.next(); ++i) continue;
}

}  // namespace

void csv(Bytes input) {
  const unsigned choice = take_choice(input);
  const TemporaryFile file(input);
  const CsvOptions options{(choice & 8) != 0 ? OnError::kSkipAndCount : OnError{}};
  if ((choice & 64) == 0)
    may_refuse([&] {
      const Dataset lines = Dataset::csv(file.path(), schema_of(choice), options);
      const auto all = open(lines);
      read_some(*all);
      read_some(*open(lines, all->state()));
    });
  if ((choice & 64) != 0)
    may_refuse([&] {
      const auto some = open(
          Dataset::csv(file.path(), schema_of(choice), options).shard(3, 1).shuffle(4, 1).batch(2));
      some->skip_to(1);
      read_some(*some);
    });
}

}  // namespace cairn::fuzz
