// ColumnRows: batches of rows of columns that lie in memory as a whole.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/tensor/element.h"

namespace cairn::serving {

//   Thread  any; immutable.
class ColumnRows {
 public:
  // The columns of `input`, by name; others are passed over. `output` is what is computed from
  // them, for messages.
  //   Errors  InvalidArgument: a column is missing, or has another number of rows than the others;
  //           row splits that do not fit their values.
  ColumnRows(ElementSpec input, const std::map<std::string, Tensor>& columns,
             const std::string& output);

  std::int64_t rows() const { return rows_; }
  // The rows [begin, end) as a batch of `input`.
  Element between(std::int64_t begin, std::int64_t end) const;

 private:
  bool is_splits(std::size_t i) const;
  // The row splits of a column that is ragged; null: it is not.
  const Tensor* splits_of(std::size_t i) const;
  void verify_splits() const;

  const ElementSpec input_;
  std::vector<Tensor> whole_;
  std::int64_t rows_ = -1;
};

}  // namespace cairn::serving
