#include "data/format/cell_source.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "data/feature/feature_plan.h"
#include "data/feature/printable.h"
#include "data/file/csv_complaints.h"
#include "data/format/csv_cells.h"
#include "data/format/csv_filter.h"

namespace cairn {
namespace {

// Cells are cut and then decoded column by column; so many rows stay in the caches between the two.
constexpr std::int64_t kRecordsAtOnce = 512;

class CellSource final : public FilesStage<CellReader> {
 public:
  CellSource(CellSourceParts parts, SourceRequest request)
      : FilesStage(std::move(parts.files), request.shard, std::move(request.options)),
        source_(std::move(request.stage)),
        features_(std::move(request.features)),
        schema_(*parts.schema),
        filter_(schema_),
        pick_{request.shard.num, request.shard.index} {
    if (features_) plan_.emplace(source_->element, std::get<FeaturesSpec>(features_->kind).columns);
    layout_ = std::make_shared<BlockLayout>(features_ ? features_->element : source_->element);
    choose_columns();
    const auto open = [this, open = std::move(parts.open)](const std::string& path,
                                                           std::unique_ptr<ByteSource> bytes) {
      return open(path, std::move(bytes), wanted_);
    };
    open_first(open);
  }

  Block next(std::int64_t most) override {
    std::vector<Block> parts;
    std::int64_t size = 0;
    touch();
    while (size < most && reader()) {
      reader()->read(std::min(most - size, kRecordsAtOnce), record(), pick_, cells_);
      passed(cells_.passed);
      if (cells_.faulty) refuse_record();
      if (cells_.passed == 0) {
        next_file();
      } else if (Block block = decode(); !block.empty()) {
        size += block.size();
        parts.push_back(std::move(block));
      }
    }
    return Block::concat(std::move(parts));
  }

  // Skips lines without cutting them: first to the next line of this shard, then whole rounds of
  // the shards at once, as many as keep the product from overflowing.
  std::int64_t skip(std::int64_t count) override {
    if (leaves_out_bad() || !filter_.keeps_all())
      return Stage::skip(count);  // parsing decides which lines count
    std::int64_t gone = 0;
    touch();
    while (gone < count) {
      std::int64_t lead = (pick_.index - record() + pick_.num) % pick_.num;
      std::int64_t at_once =
          std::min(count - gone, std::max<std::int64_t>(1, (std::int64_t{1} << 40) / pick_.num));
      if (pass(lead) < lead) break;
      std::int64_t records = pass((at_once - 1) * pick_.num + 1);
      if (records == 0) break;
      gone += (records + pick_.num - 1) / pick_.num;
    }
    return gone;
  }

 private:
  // Chooses the columns to cut: those that features, the label or conditions read.
  void choose_columns() {
    const CsvSchema& schema = schema_;
    auto is_wanted = [&](const CsvColumn& column) {
      if (column.skip) return false;
      const auto reads = [&](const std::string& name) {
        return std::ranges::find(plan_->inputs(), name) != plan_->inputs().end();
      };
      return !plan_ || column.name == schema.label.column || reads(column.name) ||
             filter_.reads(column.name) ||
             (column.missing_indicator && reads(column.name + kMissing));
    };
    for (std::size_t i = 0; i < schema.columns.size(); ++i)
      if (is_wanted(schema.columns[i])) wanted_.push_back(i);
    for (std::size_t i : wanted_)
      decoders_.emplace_back(schema, schema.columns[i], use_of(schema.columns[i]));
    cells_.columns.resize(wanted_.size());
    filter_.place(wanted_);
  }
  ColumnUse use_of(const CsvColumn& column) const {
    if (!features_) return {};
    ColumnUse use{.as_float32 = true};
    if (is_whole(column.dtype))
      for (const FeatureColumn& feature : std::get<FeaturesSpec>(features_->kind).columns)
        if (feature.kind == FeatureColumn::Kind::kAsIs && feature.buckets > 0 &&
            feature.inputs.front() == column.name)
          use.ids = {{feature.buckets}, feature.padding};
    return use;
  }
  // The input of a feature: a column, or its indicator.
  const RawColumn& raw_column(const std::string& name) const {
    if (const ColumnDecoder* column = decoder(name)) return column->decoded();
    return decoder(name.substr(0, name.size() - std::string_view(kMissing).size()))->missing();
  }
  const ColumnDecoder* decoder(const std::string& name) const {
    for (const auto& decoder : decoders_)
      if (decoder.name() == name) return &decoder;
    return nullptr;
  }

