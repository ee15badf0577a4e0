// Tables as files, one for each column, that are mapped and never copied: for what a program has in
// memory and a description is too small for. The files hold one table's columns, and belong to this
// program: they are written by write_column_file() and are no format for exchange.
//
//   A file  64 bytes of head (magic, version, dtype, values, elements of a value, bytes behind the
//           head), then the values in row-major order, little-endian. Texts are as many int64
//           offsets as there are, and one more, then their bytes.
//   Ragged  a column NAME of all values, and behind it NAME/row_splits (core/tensor/element.h).
//   Files are immutable: they must not change or shrink while somebody reads them.
#pragma once
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/dataset/file_schema.h"
#include "data/dataset/file_source.h"

namespace cairn {

// Elements of column files side by side, file after file. `columns` are as idx() has them, of any
// dtype but bfloat16. Positions are exact, and counting and skipping read only heads.
//   Errors  InvalidArgument: columns that do not fit. When read, NotFound: this machine does not
//           see a file. DataLoss: a file is damaged. InvalidArgument: it is another column's.
Dataset column_files(std::vector<IdxColumn> columns, std::string label = "");

// Writes a column, whose rows are slices along axis 0. The file appears whole or not at all.
//   Errors  those of OutputFile (core/disk/output_file.h); InvalidArgument: no axis 0.
void write_column_file(const std::string& path, const Tensor& values);

struct ColumnFiles final : FileSource {
  ColumnFiles(std::vector<IdxColumn> columns_, std::string label_)
      : columns(std::move(columns_)), label(std::move(label_)) {}

  const char* format() const override { return kColumns; }
  ElementSpec element() const override;
  FileLists files() const override;
  FileSourcePtr over(FileLists files) const override;
  FileSourcePtr with_on_error(OnError) const override;
  bool counts() const override { return true; }
  std::int64_t count(const LineEvents& events) const override;
  TakesOver takes_over() const override { return TakesOver::kNothing; }
  std::unique_ptr<Stage> open(SourceRequest request) const override;
  void write(StageWriter& out) const override;

  // How many rows each of the files has, which all columns must agree on.
  std::vector<std::int64_t> counts_of_files() const;

  std::vector<IdxColumn> columns;
  std::string label;

  static constexpr const char* kColumns = "columns";
};

//   Errors  InvalidArgument: as parse_dataset().
Dataset read_column_files(const StageReader& in);

}  // namespace cairn
