#include "data/format/json/json_lines.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "data/file/line_reader.h"
#include "data/format/cell_source.h"
#include "data/format/cells.h"
#include "data/format/json/object_cells.h"
#include "data/format/wire_parts.h"

namespace cairn {
namespace {

constexpr std::size_t kTextBytesAtOnce = 1 << 20;

class JsonLinesReader final : public CellReader {
 public:
  JsonLinesReader(const std::string& path, std::unique_ptr<ByteSource> bytes,
                  const CsvSchema& schema, const std::vector<std::size_t>& wanted)
      : lines_(path, std::move(bytes), {.skip_blank = true}), parser_(schema, wanted, "line") {}

  void read(std::int64_t most, std::int64_t first, const CsvPick& pick, CsvCells& out) override {
    out.clear();
    out.may_lack_values = true;
    texts_.clear();
    for (std::size_t bytes = 0;
         static_cast<std::int64_t>(out.rows.size()) < most && bytes < kTextBytesAtOnce;) {
      const bool picked = pick.num == 1 || (first + out.passed) % pick.num == pick.index;
      if (!next_line(picked)) break;
      if (picked) {
        const std::string_view line = texts_.emplace_back(raw_.bytes);
        bytes += line.size();
        const CsvCells::Row row{raw_.number, line.data(), line.data() + line.size()};
        if (!parse(line)) {
          again_ = !out.rows.empty();  // met again, alone, by the next call
          if (again_) break;
          out.faulty = true;
          out.fault_row = row;
          ++out.passed;
          break;
        }
        for (std::size_t i = 0; i < out.columns.size(); ++i)
          out.columns[i].push_back(parser_.cells()[i]);
        out.rows.push_back(row);
      }
      ++out.passed;
    }
  }
  std::int64_t skip(std::int64_t most) override {
    std::int64_t passed = 0;
    while (passed < most && next_line(false)) ++passed;
    return passed;
  }
  RecordFault fault() const override { return fault_; }

  std::uint64_t offset() const override { return again_ ? raw_.offset : lines_.offset(); }
  std::int64_t number() const override { return again_ ? raw_.number : lines_.number(); }
  void seek(std::uint64_t offset, std::int64_t number) override {
    again_ = false;
    lines_.seek(offset, number);
  }
  void rewind() override {
    again_ = false;
    lines_.rewind();
  }
  bool saw_records() const override { return lines_.saw_records(); }

 private:
  bool next_line(bool wanted) { return std::exchange(again_, false) || lines_.next(raw_, wanted); }

  // False: fault_ says why the line has no cells.
  bool parse(std::string_view line) {
    fault_ = raw_.fault;
    if (!fault_.why.empty()) return false;
    const std::optional<std::size_t> parsed = parser_.parse(line, texts_);
    if (parsed == line.size()) return true;
    fault_ = parsed ? RecordFault{.why = "this is not one JSON object: text follows it",
                                  .column = static_cast<std::int64_t>(*parsed) + 1}
                    : parser_.fault();
    return false;
  }

  LineReader lines_;
  ObjectParser parser_;
  RawRecord raw_;
  bool again_ = false;             // raw_ is the next line: it was read and not passed
  std::deque<std::string> texts_;  // lines, and texts that are not as their lines have them
  RecordFault fault_;
};

// Columns are found by their names, and lists have one separator, whichever was given.
CsvSchema of_objects(CsvSchema schema) {
  const CsvSchema plain{.columns = schema.columns,
                        .label = schema.label,
                        .header = schema.header,
                        .unknown = schema.unknown,
                        .where = schema.where};
  if (!(schema == plain))
    throw InvalidArgumentError(
        "json_lines: the schema has a delimiter, a quote, comments or another rule of how text is "
        "cut into cells, and JSON says that by itself: leave them as they are by default");
  return object_schema(schema);
}

}  // namespace

Dataset json_lines(std::vector<std::string> paths, CsvSchema schema, CsvOptions options) {
  return dataset_of(
      std::make_shared<JsonLinesFiles>(std::move(paths), of_objects(std::move(schema)), options));
}

ElementSpec JsonLinesFiles::element() const {
  check_paths(paths);
  return element_of_cells(schema);
}

FileSourcePtr JsonLinesFiles::without_column(const std::string& column) const {
  const std::optional<CsvSchema> without = without_cells(schema, column);
  if (!without) return nullptr;
  return changed([&](JsonLinesFiles& copy) { copy.schema = *without; });
}

StagePtr JsonLinesFiles::open(SourceRequest request) const {
  const auto open = [this](const std::string& path, std::unique_ptr<ByteSource> bytes,
                           const std::vector<std::size_t>& wanted) {
    return std::make_unique<JsonLinesReader>(path, std::move(bytes), schema, wanted);
  };
  CellSourceParts parts{{paths, options.on_error, options.empty_files}, &schema, open};
  return make_cell_source(std::move(parts), std::move(request));
}

void JsonLinesFiles::write(StageWriter& writer) const {
  auto out = writer.stage.initFiles();
  out.setFormat(kJsonLines);
  write_cells(out.getSource().initAs<pipeline::Csv>(), paths, schema, options);
}

Dataset read_json_lines(const StageReader& reader) {
  const auto in = reader.stage.getFiles().getSource().getAs<pipeline::Csv>();
  const CsvOptions options{read_on_error(in), read_empty_files(in)};
  return json_lines(read_paths(in), read_cells(in), options);
}

}  // namespace cairn