  // Goes past `count` records. Returns how many there were: fewer at the end.
  std::int64_t pass(std::int64_t count) {
    std::int64_t gone = 0;
    while (gone < count && reader()) {
      const std::int64_t here = reader()->skip(count - gone);
      if (here == 0) next_file();
      gone += here;
    }
    passed(gone);
    return gone;
  }

  // Columns are decoded whole. If cells were bad, their rows are dropped and the rest is decoded
  // once more; bad rows are rare, and this keeps the usual loop free of tests.
  Block decode() {
    filter_.apply(cells_, events());
    for (;;) {
      bad_.clear();
      for (std::size_t i = 0; i < decoders_.size(); ++i)
        decoders_[i].decode(cells_.columns[i], i, bad_);
      if (cells_.may_lack_values) add_lacking_cells();
      if (bad_.empty()) break;
      drop_bad_rows();
    }
    auto rows = static_cast<std::int64_t>(cells_.rows.size());
    if (rows == 0) return {};
    std::vector<Tensor> columns;
    if (!plan_) {
      for (const auto& decoder : decoders_) decoder.append_to(columns);
      return Block::packed(layout_, rows, std::move(columns));
    }
    std::vector<const RawColumn*> raw;
    for (const auto& name : plan_->inputs()) raw.push_back(&raw_column(name));
    columns = plan_->apply(raw, rows);
    if (const auto* label = decoder(schema_.label.column);
        label != nullptr && !schema_.label.column.empty())
      label->append_to(columns);
    return Block::packed(layout_, rows, std::move(columns));
  }
  // A cell without data that no default value replaced is bad, unless the column holds lists, or an
  // indicator says that the value is missing.
  void add_lacking_cells() {
    for (std::size_t i = 0; i < decoders_.size(); ++i) {
      const CsvColumn& column = schema_.columns[wanted_[i]];
      if (column.separator != 0 || column.missing_indicator) continue;
      const auto& cells = cells_.columns[i];
      for (std::size_t row = 0; row < cells.size(); ++row)
        if (cells[row].data() == nullptr) bad_.push_back({row, i});
    }
  }
  // A row counts once, however many of its cells are bad; the first one in the order of the columns
  // is the one that is reported.
  void drop_bad_rows() {
    std::sort(bad_.begin(), bad_.end(), [](auto a, auto b) {
      return std::pair(a.row, a.column) < std::pair(b.row, b.column);
    });
    std::vector<bool> unwanted(cells_.rows.size());
    for (const BadCell& bad : bad_) {
      if (unwanted[bad.row]) continue;  // its first bad cell was reported
      unwanted[bad.row] = true;
      refuse_cell(bad);
    }
    cells_.erase(unwanted);
  }
  // The message names the character within the line, so that an editor can go there. A cell whose
  // quotes were removed is a copy and has no place in the line.
  void refuse_cell(const BadCell& bad) {
    if (!wants_message()) return;
    const std::string_view cell = cells_.columns[bad.column][bad.row];
    const CsvCells::Row& row = cells_.rows[bad.row];
    const bool in_line = !std::less<>()(cell.data(), row.begin) &&
                         !std::less<>()(row.end, cell.data());  // else a copy without its quotes
    const ColumnDecoder& decoder = decoders_[bad.column];
    refuse(row.line, in_line ? cell.data() - row.begin + 1 : 0,
           str("column \"", printable(decoder.name()), "\": ", decoder.complaint(cell)));
  }
  void refuse_record() {
    if (!wants_message()) return;
    const RecordFault fault = reader()->fault();
    refuse(cells_.fault_row.line, fault.column, fault.why);
  }
  void refuse(std::int64_t line, std::int64_t column, const std::string& why) {
    const std::string message = str(reader()->place(path(), line, column), ": ", why);
    if (!leaves_out_bad())
      throw InvalidArgumentError(in_memory() ? message : str(message, "; ", line_cure()));
    report(message);
  }

  std::shared_ptr<const StageSpec> source_, features_;
  const CsvSchema& schema_;  // of source_
  CsvFilter filter_;
  CsvPick pick_;
  std::optional<FeaturePlan> plan_;
  std::shared_ptr<const BlockLayout> layout_;
  std::vector<std::size_t> wanted_;  // places in the schema
  std::vector<ColumnDecoder> decoders_;
  CsvCells cells_;
  std::vector<BadCell> bad_;
};

}  // namespace

StagePtr make_cell_source(CellSourceParts parts, SourceRequest request) {
  return std::make_unique<CellSource>(std::move(parts), std::move(request));
}

}  // namespace cairn
