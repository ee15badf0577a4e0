#include "tools/job/toml/job_label.h"

#include <utility>

#include "core/base/error.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

std::optional<double> read_threshold(TomlTable& label, const std::string& key) {
  if (label.node(key) == nullptr) return std::nullopt;
  double threshold = 0;
  label.read(key, threshold);
  return threshold;
}

void read_truth(TomlTable& label, JobLabel& truth) {
  truth.above = read_threshold(label, "above");
  truth.below = read_threshold(label, "below");
  if (truth.above && truth.below)
    throw InvalidArgumentError(label.located("give either above or below"));
}

// Reads what an unknown label in a cell means: an error, or a row to leave out.
void read_unknown_label(TomlTable& label, JobLabel& truth) {
  std::string unknown = "error";
  label.read("unknown", unknown);
  label.one_of("unknown", unknown, {"error", "skip"});
  truth.skip_unknown = unknown == "skip";
}

}  // namespace

void read_label(TomlTable label, CsvLabel& made, bool named) {
  if (named) label.read("column", made.column);
  label.read("positive", made.positive);
  label.read("negative", made.negative);
  label.refuse_unknown();
}

// Numbers behind a threshold have no texts.
void read_cell_label(TomlTable label, CsvLabel& made, JobLabel& truth, bool named) {
  read_truth(label, truth);
  read_unknown_label(label, truth);
  if (truth.is_threshold() && label.has("positive"))
    throw InvalidArgumentError(
        label.located("above and below are of numbers, positive is of texts: give one of them"));
  read_label(std::move(label), made, named);
}

// A column's name, or a table with more.
void read_csv_label(TomlTable& table, CsvLabel& made, JobLabel& truth) {
  const toml::node* found = table.node("label");
  if (found != nullptr && found->is_string()) return table.read("label", made.column);
  read_cell_label(table.table("label"), made, truth, true);
}

// The same of formats without texts.
void read_named_label(TomlTable& table, std::string& column, JobLabel& truth) {
  const toml::node* found = table.node("label");
  if (found == nullptr || !found->is_table()) return table.read("label", column);
  TomlTable label(found->as_table(), table.path("label"), table.file());
  label.read("column", column);
  read_truth(label, truth);
  label.refuse_unknown();
}

}  // namespace cairn::tools
