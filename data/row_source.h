// A source whose files are cut into records (RecordReader) of which each becomes a row
// (RowDecoder). What such sources have in common is here: files one after another, a shard() taken
// over, bad records, the state.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/pipes.h"
#include "data/record_reader.h"
#include "data/stage.h"

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

struct RowSourceParts {
  std::vector<std::string> paths;
  std::function<std::unique_ptr<RecordReader>(const std::string& path, Pipes pipes)> open;
  std::unique_ptr<RowDecoder> rows;
  OnError on_error = OnError::kFail;
  EmptyFiles empty_files = EmptyFiles::kFail;
  const char* record = "line";  // what a record is called
};

StagePtr make_row_source(const ElementSpec& element, RowSourceParts parts, const ShardSpec& shard,
                         SourceOptions options);

// The values that were gathered, as a tensor; the vector is empty afterwards, and keeps its memory.
template <typename T>
Tensor take_tensor(Shape shape, std::vector<T>& values) {
  Tensor made = Tensor::of<T>(std::move(shape), std::span<const T>(values));
  values.clear();
  return made;
}

}  // namespace cairn
