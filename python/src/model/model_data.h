// Data as fit(), evaluate() and predict() take it from Python: datasets, functions that make one,
// arrays, dicts of arrays, and tables.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "tables.h"
#include "values.h"

namespace cairn::python {

// Arrays of as many examples, as the columns of a dataset.
struct ArrayData {
  Columns columns;
  std::string label;    // the column of the only label; empty: several, or none
  std::string weights;  // the column of the examples' weights; empty: none
  std::int64_t count = 0;

  Dataset dataset() const { return dataset_of_columns(columns, label); }
  // All of them weigh 1.
  void add_equal_weights();
};

// The column of weights of arrays, as C++ calls it.
inline constexpr const char* kWeightsColumn = "sample_weight";

// `x`: an array, or a dict or a table by the names of the features. `y`: an array, the name of a
// column of x, a dict or a table by the names of the outputs, or None. `sample_weight`: one number
// for each example, the name of a column of x, or None.
//   Errors  TypeError: a generator. InvalidArgument: other numbers of examples; equal names; a name
//           that is no column's.
ArrayData array_data(nb::handle x, nb::handle y, nb::handle sample_weight, const char* call);
//   Errors  TypeError: it is read once.
void refuse_generator(nb::handle x, const char* call);
// A Dataset, which brings its label.
std::optional<Dataset> dataset_of(nb::handle x);
// The columns of a dict or of a table.
std::optional<Columns> columns_by_name(nb::handle x);
// Predictions as a table: columns by the outputs' names, "output" where there is none.
nb::object table_of_outputs(const std::vector<std::string>& names,
                            const std::vector<nb::object>& outputs);

}  // namespace cairn::python
