#include <string>
#include <vector>

#include "core/base/error.h"
#include "data/dataset/dataset.h"
#include "data/dataset/stage.h"
#include "data/file/memory_bytes.h"
#include "data/format/json/json_text.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/targets.h"

namespace cairn::fuzz {
namespace {

// Stages that read one text after another.
class Stages {
 public:
  explicit Stages(Dataset dataset) : dataset_(std::move(dataset)) {}
  // The columns of the rows, and what they were refused with.
  std::string read(std::string_view text) {
    text_ = text;
    std::string all;
    try {
      if (stages_)
        stages_->restart(0);
      else
        stages_ = open_stages(dataset_.last(), {.open_bytes = [this](const std::string&) {
                                return std::make_unique<MemoryBytes>(text_);
                              }});
      for (int i = 0; i < 100; ++i) {
        const Block block = stages_->next(3);
        if (block.empty()) break;
        for (const Tensor& column : block.columns()) all += described(column);
      }
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      all += error.what();
    }
    return all;
  }

 private:
  static std::string described(const Tensor& column) {
    std::string all = column.type().to_string();
    if (column.dtype() != DType::kString)
      return all.append(reinterpret_cast<const char*>(column.raw()), column.bytes());
    for (const std::string& value : column.string_values()) all += value + "\n";
    return all;
  }

  Dataset dataset_;
  std::string_view text_;
  std::unique_ptr<Stage> stages_;
};

Dataset dataset_of(unsigned choice) {
  CsvSchema schema;
  schema.columns = {{.name = "a", .dtype = DType::kInt64},
                    {.name = "b", .dtype = DType::kString},
                    {.name = "c", .dtype = DType::kFloat32, .separator = '|'},
                    {.name = "d", .dtype = DType::kString, .separator = '|'}};
  schema.header = (choice & 4) != 0;
  schema.cell_lines_max = 3;
  if ((choice & 8) != 0) schema.where = {"a >= 0"};
  if ((choice & 16) != 0) {
    schema.columns[0].default_value = "7";
    schema.columns[0].missing_indicator = true;
    schema.columns[1].skip = true;
    schema.columns[1].optional = !schema.header;
  }
  Dataset dataset = (choice & 3) == 0   ? Dataset::csv("text", schema)
                    : (choice & 3) == 1 ? Dataset::libsvm("text")
                                        : json_text("text", schema);
  if ((choice & 3) != 1 && (choice & 32) != 0)
    dataset = dataset.features({FeatureColumn::hashed("d", 100), FeatureColumn::as_is("a", 50)});
  return dataset;
}

}  // namespace

// Bits of the choice: CSV, libsvm or JSON, a header, a condition, defaults and a column that may be
// missing, features. The input's halves are two texts, and stages that have read the first must
// make of the second what new ones do.
void memory_text(Bytes input) {
  const unsigned choice = take_choice(input);
  const std::string_view all = text(input);
  const std::string_view first = all.substr(0, all.size() / 2), second = all.substr(all.size() / 2);
  Stages kept(dataset_of(choice)), fresh(dataset_of(choice));
  kept.read(first);
  CAIRN_CHECK(kept.read(second) == fresh.read(second), "a text depends on the one before it");
}

}  // namespace cairn::fuzz
