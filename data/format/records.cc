#include "data/format/records.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

#include "data/dataset/dataset.h"
#include "data/dataset/label_range.h"
#include "data/file/byte_source.h"
#include "data/file/decompressor.h"
#include "data/file/empty_file.h"
#include "data/format/counted_stage.h"
#include "data/format/wire_parts.h"

namespace cairn {
namespace {

static_assert(std::endian::native == std::endian::little,
              "records are little-endian, and read as they lie");

constexpr std::int64_t kRecordBytesAtOnce = 1 << 20;

std::int64_t record_bytes(const RecordSchema& schema) {
  std::int64_t bytes = 0;
  for (const auto& field : schema.fields)
    bytes += field.count * static_cast<std::int64_t>(dtype_bytes(field.dtype));
  return bytes;
}

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

class RecordsSource final : public CountedStage {
 public:
  RecordsSource(std::shared_ptr<const StageSpec> spec, const RecordFiles& records,
                LineEvents events)
      : CountedStage(records.counts_of_files(events), "the record"),
        spec_(std::move(spec)),
        records_(records),
        label_range_(label_range(records_.schema)),
        events_(std::move(events)),
        layout_(std::make_shared<BlockLayout>(spec_->element)),
        record_(record_bytes(records_.schema)) {}

  Block next(std::int64_t most) override {
    while (find_row()) {
      std::int64_t rows =
          std::min({most, rows_left(), std::max<std::int64_t>(1, kRecordBytesAtOnce / record_)});
      read(rows);
      pass(rows);
      std::vector<Tensor> columns = columns_of(rows);
      if (const std::vector<BadRecord> bad = bad_records(columns); !bad.empty()) {
        rows = leave_out(bad, rows);
        if (rows == 0) continue;
        columns = columns_of(rows);
      }
      return Block::packed(layout_, rows, std::move(columns));
    }
    return {};
  }

  std::int64_t skip(std::int64_t count) override {
    return records_.counts() ? CountedStage::skip(count) : Stage::skip(count);
  }
  void restart(std::uint64_t epoch) override {
    CountedStage::restart(epoch);
    skipped_ = 0;
  }
  void save(StateWriter& out) const override {
    CountedStage::save(out);
    if (!records_.counts()) out.number(static_cast<std::uint64_t>(skipped_));
  }
  void load(StateReader& in) override {
    CountedStage::load(in);
    if (!records_.counts()) skipped_ = in.number_up_to(kCountMax, "the number of records left out");
  }
  std::int64_t skipped() const override { return skipped_; }

 private:
  void leave_file() override { bytes_.reset(); }

  // The records in the buffer, field by field.
  std::vector<Tensor> columns_of(std::int64_t rows) const {
    std::vector<Tensor> columns;
    std::size_t offset = 0;
    for (const auto& column : spec_->element.columns) {
      Tensor values(column.type.dtype, column.type.shape.with_front(rows));
      std::size_t bytes =
          static_cast<std::size_t>(column.type.shape.elements()) * dtype_bytes(column.type.dtype);
      deal_out(buffer_.data(), rows, static_cast<std::size_t>(record_), offset, bytes,
               values.mutable_raw());
      offset += bytes;
      columns.push_back(std::move(values));
    }
    return columns;
  }

