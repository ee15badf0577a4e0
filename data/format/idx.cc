#include "data/format/idx.h"

#include <algorithm>
#include <numeric>

#include "data/dataset/dataset.h"
#include "data/file/idx_file.h"
#include "data/format/counted_stage.h"
#include "data/format/wire_parts.h"

namespace cairn {
namespace {

constexpr std::int64_t kIdxBytesAtOnce = 1 << 20;

class IdxSource final : public CountedStage {
 public:
  IdxSource(std::shared_ptr<const StageSpec> spec, const IdxFiles& idx)
      : CountedStage(idx.counts_of_files(), "the example"),
        spec_(std::move(spec)),
        columns_(idx.columns),
        layout_(std::make_shared<BlockLayout>(spec_->element)) {
    std::int64_t row = 1;
    for (const ColumnSpec& column : spec_->element.columns)
      row = std::max(row, column.type.shape.elements() *
                              static_cast<std::int64_t>(dtype_bytes(column.type.dtype)));
    rows_at_once_ = std::max<std::int64_t>(1, kIdxBytesAtOnce / row);
  }

  Block next(std::int64_t most) override {
    if (!find_row()) return {};
    if (files_.empty())
      for (const IdxColumn& column : columns_)
        files_.push_back(std::make_unique<IdxFile>(column.paths[file()], column));
    const std::int64_t rows = std::min({most, rows_left(), rows_at_once_});
    std::vector<Tensor> columns;
    for (const auto& file : files_) columns.push_back(file->read(row(), rows));
    pass(rows);
    return Block::packed(layout_, rows, std::move(columns));
  }
  std::int64_t skipped() const override { return 0; }

 private:
  // The files of a dataset of one each stay open: a gzip file need not be decompressed again.
  void leave_file() override {
    if (files() > 1) files_.clear();
  }

  std::shared_ptr<const StageSpec> spec_;
  const std::vector<IdxColumn>& columns_;  // of spec_
  std::shared_ptr<const BlockLayout> layout_;
  std::int64_t rows_at_once_ = 1;
  std::vector<std::unique_ptr<IdxFile>> files_;  // those of file(); none: not open yet
};

}  // namespace

// The columns' files stand side by side, so each must have as many examples as the first.
std::vector<std::int64_t> IdxFiles::counts_of_files() const {
  std::vector<std::int64_t> counts;
  for (std::size_t file = 0; file < columns.front().paths.size(); ++file) {
    for (const IdxColumn& column : columns) {
      const std::int64_t count = read_idx_head(column.paths[file], column).count;
      if (&column == &columns.front()) counts.push_back(count);
      if (count != counts.back())
        throw InvalidArgumentError(str(columns.front().paths[file], " has ", counts.back(),
                                       " examples, and ", column.paths[file], " has ", count,
                                       "; do they belong together?"));
    }
  }
  return counts;
}

std::int64_t IdxFiles::count(const LineEvents&) const {
  const std::vector<std::int64_t> counts = counts_of_files();
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

StagePtr IdxFiles::open(SourceRequest request) const {
  return std::make_unique<IdxSource>(std::move(request.stage), *this);
}

FileLists IdxFiles::files() const {
  FileLists lists;
  for (const IdxColumn& column : columns) lists.push_back(column.paths);
  return lists;
}

FileSourcePtr IdxFiles::over(FileLists files) const {
  auto copy = std::make_shared<IdxFiles>(*this);
  for (std::size_t i = 0; i < columns.size(); ++i) copy->columns[i].paths = std::move(files[i]);
  return copy;
}

FileSourcePtr IdxFiles::with_on_error(OnError) const { return std::make_shared<IdxFiles>(*this); }

// Each column has a file of its own, so that the label's may be left out.
FileSourcePtr IdxFiles::reading(std::vector<std::string> files) const {
  auto copy = std::make_shared<IdxFiles>(*this);
  std::string names;
  for (const IdxColumn& column : columns) names += (names.empty() ? "" : ", ") + column.name;
  if (files.size() + 1 == columns.size() && !label.empty()) {
    std::erase_if(copy->columns, [&](const IdxColumn& column) { return column.name == label; });
    copy->label.clear();
  }
  if (files.size() != copy->columns.size())
    throw InvalidArgumentError(
        str("the model's examples are IDX files, one for each of the columns ", names, ": got ",
            files.size(), "; give one for each, in that order",
            label.empty() ? "" : str(", or all but that of \"", label, "\"")));
  for (std::size_t i = 0; i < files.size(); ++i) copy->columns[i].paths = {files[i]};
  return copy;
}

// An IDX file has at most 255 dimensions.
ElementSpec IdxFiles::element() const {
  ElementSpec element;
  for (const IdxColumn& column : columns) {
    check_paths(column.paths);
    check_value_shape(column.name, column.shape);
    if (column.dtype != DType::kUint8 && column.dtype != DType::kInt32 &&
        column.dtype != DType::kFloat32 && column.dtype != DType::kFloat64)
      throw InvalidArgumentError(str("column \"", column.name,
                                     "\": an IDX file holds uint8, int32, float32 or float64, not ",
                                     dtype_name(column.dtype)));
    if (column.shape.rank() > 254 || column.name.ends_with(kRowSplits))
      throw InvalidArgumentError(str("column \"", column.name, "\": the name or the shape ",
                                     column.shape.to_string(), " is not possible"));
    const std::size_t files = columns.front().paths.size();
    if (column.paths.size() != files)
      throw InvalidArgumentError(str("idx: \"", column.name, "\" has ", column.paths.size(),
                                     " files, \"", columns.front().name, "\" ", files));
    element.columns.push_back({column.name, {column.dtype, column.shape}});
  }
  return checked_element(std::move(element.columns), label, "idx");
}

void IdxFiles::write(StageWriter& writer) const {
  auto out = writer.stage.initIdx();
  auto all = out.initColumns(static_cast<unsigned>(columns.size()));
  for (unsigned i = 0; i < all.size(); ++i) {
    const IdxColumn& column = columns[i];
    all[i].setName(column.name);
    write_texts(all[i].initPaths(static_cast<unsigned>(column.paths.size())), column.paths);
    all[i].setDtype(static_cast<std::uint8_t>(column.dtype));
    write_shape(all[i].initShape(static_cast<unsigned>(column.shape.rank())), column.shape);
  }
  out.setLabel(label);
}

Dataset read_idx(const StageReader& reader) {
  const auto in = reader.stage.getIdx();
  check_size(in.getColumns(), "columns");
  std::vector<IdxColumn> columns;
  for (auto column : in.getColumns())
    columns.push_back({read_text(column.getName()), read_texts(column.getPaths(), kPathsMax),
                       read_dtype(column.getDtype()), read_shape(column.getShape())});
  return Dataset::idx(std::move(columns), read_text(in.getLabel()));
}

Dataset Dataset::idx(std::vector<IdxColumn> columns, std::string label) {
  return dataset_of(std::make_shared<IdxFiles>(std::move(columns), std::move(label)));
}

}  // namespace cairn
