#include "data/format/text_lines.h"

#include "data/dataset/dataset.h"
#include "data/file/line_reader.h"
#include "data/format/row_stage.h"
#include "data/format/wire_parts.h"

namespace cairn {
namespace {

class TextRows final : public RowDecoder {
 public:
  bool add(std::string_view record, RecordFault&) override {
    lines_.emplace_back(record);
    bytes_ += sizeof(std::string) + record.size();
    return true;
  }
  std::int64_t rows() const override { return static_cast<std::int64_t>(lines_.size()); }
  std::size_t bytes() const override { return bytes_; }
  std::vector<Tensor> take() override {
    const std::int64_t size = rows();
    std::vector<Tensor> columns{Tensor::strings({size}, std::move(lines_))};
    clear();
    return columns;
  }
  void clear() override {
    lines_.clear();
    bytes_ = 0;
  }

 private:
  std::vector<std::string> lines_;
  std::size_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<RowDecoder> make_text_rows() { return std::make_unique<TextRows>(); }

ElementSpec TextFiles::element() const {
  constexpr std::int64_t kLineBytesMax = std::int64_t{1} << 30;
  check_paths(paths);
  if (options.line_bytes_max < 1 || options.line_bytes_max > kLineBytesMax)
    throw InvalidArgumentError(str("text_lines: line_bytes_max is ", options.line_bytes_max,
                                   ", it must lie in [1, ", kLineBytesMax, "]"));
  return checked_element({{options.column, {DType::kString, {}}}}, "", "text_lines");
}

StagePtr TextFiles::open(SourceRequest request) const {
  const LineRules rules{.skip_blank = options.skip_blank, .bytes_max = options.line_bytes_max};
  const auto open = [rules](const std::string& path, std::unique_ptr<ByteSource> bytes) {
    return std::make_unique<LineReader>(path, std::move(bytes), rules);
  };
  RowStageParts parts{.files = {paths, options.on_error, options.empty_files},
                      .open = open,
                      .rows = make_text_rows()};
  return make_row_stage(std::move(parts), std::move(request));
}

void TextFiles::write(StageWriter& writer) const {
  auto out = writer.stage.initTextLines();
  write_files(out, *this);
  out.setColumn(options.column);
  out.setSkipBlank(options.skip_blank);
  out.setLineBytesMax(options.line_bytes_max);
}

Dataset read_text_lines(const StageReader& reader) {
  const auto in = reader.stage.getTextLines();
  TextOptions options;
  options.column = read_text(in.getColumn());
  options.skip_blank = in.getSkipBlank();
  options.line_bytes_max = in.getLineBytesMax();
  options.on_error = read_on_error(in);
  options.empty_files = read_empty_files(in);
  return Dataset::text_lines(read_paths(in), std::move(options));
}

Dataset Dataset::text_lines(std::vector<std::string> paths, TextOptions options) {
  return dataset_of(std::make_shared<TextFiles>(std::move(paths), std::move(options)));
}
Dataset Dataset::text_lines(std::string path, TextOptions options) {
  return text_lines(std::vector<std::string>{std::move(path)}, std::move(options));
}
Dataset Dataset::text_lines(std::initializer_list<std::string> paths, TextOptions options) {
  return text_lines(std::vector<std::string>(paths), std::move(options));
}

}  // namespace cairn
