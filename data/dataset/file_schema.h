// Options of the sources of text lines, libsvm lines and IDX files. They are values that
// describe, like a Dataset, whose calls check them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "data/dataset/schema.h"

namespace cairn {

// Dataset::text_lines(): each line is an example of one string column.
struct TextOptions {
  std::string column = "line";
  bool skip_blank = false;                 // leave out lines of blanks and tabs alone
  std::int64_t line_bytes_max = 16 << 20;  // a longer line is a bad one; at most 1 GB
  OnError on_error = OnError::kFail;       // how a bad line is treated
  EmptyFiles empty_files = EmptyFiles::kFail;
  bool operator==(const TextOptions&) const = default;
};

// Dataset::libsvm(): lines "label index:value index:value # comment", in svmlight's form also with
// "qid:number" behind the label. Each column is named here.
struct LibsvmSchema {
  // Ragged, and as long as each other: int64 ids from 0, and their float32 values, both in the
  // order of the line.
  std::string ids = "ids", values = "values";
  // float32; with `positive` texts ("+1") 1 for those and 0 for others, as in a CSV file.
  CsvLabel label = {.column = "label"};
  // int64, and every line must then have one; empty: a qid is read past.
  std::string qid = "";
  bool zero_based = false;     // indexes in the file begin at 0; else at 1, and become ids from 0
  std::int64_t dimension = 0;  // an id of so much or more makes its line a bad one; 0: any
  bool operator==(const LibsvmSchema&) const = default;
};

// Dataset::idx(): the files of one column, one after another. In each, values have the shape and
// the type that the column says, but int8 and int16 are read as int32.
struct IdxColumn {
  std::string name;
  std::vector<std::string> paths;
  DType dtype = DType::kUint8;  // or int32, float32, float64
  Shape shape = {};             // of one example: {28, 28}; {}: one value
  bool operator==(const IdxColumn&) const = default;
};

struct FileOptions {
  OnError on_error = OnError::kFail;  // how a bad line or record is treated
  EmptyFiles empty_files = EmptyFiles::kFail;
  bool operator==(const FileOptions&) const = default;
};

}  // namespace cairn
