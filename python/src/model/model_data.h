// Data as fit(), evaluate() and predict() take it from Python: datasets, functions that make one,
// arrays, and dicts of arrays.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset/dataset.h"
#include "values.h"

namespace cairn::python {

// Arrays of as many examples, as the columns of a dataset.
struct ArrayData {
  std::vector<std::pair<std::string, Tensor>> columns;
  std::string label;    // the column of the only label; empty: several, or none
  std::string weights;  // the column of the examples' weights; empty: none
  std::int64_t count = 0;

  Dataset dataset() const { return Dataset::from_tensor_slices(columns, label); }
  // All of them weigh 1.
  void add_equal_weights();
};

// The column of weights of arrays, as C++ calls it.
inline constexpr const char* kWeightsColumn = "sample_weight";

// `x`: an array, or a dict by the names of the features; `y`: an array, or a dict by the names of
// the outputs, or None; `sample_weight`: one number for each example, or None.
//   Errors  TypeError: a generator, or a y beside something else. InvalidArgument: other numbers of
//           examples; equal names.
ArrayData array_data(nb::handle x, nb::handle y, nb::handle sample_weight, const char* call);
// Whether it is a table or a Dataset, which brings its label: then as a Dataset.
std::optional<Dataset> dataset_of(nb::handle x);

}  // namespace cairn::python
