// idx(): files of the IDX format side by side, a column each. All examples of a file have one size,
// so any is found by multiplication; only heads are read to count them.
#include <algorithm>

#include "data/idx_file.h"
#include "data/stage.h"

namespace cairn {
namespace {

constexpr std::int64_t kIdxBytesAtOnce = 1 << 20;

class IdxSource final : public Stage {
 public:
  explicit IdxSource(std::shared_ptr<const StageSpec> spec)
      : spec_(std::move(spec)),
        columns_(std::get<IdxSpec>(spec_->kind).columns),
        layout_(std::make_shared<BlockLayout>(spec_->element)),
        rows_of_(idx_counts(std::get<IdxSpec>(spec_->kind))) {
    std::int64_t row = 1;
    for (const ColumnSpec& column : spec_->element.columns)
      row = std::max(row, column.type.shape.elements() *
                              static_cast<std::int64_t>(dtype_bytes(column.type.dtype)));
    rows_at_once_ = std::max<std::int64_t>(1, kIdxBytesAtOnce / row);
  }

  Block next(std::int64_t most) override {
    while (file_ < rows_of_.size() && row_ == rows_of_[file_]) next_file();
    if (file_ == rows_of_.size()) return {};
    if (files_.empty())
      for (const IdxColumn& column : columns_)
        files_.push_back(std::make_unique<IdxFile>(column.paths[file_], column));
    const std::int64_t rows = std::min({most, rows_of_[file_] - row_, rows_at_once_});
    std::vector<Tensor> columns;
    for (const auto& file : files_) columns.push_back(file->read(row_, rows));
    row_ += rows;
    return Block::packed(layout_, rows, std::move(columns));
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = 0;
    while (gone < count && file_ < rows_of_.size()) {
      const std::int64_t here = std::min(count - gone, rows_of_[file_] - row_);
      gone += here;
      row_ += here;
      if (row_ == rows_of_[file_]) next_file();
    }
    return gone;
  }
  // The files of a dataset of one each stay open: a gzip file need not be decompressed again.
  void restart(std::uint64_t) override {
    if (rows_of_.size() > 1) files_.clear();
    file_ = 0;
    row_ = 0;
  }
  void save(StateWriter& out) const override {
    out.number(file_);
    out.number(static_cast<std::uint64_t>(row_));
  }
  void load(StateReader& in) override {
    file_ = static_cast<std::size_t>(
        in.number_up_to(static_cast<std::int64_t>(rows_of_.size()), "the number of the file"));
    row_ = in.number_up_to(file_ < rows_of_.size() ? rows_of_[file_] : 0, "the example");
  }
  std::int64_t skipped() const override { return 0; }

 private:
  void next_file() {
    ++file_;
    row_ = 0;
    if (rows_of_.size() > 1) files_.clear();
  }

  std::shared_ptr<const StageSpec> spec_;
  const std::vector<IdxColumn>& columns_;
  std::shared_ptr<const BlockLayout> layout_;
  std::vector<std::int64_t> rows_of_;
  std::int64_t rows_at_once_ = 1;
  std::vector<std::unique_ptr<IdxFile>> files_;  // those of file_; none: not open yet
  std::size_t file_ = 0;
  std::int64_t row_ = 0;
};

}  // namespace

// The columns' files stand side by side, so each must have as many examples as the first.
std::vector<std::int64_t> idx_counts(const IdxSpec& spec) {
  std::vector<std::int64_t> counts;
  for (std::size_t file = 0; file < spec.columns.front().paths.size(); ++file) {
    for (const IdxColumn& column : spec.columns) {
      const std::int64_t count = read_idx_head(column.paths[file], column).count;
      if (&column == &spec.columns.front()) counts.push_back(count);
      if (count != counts.back())
        throw InvalidArgumentError(str(spec.columns.front().paths[file], " has ", counts.back(),
                                       " examples, and ", column.paths[file], " has ", count,
                                       "; do they belong together?"));
    }
  }
  return counts;
}

StagePtr make_idx_source(std::shared_ptr<const StageSpec> spec) {
  return std::make_unique<IdxSource>(std::move(spec));
}

}  // namespace cairn
