#include "data/format/column_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "core/disk/output_file.h"
#include "data/dataset/stage_spec.h"
#include "data/format/counted_stage.h"
#include "data/format/wire_parts.h"

namespace cairn {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are mapped as they lie");

constexpr char kMagic[8] = {'C', 'A', 'I', 'R', 'N', 'C', 'O', 'L'};
constexpr std::uint32_t kVersion = 1;
constexpr std::int64_t kTextsAtOnce = 1 << 16;

struct Head {
  char magic[8];
  std::uint32_t version, dtype;
  std::int64_t values;    // along axis 0
  std::int64_t elements;  // of one value
  std::int64_t bytes;     // behind the head
  std::int64_t reserved[3];
};
static_assert(sizeof(Head) == 64);

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw DataLossError(
      str("the table's file ", path, " is damaged: ", what, "; write the table again"));
}

// A file as memory, until the last tensor that looks into it is gone.
class Mapped {
 public:
  explicit Mapped(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      const std::string why = std::strerror(errno);
      if (errno == ENOENT || errno == ENOTDIR)
        throw NotFoundError(str("this machine does not see the table's file ", path,
                                ": the folder it was written to must be one that all workers "
                                "share"));
      throw PermissionDeniedError(str("the table's file ", path, " cannot be read: ", why));
    }
    struct stat found {};
    if (::fstat(fd, &found) == 0) bytes_ = static_cast<std::size_t>(found.st_size);
    if (bytes_ > 0) data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd, 0);
    ::close(fd);
    if (bytes_ > 0 && data_ == MAP_FAILED)
      throw ResourceExhaustedError(
          str("the table's file ", path, " cannot be mapped: ", std::strerror(errno)));
  }
  ~Mapped() {
    if (bytes_ > 0) ::munmap(data_, bytes_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }
  std::size_t size() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// A column's file, checked against what the description says of it.
class ColumnFile {
 public:
  ColumnFile(std::string path, const IdxColumn& column)
      : path_(std::move(path)),
        dtype_(column.dtype),
        shape_(column.shape),
        mapped_(std::make_shared<const Mapped>(path_)) {
    if (mapped_->size() < sizeof(Head)) damaged(path_, "it has no head");
    std::memcpy(&head_, mapped_->data(), sizeof head_);
    if (std::memcmp(head_.magic, kMagic, sizeof kMagic) != 0 || head_.version != kVersion)
      throw InvalidArgumentError(str(path_, " is no table's file of this version"));
    if (head_.dtype != static_cast<std::uint32_t>(dtype_) || head_.elements != shape_.elements())
      throw InvalidArgumentError(
          str("the table's file ", path_, " is not of the column \"", column.name, "\""));
    const std::int64_t behind = static_cast<std::int64_t>(mapped_->size() - sizeof(Head));
    constexpr std::int64_t kMost = std::int64_t{1} << 48;
    if (head_.values < 0 || head_.values > kMost / std::max<std::int64_t>(1, head_.elements) ||
        head_.bytes != behind || behind < least_bytes())
      damaged(path_, str("it has ", behind, " bytes for ", head_.values, " rows"));
  }
  std::int64_t values() const { return head_.values; }

  Tensor rows(std::int64_t begin, std::int64_t end) const {
    const std::int64_t from = begin * head_.elements, count = (end - begin) * head_.elements;
    const Shape shape = shape_.with_front(end - begin);
    if (dtype_ == DType::kString) return texts(shape, from, count);
    const auto* at = data() + static_cast<std::size_t>(from) * dtype_bytes(dtype_);
    // Values that are narrower than what a borrowed tensor begins at are copied.
    if (reinterpret_cast<std::uintptr_t>(at) % 8 == 0 && count > 0)
      return Tensor::borrowed(dtype_, shape, at, mapped_);
    Tensor copy(dtype_, shape);
    if (count > 0) std::memcpy(copy.mutable_raw(), at, copy.bytes());
    return copy;
  }
  std::int64_t int64_at(std::int64_t place) const {
    std::int64_t value;
    std::memcpy(&value, data() + place * 8, sizeof value);
    return value;
  }
  const std::string& path() const { return path_; }

 private:
  const std::byte* data() const { return mapped_->data() + sizeof(Head); }
  std::int64_t elements() const { return head_.values * head_.elements; }
  std::int64_t least_bytes() const {
    if (dtype_ == DType::kString) return (elements() + 1) * 8;
    return elements() * static_cast<std::int64_t>(dtype_bytes(dtype_));
  }
  Tensor texts(const Shape& shape, std::int64_t from, std::int64_t count) const {
    const std::int64_t first = (elements() + 1) * 8, most = head_.bytes - first;
    std::vector<std::string> all;
    all.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = from; i < from + count; ++i) {
      const std::int64_t begin = int64_at(i), end = int64_at(i + 1);
      if (begin < 0 || end < begin || end > most)
        damaged(path_, str("text ", i, " lies outside of it"));
      all.emplace_back(reinterpret_cast<const char*>(data() + first + begin),
                       static_cast<std::size_t>(end - begin));
    }
    return Tensor::strings(shape, std::move(all));
  }

  std::string path_;
  DType dtype_;
  Shape shape_;
  std::shared_ptr<const Mapped> mapped_;
  Head head_{};
};

