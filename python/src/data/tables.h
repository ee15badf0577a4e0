// Tables as columns of tensors: what pandas, polars, pyarrow, duckdb and whatever else has
// __arrow_c_stream__ pass, and columns as such a table again.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"
#include "data/dataset/dataset.h"
#include "interpreter.h"

namespace cairn::python {

// In order, each as long as the table has rows. A ragged column, of lists, is two: NAME has the
// values of all rows one after another, and NAME/row_splits behind it says where each row begins.
using Columns = std::vector<std::pair<std::string, Tensor>>;

// Stands for the nulls of a column.
struct EmptyList {};  // a null list has no values
using NullValue = std::variant<std::monostate, bool, std::int64_t, double, std::string, EmptyList>;
using NullValues = std::vector<std::pair<std::string, NullValue>>;  // by column

struct TableOptions {
  std::optional<std::vector<std::string>> columns = std::nullopt;  // these, in this order
  NullValues defaults = {};
  // Memory that its owner may write to is copied: pandas' numbers. Arrow's is never written to.
  bool copy = true;
  // Nulls without a default become NaN, and whole numbers float64 then; texts "", lists empty. But
  // not in the column `complete`.
  bool nulls_are_missing = false;
  std::string complete = {};
  std::vector<std::string> without = {};  // columns to leave out; other names are ignored
};
// Facts about a table that reading it finds.
struct TableFacts {
  std::vector<std::string> names;       // of all columns, in order
  std::vector<std::string> categories;  // of columns whose type is one of categories
};

// Whether an object is a table: it has __arrow_c_stream__, or is a DataFrame of pandas.
bool is_table(nb::handle object);
// Its columns. No value moves where the layout is Cairn's: numbers in one piece without nulls.
//   Errors  TypeError: no table. InvalidArgument: a column of a type that Cairn has not, a null
//           without a default, two columns of one name, a name in `options` that is none; the
//           message names column, row and cure.
// `facts` receives what was found, unless it is null.
Columns columns_of_table(nb::handle table, const TableOptions& options = {},
                         TableFacts* facts = nullptr);
// {"age": 0.0} of Python.
NullValues null_values_of(nb::handle defaults);

// The columns of a dict: arrays, and Ragged(values, row_splits).
Columns columns_of_mapping(nb::handle columns, bool share);
// The same of a mapping, of a table, of an array (column "x"), and of a tuple (x, y) or (x, y,
// sample_weight), whose y is the column `label`, or "y" if that is empty.
Columns columns_of_slices(nb::handle data, std::string* label, bool share);
// An element for each row. With ragged columns it is read in this process alone, as
// from_generator() is.
Dataset dataset_of_columns(Columns columns, const std::string& label);

// The same dataset with its tables of more than `bytes_min` bytes, and its ragged ones, in files of
// `folder`, which workers map: a description holds 64 MiB at most. The files' names are those of
// their contents, so that a run that goes on finds its own again; what is there is not written
// again.
//   Errors  those of writing. NotFound: there is no such folder, and its parent is none.
Dataset spilled(const Dataset& dataset, const std::string& folder, std::int64_t bytes_min);
// The columns behind a dataset_of_columns() with ragged ones; null: it is another dataset's.
std::shared_ptr<const Columns> columns_behind(const void* generator);

// ---- shared by the readers ----
// The names that are read, in order. `facts` receives all names.
//   Errors  InvalidArgument: two columns of one name; a name in `options` that no column has.
std::vector<std::string> chosen_columns(const std::vector<std::string>& names,
                                        const TableOptions& options, TableFacts* facts);
// InvalidArgument: the null in this row has no value to stand for it.
[[noreturn]] void refuse_null(const std::string& column, std::int64_t row);
// The value as one element of this type; of a whole number for one that has no fractions.
//   Errors  InvalidArgument: it does not fit; names the column.
Tensor null_tensor(const std::string& column, DType dtype, const NullValue& value);

}  // namespace cairn::python
