// Shared by the files that bind datasets.
#pragma once
#include <array>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "data/dataset/dataset.h"
#include "data/dataset/schema.h"
#include "interpreter.h"

namespace cairn::python {

// A word for a value of an enumeration.
//   Errors  InvalidArgument: another word; lists them.
template <typename E>
E chosen(const std::string& what, const std::string& word,
         std::initializer_list<std::pair<const char*, E>> words) {
  std::string all;
  for (const auto& [name, value] : words) {
    if (word == name) return value;
    all += str(all.empty() ? "" : ", ", '"', name, '"');
  }
  throw InvalidArgumentError(str(what, " is one of ", all, ", not \"", word, "\""));
}
inline OnError on_error_of(const std::string& word) {
  return chosen<OnError>("on_error", word,
                         {{"error", OnError::kFail}, {"skip", OnError::kSkipAndCount}});
}
inline EmptyFiles empty_files_of(const std::string& word) {
  return chosen<EmptyFiles>("empty_files", word,
                            {{"error", EmptyFiles::kFail}, {"skip", EmptyFiles::kSkip}});
}

// A path, or several: texts, or what has __fspath__.
std::vector<std::string> paths_of(nb::handle paths);
//   Errors  TypeError: not exactly one.
std::string path_of(nb::handle path);
// None: any number; an int: [0, n); a list: one bound for each value; or an IdRange.
IdRange id_range_of(nb::handle ids);
// A CsvSchema, or its columns: a list of CsvColumns, or a dict of dtypes by name. `label`: None,
// or what csv_label_of() takes, instead of the schema's.
CsvSchema csv_schema_of(nb::handle columns, nb::handle label);
// A CsvLabel, or the name of its column.
CsvLabel csv_label_of(nb::handle label);
// A list of FeatureColumns.
std::vector<FeatureColumn> feature_columns_of(nb::handle columns);
// Columns by name: {"x": "float32", "image": ("uint8", (28, 28))}, a list of ColumnSpecs, or an
// ElementSpec; one whose ColumnSpec is ragged is two.
ElementSpec element_spec_of(nb::handle columns, const std::string& label);
// An element as Python sees it: NumPy's arrays by column, ragged ones as cairn.Ragged.
nb::dict columns_of_element(const ElementSpec& spec, const Element& element);
// The element of this spec that a generator of Python's gave.
Element element_of(const ElementSpec& spec, nb::handle given);

void bind_schemas(nb::module_& m);
void bind_features(nb::module_& m);
void bind_tables(nb::module_& m);
void bind_arrow_out(nb::module_& m);
void bind_writers(nb::module_& m);
void bind_elements(nb::module_& m);  // before the dataset, whose iterator it is
void bind_sources(nb::class_<Dataset>& dataset);

}  // namespace cairn::python
