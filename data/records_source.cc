// Flat binary records. All have the same size, so any record is found by multiplication: skipping,
// resuming and counting read nothing.
#include <algorithm>
#include <bit>
#include <cstring>

#include "data/byte_source.h"
#include "data/label_range.h"
#include "data/stage.h"

namespace cairn {
namespace {

static_assert(std::endian::native == std::endian::little,
              "records are little-endian, and read as they lie");

constexpr std::int64_t kBytesAtOnce = 1 << 20;

// Copies the field at `offset` of each record to a column of its own. Records lie row by row,
// batches are wanted column by column.
void deal_out(const char* records, std::int64_t rows, std::size_t record, std::size_t offset,
              std::size_t bytes, std::byte* out) {
  const char* from = records + offset;
  if (bytes == 4) {  // a constant size becomes one move
    for (std::int64_t i = 0; i < rows; ++i, from += record, out += 4) std::memcpy(out, from, 4);
  } else {
    for (std::int64_t i = 0; i < rows; ++i, from += record, out += bytes)
      std::memcpy(out, from, bytes);
  }
}

class RecordsSource final : public Stage {
 public:
  explicit RecordsSource(std::shared_ptr<const StageSpec> spec)
      : spec_(std::move(spec)),
        records_(std::get<RecordsSpec>(spec_->kind)),
        label_range_(label_range(records_.schema)),
        layout_(std::make_shared<BlockLayout>(spec_->element)) {
    record_ = static_cast<std::int64_t>(record_bytes(records_.schema));
    for (const auto& path : records_.paths) rows_of_.push_back(count(path));
  }

  Block next(std::int64_t most) override {
    while (file_ < rows_of_.size() && row_ == rows_of_[file_]) next_file();
    if (file_ == rows_of_.size()) return {};
    std::int64_t rows =
        std::min({most, rows_of_[file_] - row_, std::max<std::int64_t>(1, kBytesAtOnce / record_)});
    read(rows);
    row_ += rows;
    std::vector<Tensor> columns;
    std::size_t offset = 0;
    for (const auto& column : spec_->element.columns) {
      Tensor values(column.type.dtype, column.type.shape.with_front(rows));
      std::size_t bytes =
          static_cast<std::size_t>(column.type.shape.elements()) * dtype_bytes(column.type.dtype);
      deal_out(buffer_.data(), rows, static_cast<std::size_t>(record_), offset, bytes,
               values.mutable_raw());
      offset += bytes;
      if (!label_range_.any() && column.name == records_.schema.label)
        verify_label(values, row_ - rows);
      columns.push_back(std::move(values));
    }
    return Block::packed(layout_, rows, std::move(columns));
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = 0;
    while (gone < count && file_ < rows_of_.size()) {
      std::int64_t here = std::min(count - gone, rows_of_[file_] - row_);
      gone += here;
      row_ += here;
      if (row_ == rows_of_[file_]) next_file();
    }
    return gone;
  }
  void restart(std::uint64_t) override {
    file_ = 0;
    row_ = 0;
    bytes_.reset();
  }
  void save(StateWriter& out) const override {
    out.number(file_);
    out.number(static_cast<std::uint64_t>(row_));
  }
  void load(StateReader& in) override {
    file_ = static_cast<std::size_t>(
        in.number_up_to(static_cast<std::int64_t>(rows_of_.size()), "the number of the file"));
    row_ = in.number_up_to(file_ < rows_of_.size() ? rows_of_[file_] : 0, "the record");
  }
  std::int64_t skipped() const override { return 0; }

 private:
  // A file that does not hold whole records has another schema or was cut short. Both are told when
  // the dataset is opened, and not when the last record is met.
  std::int64_t count(const std::string& path) const {
    auto bytes = static_cast<std::int64_t>(file_bytes(path));
    if (bytes % record_ != 0)
      throw InvalidArgumentError(
          str(path, ": ", bytes, " bytes are not a whole number of records of ", record_,
              "; is the schema that of this file, or is the file cut short?"));
    return bytes / record_;
  }
  // `first` is the number of the first record of `labels` in its file.
  void verify_label(const Tensor& labels, std::int64_t first) const {
    const auto verify = [&](auto values) {
      const auto in_range = [this](double label) { return label_range_.holds(label); };
      const auto bad = std::find_if_not(values.begin(), values.end(), in_range);
      if (bad == values.end()) return;
      const auto values_each = static_cast<std::int64_t>(values.size()) / labels.shape()[0];
      throw InvalidArgumentError(
          str(records_.paths[file_], ": record ", first + (bad - values.begin()) / values_each,
              " (from 0), field \"", records_.schema.label, "\": ", +*bad, " is not ",
              label_range_.text(), "; mend the record, or name another label"));
    };
    switch (labels.dtype()) {
      case DType::kFloat32: return verify(labels.values<float>());
      case DType::kFloat64: return verify(labels.values<double>());
      case DType::kInt32: return verify(labels.values<std::int32_t>());
      case DType::kInt64: return verify(labels.values<std::int64_t>());
      case DType::kUint8: return verify(labels.values<std::uint8_t>());
      default: return;
    }
  }
  void next_file() {
    ++file_;
    row_ = 0;
    bytes_.reset();
  }
  // A file may be shortened by somebody else after its size was taken.
  void read(std::int64_t rows) {
    const std::string& path = records_.paths[file_];
    if (!bytes_) bytes_ = open_plain_bytes(path);
    bytes_->seek(static_cast<std::uint64_t>(row_ * record_));
    buffer_.resize(static_cast<std::size_t>(rows * record_));
    for (std::size_t have = 0; have < buffer_.size();) {
      std::size_t got = bytes_->read(buffer_.data() + have, buffer_.size() - have);
      if (got == 0) throw DataLossError(str(path, " became shorter while it was read"));
      have += got;
    }
  }

  std::shared_ptr<const StageSpec> spec_;
  const RecordsSpec& records_;
  const LabelRange label_range_;
  std::shared_ptr<const BlockLayout> layout_;
  std::int64_t record_ = 1;  // bytes
  std::vector<std::int64_t> rows_of_;
  std::size_t file_ = 0;
  std::int64_t row_ = 0;
  std::unique_ptr<ByteSource> bytes_;
  std::vector<char> buffer_;
};

}  // namespace

StagePtr make_records_source(std::shared_ptr<const StageSpec> spec) {
  return std::make_unique<RecordsSource>(std::move(spec));
}

}  // namespace cairn