  // A record with its first field that holds what it may not.
  struct BadRecord {
    std::int64_t row = 0;
    std::string field, why;
  };
  // In the order of the records.
  std::vector<BadRecord> bad_records(const std::vector<Tensor>& columns) const {
    std::vector<BadRecord> bad;
    for (std::size_t i = 0; i < columns.size(); ++i)
      add_bad(records_.schema.fields[i], columns[i], bad);
    std::ranges::stable_sort(bad, {}, &BadRecord::row);
    const auto same = [](const BadRecord& a, const BadRecord& b) { return a.row == b.row; };
    bad.erase(std::unique(bad.begin(), bad.end(), same), bad.end());
    return bad;
  }
  void add_bad(const RecordField& field, const Tensor& values, std::vector<BadRecord>& bad) const {
    const bool in_range = !label_range_.any() && field.name == records_.schema.label;
    const bool finite = records_.schema.finite && !in_range;
    const bool ids = !field.ids.any();
    switch (field.dtype) {
      case DType::kFloat32:
        if (finite) add_not_finite(field, values.values<float>(), bad);
        if (in_range) add_out_of_range(field, values.values<float>(), bad);
        return;
      case DType::kFloat64:
        if (finite) add_not_finite(field, values.values<double>(), bad);
        if (in_range) add_out_of_range(field, values.values<double>(), bad);
        return;
      case DType::kInt32:
        if (in_range) add_out_of_range(field, values.values<std::int32_t>(), bad);
        if (ids) add_no_ids(field, values.values<std::int32_t>(), bad);
        return;
      case DType::kInt64:
        if (in_range) add_out_of_range(field, values.values<std::int64_t>(), bad);
        if (ids) add_no_ids(field, values.values<std::int64_t>(), bad);
        return;
      case DType::kUint8:
        if (in_range) add_out_of_range(field, values.values<std::uint8_t>(), bad);
        if (ids) add_no_ids(field, values.values<std::uint8_t>(), bad);
        return;
      default: return;
    }
  }
  template <typename T>
  void add_out_of_range(const RecordField& field, std::span<const T> values,
                        std::vector<BadRecord>& bad) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!label_range_.holds(static_cast<double>(values[i])))
        bad.push_back({static_cast<std::int64_t>(i) / field.count, field.name,
                       str(+values[i], " is not ", label_range_.text())});
  }
  template <typename T>
  static void add_no_ids(const RecordField& field, std::span<const T> values,
                         std::vector<BadRecord>& bad) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!field.ids.holds(static_cast<std::int64_t>(values[i]), i))
        bad.push_back({static_cast<std::int64_t>(i) / field.count, field.name,
                       str(+values[i], " is not ", field.ids.text(i), " (RecordField::ids)")});
  }
  // 0 times a finite number is 0, and 0 times any other is NaN: one look at all without a branch.
  template <typename T>
  static void add_not_finite(const RecordField& field, std::span<const T> values,
                             std::vector<BadRecord>& bad) {
    bool finite = true;
    for (const T value : values) finite &= value * 0 == 0;
    if (finite) return;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!std::isfinite(values[i]))
        bad.push_back({static_cast<std::int64_t>(i) / field.count, field.name,
                       str(values[i], " is not a finite number")});
  }

  // Reports the bad ones among the `rows` in the buffer, and moves the others together. Returns how
  // many others there are.
  std::int64_t leave_out(const std::vector<BadRecord>& bad, std::int64_t rows) {
    auto next = bad.begin();
    char* to = buffer_.data();
    for (std::int64_t row = 0; row < rows; ++row) {
      if (next != bad.end() && next->row == row) {
        refuse(*next++, this->row() - rows + row);
        continue;
      }
      std::memmove(to, &buffer_[static_cast<std::size_t>(row * record_)],
                   static_cast<std::size_t>(record_));
      to += record_;
    }
    return rows - static_cast<std::int64_t>(bad.size());
  }
  void refuse(const BadRecord& bad, std::int64_t number) {
    const std::string message = str(records_.paths[file()], ": record ", number,
                                    " (from 0), field \"", bad.field, "\": ", bad.why);
    if (records_.counts())
      throw InvalidArgumentError(
          str(message, "; mend the record, or leave such records out with OnError::kSkipAndCount"));
    ++skipped_;
    if (!events_.on_skipped_row || told_ == kSkippedRowsTold) return;
    ++told_;
    events_.on_skipped_row(message);
  }
  // Another program may shorten a file after its size was taken.
  void read(std::int64_t rows) {
    const std::string& path = records_.paths[file()];
    if (!bytes_) bytes_ = open_plain_bytes(path);
    bytes_->seek(static_cast<std::uint64_t>(row() * record_));
    buffer_.resize(static_cast<std::size_t>(rows * record_));
    for (std::size_t have = 0; have < buffer_.size();) {
      std::size_t got = bytes_->read(buffer_.data() + have, buffer_.size() - have);
      if (got == 0) throw DataLossError(str(path, " became shorter while it was read"));
      have += got;
    }
  }

  std::shared_ptr<const StageSpec> spec_;
  const RecordFiles& records_;  // of spec_
  const LabelRange label_range_;
  LineEvents events_;
  std::shared_ptr<const BlockLayout> layout_;
  const std::int64_t record_;  // bytes
  std::unique_ptr<ByteSource> bytes_;
  std::vector<char> buffer_;
  std::int64_t skipped_ = 0;
  int told_ = 0;
};

// Records lie as they are. A compressed file whose size happens to be a whole number of records
// would be read as numbers without sense; its name is asked because records may begin with any
// bytes.
void refuse_compressed(const std::string& path) {
  if (is_compressed(path))
    throw InvalidArgumentError(
        str(path, " is compressed, and records are read as they lie: decompress it first"));
}