bool is_ragged(const std::vector<IdxColumn>& columns, std::size_t i) {
  return i + 1 < columns.size() && columns[i + 1].name == columns[i].name + kRowSplits;
}

// Splits must ascend within the values: they come from a file.
void check_splits(const ColumnFile& file, std::int64_t begin, std::int64_t end,
                  std::int64_t values) {
  std::int64_t before = begin == 0 ? 0 : file.int64_at(begin);
  for (std::int64_t i = begin; i <= end; ++i) {
    const std::int64_t split = file.int64_at(i);
    if (split < before || split > values)
      damaged(file.path(), str("row ", i, " begins outside of its values"));
    before = split;
  }
}

class ColumnsSource final : public CountedStage {
 public:
  ColumnsSource(std::shared_ptr<const StageSpec> spec, const ColumnFiles& source)
      : CountedStage(source.counts_of_files(), "the row"),
        spec_(std::move(spec)),
        columns_(source.columns),
        layout_(std::make_shared<BlockLayout>(spec_->element)) {
    texts_ = std::ranges::any_of(
        columns_, [](const IdxColumn& column) { return column.dtype == DType::kString; });
  }

  Block next(std::int64_t most) override {
    if (!find_row()) return {};
    if (files_.empty())
      for (const IdxColumn& column : columns_) files_.emplace_back(column.paths[file()], column);
    std::int64_t rows = std::min(most, rows_left());
    if (texts_) rows = std::min(rows, kTextsAtOnce);
    const std::int64_t begin = row(), end = begin + rows;
    std::vector<Tensor> columns;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (!is_ragged(columns_, i)) {
        columns.push_back(files_[i].rows(begin, end));
        continue;
      }
      const ColumnFile& splits = files_[i + 1];
      check_splits(splits, begin, end, files_[i].values());
      add_ragged_rows(files_[i], splits, begin, end, columns);
      ++i;
    }
    pass(rows);
    return Block::packed(layout_, rows, std::move(columns));
  }
  std::int64_t skipped() const override { return 0; }

 private:
  static void add_ragged_rows(const ColumnFile& values, const ColumnFile& splits,
                              std::int64_t begin, std::int64_t end, std::vector<Tensor>& out) {
    const std::int64_t first = splits.int64_at(begin);
    out.push_back(values.rows(first, splits.int64_at(end)));
    Tensor own(DType::kInt64, {end - begin + 1});
    for (std::int64_t i = begin; i <= end; ++i)
      own.mutable_values<std::int64_t>()[static_cast<std::size_t>(i - begin)] =
          splits.int64_at(i) - first;
    out.push_back(std::move(own));
  }
  void leave_file() override {
    if (files() > 1) files_.clear();
  }

  std::shared_ptr<const StageSpec> spec_;
  const std::vector<IdxColumn>& columns_;  // of spec_
  std::shared_ptr<const BlockLayout> layout_;
  bool texts_ = false;
  std::vector<ColumnFile> files_;  // those of file(); none: not open yet
};

}  // namespace

std::vector<std::int64_t> ColumnFiles::counts_of_files() const {
  std::vector<std::int64_t> counts;
  for (std::size_t file = 0; file < columns.front().paths.size(); ++file) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const bool ragged = is_ragged(columns, i);
      if (ragged) ++i;
      const ColumnFile column(columns[i].paths[file], columns[i]);
      const std::int64_t count = column.values() - (ragged ? 1 : 0);
      if (counts.size() == file) counts.push_back(count);
      if (count != counts.back() || count < 0)
        throw InvalidArgumentError(str("the table's file ", column.path(), " has ", count,
                                       " rows, and that of another column ", counts.back(),
                                       "; do they belong together?"));
    }
  }
  return counts;
}

