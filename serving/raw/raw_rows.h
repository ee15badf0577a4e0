// RawRows: a request's body in the form of the training data becomes what the model takes.
//
//   RawRows rows(model->about());
//   RawExamples batch = rows.read("39,State-gov,...\n", RawForm::kText);
//   model->predict(batch.columns, 0);
//
// The body goes through the reader, the features and the vocabularies that the model was saved
// with, the same code that `cairn predict` sends a file through, so that the columns have the same
// bits. These stay open from one body to the next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/tensor/element.h"
#include "model/saved/saved_model.h"

namespace cairn::serving {

enum class RawForm : std::uint8_t {
  // Text in the format of the training data's files: CSV (with a header line if those have one),
  // JSON lines, libsvm, or lines of text.
  kText,
  // Objects by column name, for models trained from CSV or JSON lines: one object, a list of them,
  // or JSON lines.
  kJson,
};

// Bounds on one body. The number of bytes in it is the caller's to bound.
struct RawLimits {
  std::int64_t examples_max = 65'536;
  std::size_t bytes_max = std::size_t{256} << 20;  // of the columns that are made of it
};

struct RawExamples {
  Element columns;  // those of SavedModel::input, in that order: one batch
  std::int64_t examples = 0;
};

//   Thread  one at a time.
//   Cost    between bodies, the readers' buffers: a quarter of a megabyte, and of JSON twice the
//           largest body so far at most.
class RawRows {
 public:
  // Copies what it needs of `model`, and opens nothing yet.
  explicit RawRows(const SavedModel& model, const RawLimits& limits = {});
  ~RawRows();
  RawRows(const RawRows&) = delete;
  RawRows& operator=(const RawRows&) = delete;

  // All rows of `body`. The label's column may be there or not, and is not looked at; in CSV
  // without a header the number of cells in the first row shows which, and all rows have to agree.
  // Unknown keys of JSON objects are passed over. A value that is missing is the column's default;
  // without one it is an error, as json_lines() says (data/format/json/json_lines.h).
  //   Errors  InvalidArgument: no rows, or more than the limits allow; a row that does not fit the
  //           training data's form ("body:LINE:CHARACTER: column ..." or, of JSON, "body: row N,
  //           character N: ...", all from 1), also where the model's files would have it left out;
  //           rows that the model's data leaves out by a condition. Unimplemented: the model's data
  //           has no such form; names one that works. FailedPrecondition: the model was saved
  //           without examples, or with columns that come from no file.
  //           After an error the next body is read as if nothing had been.
  RawExamples read(std::string_view body, RawForm form);

 private:
  class Reader;
  Reader& reader(RawForm form);

  const SavedModel model_;
  const RawLimits limits_;
  std::unique_ptr<Reader> text_, json_;
};

}  // namespace cairn::serving