// A file that does not hold whole records has another schema or was cut short. Both fail when
// the dataset is opened, and not when the last record is met.
std::int64_t count_of(const std::string& path, std::int64_t record) {
  const auto bytes = static_cast<std::int64_t>(file_bytes(path));
  const bool whole = bytes % record == 0;
  if (!whole || has_compressed_name(path)) refuse_compressed(path);
  if (whole) return bytes / record;
  throw InvalidArgumentError(str(path, ": ", bytes, " bytes are not a whole number of records of ",
                                 record,
                                 "; is the schema that of this file, or is the file cut short?"));
}

}  // namespace

std::vector<std::int64_t> RecordFiles::counts_of_files(const LineEvents& events) const {
  const std::int64_t record = record_bytes(schema);
  std::vector<std::int64_t> counts;
  for (const std::string& path : paths) {
    counts.push_back(count_of(path, record));
    if (counts.back() == 0) pass_empty_file(path, options.empty_files, events);
  }
  return counts;
}

std::int64_t RecordFiles::count(const LineEvents& events) const {
  const std::vector<std::int64_t> counts = counts_of_files(events);
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

StagePtr RecordFiles::open(SourceRequest request) const {
  return std::make_unique<RecordsSource>(std::move(request.stage), *this,
                                         std::move(request.options.events));
}

// The bound on a record keeps sizes far from overflow wherever they are multiplied.
ElementSpec RecordFiles::element() const {
  check_paths(paths);
  constexpr std::int64_t kFieldCountMax = 1 << 24;
  ElementSpec element;
  for (const auto& field : schema.fields) {
    if (field.dtype == DType::kString)
      throw InvalidArgumentError(str("field \"", field.name, "\": records hold no strings"));
    if (field.count < 1 || field.count > kFieldCountMax)
      throw InvalidArgumentError(str("field \"", field.name, "\": count is ", field.count,
                                     ", it must lie in [1, ", kFieldCountMax, "]"));
    check_ids(field.ids, is_whole(field.dtype), field.count, str("field \"", field.name, "\""));
    element.columns.push_back(
        {field.name, {field.dtype, field.count == 1 ? Shape{} : Shape{field.count}}});
  }
  check_columns(element.columns, "the record schema");
  if (record_bytes(schema) > kFieldCountMax)
    throw InvalidArgumentError(str("a record has ", record_bytes(schema), " bytes, at most ",
                                   kFieldCountMax, " are possible"));
  element.label = schema.label;
  if (!schema.label.empty()) element.find(schema.label);
  label_range(schema);  // for its error
  return element;
}

void RecordFiles::write(StageWriter& writer) const {
  auto out = writer.stage.initRecords();
  write_files(out, *this);
  auto fields = out.initFields(static_cast<unsigned>(schema.fields.size()));
  for (unsigned i = 0; i < fields.size(); ++i) {
    fields[i].setName(schema.fields[i].name);
    fields[i].setDtype(static_cast<std::uint8_t>(schema.fields[i].dtype));
    fields[i].setCount(schema.fields[i].count);
    write_ids(fields[i], schema.fields[i].ids);
  }
  out.setLabel(schema.label);
  out.setBinaryLabel(schema.binary_label);
  out.setLabelClasses(static_cast<std::uint16_t>(schema.label_classes));
  out.setFinite(schema.finite);
}

Dataset read_records(const StageReader& reader) {
  const auto in = reader.stage.getRecords();
  RecordSchema schema;
  check_size(in.getFields(), "fields");
  for (auto field : in.getFields())
    schema.fields.push_back({read_text(field.getName()), read_dtype(field.getDtype()),
                             field.getCount(), read_ids(field.getIds())});
  schema.label = read_text(in.getLabel());
  schema.binary_label = in.getBinaryLabel();
  schema.label_classes = in.getLabelClasses();
  schema.finite = in.getFinite();
  const FileOptions options{read_on_error(in), read_empty_files(in)};
  return Dataset::records(read_paths(in), std::move(schema), options);
}

Dataset Dataset::records(std::vector<std::string> paths, RecordSchema schema, FileOptions options) {
  return dataset_of(std::make_shared<RecordFiles>(std::move(paths), std::move(schema), options));
}
Dataset Dataset::records(std::string path, RecordSchema schema, FileOptions options) {
  return records(std::vector<std::string>{std::move(path)}, std::move(schema), options);
}
Dataset Dataset::records(std::initializer_list<std::string> paths, RecordSchema schema,
                         FileOptions options) {
  return records(std::vector<std::string>(paths), std::move(schema), options);
}

}  // namespace cairn
