// text_lines(): a line is a string.
#include "data/line_reader.h"
#include "data/row_source.h"

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

StagePtr make_text_source(const StageSpec& source, const ShardSpec& shard, SourceOptions options) {
  const auto& text = std::get<TextSpec>(source.kind);
  const LineRules rules{.skip_blank = text.options.skip_blank,
                        .bytes_max = text.options.line_bytes_max};
  RowSourceParts parts{
      .paths = text.paths,
      .open = [rules](const std::string& path,
                      Pipes pipes) { return std::make_unique<LineReader>(path, rules, pipes); },
      .rows = make_text_rows(),
      .on_error = text.options.on_error,
      .empty_files = text.options.empty_files};
  return make_row_source(source.element, std::move(parts), shard, std::move(options));
}

}  // namespace cairn