std::int64_t ColumnFiles::count(const LineEvents&) const {
  const std::vector<std::int64_t> counts = counts_of_files();
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

StagePtr ColumnFiles::open(SourceRequest request) const {
  return std::make_unique<ColumnsSource>(std::move(request.stage), *this);
}

FileLists ColumnFiles::files() const {
  FileLists lists;
  for (const IdxColumn& column : columns) lists.push_back(column.paths);
  return lists;
}

FileSourcePtr ColumnFiles::over(FileLists files) const {
  auto copy = std::make_shared<ColumnFiles>(*this);
  for (std::size_t i = 0; i < columns.size(); ++i) copy->columns[i].paths = std::move(files[i]);
  return copy;
}

FileSourcePtr ColumnFiles::with_on_error(OnError) const {
  return std::make_shared<ColumnFiles>(*this);
}

ElementSpec ColumnFiles::element() const {
  ElementSpec element;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const IdxColumn& column = columns[i];
    check_paths(column.paths);
    check_value_shape(column.name, column.shape);
    if (column.dtype == DType::kBfloat16 || column.paths.size() != columns.front().paths.size())
      throw InvalidArgumentError(str("column_files: column \"", column.name,
                                     "\" has another number of files than \"", columns.front().name,
                                     "\", or is bfloat16"));
    if (!is_ragged(columns, i)) {
      if (column.name.ends_with(kRowSplits))
        throw InvalidArgumentError(
            str("column_files: \"", column.name, "\" stands behind its values only"));
      element.columns.push_back({column.name, {column.dtype, column.shape}});
      continue;
    }
    const IdxColumn& splits = columns[i + 1];
    if (column.shape.rank() != 0 || splits.dtype != DType::kInt64 || splits.shape.rank() != 0 ||
        splits.paths.size() != column.paths.size())
      throw InvalidArgumentError(str("column_files: the ragged column \"", column.name,
                                     "\" has values of shape [] and splits of int64"));
    add_ragged(element, column.name, column.dtype);
    ++i;
  }
  return checked_element(std::move(element.columns), label, "column_files");
}

void ColumnFiles::write(StageWriter& writer) const {
  auto files = writer.stage.initFiles();
  files.setFormat(kColumns);
  auto out = files.getSource().initAs<pipeline::Idx>();
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

Dataset read_column_files(const StageReader& reader) {
  const auto in = reader.stage.getFiles().getSource().getAs<pipeline::Idx>();
  check_size(in.getColumns(), "columns");
  std::vector<IdxColumn> columns;
  for (auto column : in.getColumns())
    columns.push_back({read_text(column.getName()), read_texts(column.getPaths(), kPathsMax),
                       read_dtype(column.getDtype()), read_shape(column.getShape())});
  return column_files(std::move(columns), read_text(in.getLabel()));
}

Dataset column_files(std::vector<IdxColumn> columns, std::string label) {
  if (columns.empty()) throw InvalidArgumentError("column_files has no columns");
  return dataset_of(std::make_shared<ColumnFiles>(std::move(columns), std::move(label)));
}

void write_column_file(const std::string& path, const Tensor& values) {
  if (!values.defined() || values.shape().rank() == 0)
    throw InvalidArgumentError(str("the table's file ", path, " wants a value for each row"));
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = kVersion;
  head.dtype = static_cast<std::uint32_t>(values.dtype());
  head.values = values.shape()[0];
  head.elements = values.shape().row_elements();
  std::vector<std::int64_t> offsets;
  head.bytes = static_cast<std::int64_t>(values.bytes());
  if (values.dtype() == DType::kString) {
    offsets.push_back(0);
    for (const std::string& text : values.string_values())
      offsets.push_back(offsets.back() + static_cast<std::int64_t>(text.size()));
    head.bytes = static_cast<std::int64_t>(offsets.size()) * 8 + offsets.back();
  }
  OutputFile file(path);
  file.write({reinterpret_cast<const char*>(&head), sizeof head});
  if (values.dtype() != DType::kString) {
    file.write({reinterpret_cast<const char*>(values.raw()), values.bytes()});
  } else {
    constexpr std::size_t kBytesAtOnce = 1 << 20;
    file.write({reinterpret_cast<const char*>(offsets.data()), offsets.size() * 8});
    std::string piece;
    for (const std::string& text : values.string_values()) {
      piece += text;
      if (piece.size() < kBytesAtOnce) continue;
      file.write(piece);
      piece.clear();
    }
    file.write(piece);
  }
  file.finish();
}

}  // namespace cairn
