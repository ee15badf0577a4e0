// A source whose files are cut into records (RecordReader) of which each becomes a row
// (RowDecoder).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset/file_source.h"
#include "data/dataset/stage.h"
#include "data/file/byte_source.h"
#include "data/file/record_reader.h"
#include "data/format/files_stage.h"

namespace cairn {

// Makes columns of records, row by row.
//   Thread  one at a time.
class RowDecoder {
 public:
  virtual ~RowDecoder() = default;
  // Adds the record as a row. false: it is a bad one, `fault` says why, and nothing was added.
  virtual bool add(std::string_view record, RecordFault& fault) = 0;
  virtual std::int64_t rows() const = 0;
  virtual std::size_t bytes() const = 0;  // roughly, of all rows
  // The columns of all rows, in the order of the source's element. None are left.
  virtual std::vector<Tensor> take() = 0;
  virtual void clear() = 0;
};

// Each record is a string.
std::unique_ptr<RowDecoder> make_text_rows();

struct RowStageParts {
  FilesRules files;
  std::function<std::unique_ptr<RecordReader>(const std::string& path,
                                              std::unique_ptr<ByteSource> bytes)>
      open;
  std::unique_ptr<RowDecoder> rows;  // may refer to the schema of the request's stage
  const char* record = "line";       // a record's name in messages
};

StagePtr make_row_stage(RowStageParts parts, SourceRequest request);

// The values that were gathered, as a tensor; the vector is empty afterwards, and keeps its memory.
template <typename T>
Tensor take_tensor(Shape shape, std::vector<T>& values) {
  Tensor made = Tensor::of<T>(std::move(shape), std::span<const T>(values));
  values.clear();
  return made;
}

}  // namespace cairn
