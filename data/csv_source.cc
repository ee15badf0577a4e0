// Lines of CSV files, one file after another, as a stage. It takes over a shard() and a features()
// directly above it (data/open.cc): lines of other shards are never cut, columns that no feature
// reads are never stored, and text becomes ids without being copied.
#include <algorithm>
#include <functional>
#include <optional>

#include "data/csv_cells.h"
#include "data/csv_complaints.h"
#include "data/csv_filter.h"
#include "data/csv_reader.h"
#include "data/empty_file.h"
#include "data/feature_plan.h"
#include "data/printable.h"
#include "data/stage.h"

namespace cairn {
namespace {

// Cells are cut and then decoded column by column; so many rows stay in the caches between the two.
constexpr std::int64_t kRecordsAtOnce = 512;

class CsvSource final : public Stage {
 public:
  CsvSource(std::shared_ptr<const StageSpec> source, const ShardSpec& shard,
            std::shared_ptr<const StageSpec> features, SourceOptions options)
      : source_(std::move(source)),
        features_(std::move(features)),
        events_(std::move(options.events)),
        pipes_(options.pipes),
        csv_(std::get<CsvSpec>(source_->kind)),
        filter_(csv_.schema),
        pick_{shard.num, shard.index} {
    if (features_) plan_.emplace(source_->element, std::get<FeaturesSpec>(features_->kind).columns);
    layout_ = std::make_shared<BlockLayout>(features_ ? features_->element : source_->element);
    choose_columns();
    // A missing file is reported now, not hours into the run when its turn comes.
    for (const auto& path : csv_.paths) verify_file(path, pipes_);
    open_file();
  }

  Block next(std::int64_t most) override {
    std::vector<Block> parts;
    std::int64_t size = 0;
    untouched_ = false;
    while (size < most && reader_) {
      reader_->read(std::min(most - size, kRecordsAtOnce), record_, pick_, cells_);
      record_ = (record_ + cells_.passed) % pick_.num;
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
    if (csv_.options.on_error == OnError::kSkipAndCount || !filter_.keeps_all())
      return Stage::skip(count);  // only parsing tells which lines count
    std::int64_t gone = 0;
    untouched_ = false;
    while (gone < count) {
      std::int64_t lead = (pick_.index - record_ + pick_.num) % pick_.num;
      std::int64_t at_once =
          std::min(count - gone, std::max<std::int64_t>(1, (std::int64_t{1} << 40) / pick_.num));
      if (pass(lead) < lead) break;
      std::int64_t passed = pass((at_once - 1) * pick_.num + 1);
      if (passed == 0) break;
      gone += (passed + pick_.num - 1) / pick_.num;
    }
    return gone;
  }

  void restart(std::uint64_t) override {
    if (untouched_) return;  // a pipe cannot go back, and nothing else needs to
    file_ = 0;
    record_ = 0;
    skipped_ = 0;
    open_file();
  }
  // Where the next record begins, in bytes: a resumed iterator seeks there. The line number is for
  // messages, and record_ for the shard.
  void save(StateWriter& out) const override {
    out.number(file_);
    out.number(static_cast<std::uint64_t>(record_));
    out.number(static_cast<std::uint64_t>(skipped_));
    out.number(reader_ ? reader_->offset() : 0);
    out.number(reader_ ? static_cast<std::uint64_t>(reader_->line()) : 0);
  }
  void load(StateReader& in) override {
    untouched_ = false;
    file_ = static_cast<std::size_t>(
        in.number_up_to(static_cast<std::int64_t>(csv_.paths.size()), "the number of the file"));
    record_ = in.number_up_to(pick_.num - 1, "the place within the shards");
    skipped_ = in.number_up_to(kCountMax, "the number of lines left out");
    std::int64_t offset = in.number_up_to(kCountMax, "the place in the file");
    std::int64_t line = in.number_up_to(kCountMax, "the line");
    open_file();
    if (reader_) reader_->seek(static_cast<std::uint64_t>(offset), line);
  }
  std::int64_t skipped() const override { return skipped_; }

 private:
  // Chooses the columns to cut: those that somebody reads.
  void choose_columns() {
    const CsvSchema& schema = csv_.schema;
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
  // What a feature reads: a column, or its indicator.
  const RawColumn& raw_column(const std::string& name) const {
    if (const ColumnDecoder* column = decoder(name)) return column->decoded();
    return decoder(name.substr(0, name.size() - std::string_view(kMissing).size()))->missing();
  }
  const ColumnDecoder* decoder(const std::string& name) const {
    for (const auto& decoder : decoders_)
      if (decoder.name() == name) return &decoder;
    return nullptr;
  }

  // At the end of the last file there is no reader_, but the reader is kept: an epoch over one file
  // rewinds it, and a small gzip file need not be decompressed again.
  void open_file() {
    if (file_ == csv_.paths.size()) {
      kept_ = std::move(reader_);
      return;
    }
    if (!reader_) reader_ = std::move(kept_);
    if (reader_ && csv_.paths.size() == 1)
      reader_->rewind();  // one file, read again and again
    else
      reader_ = std::make_unique<CsvReader>(csv_.paths[file_], csv_.schema, wanted_, pipes_);
  }
  void next_file() {
    if (!reader_->saw_records())
      pass_empty_file(csv_.paths[file_], csv_.options.empty_files, events_);
    ++file_;
    open_file();
  }
  // Goes past `count` records, and tells past how many.
  std::int64_t pass(std::int64_t count) {
    std::int64_t passed = 0;
    while (passed < count && reader_) {
      std::int64_t here = reader_->skip(count - passed);
      if (here == 0) next_file();
      passed += here;
    }
    record_ = (record_ + passed) % pick_.num;
    return passed;
  }

  // Columns are decoded whole. If cells were bad, their rows are dropped and the rest is decoded
  // once more; bad rows are rare, and this keeps the usual loop free of tests.
  Block decode() {
    filter_.apply(cells_, events_);
    for (;;) {
      bad_.clear();
      for (std::size_t i = 0; i < decoders_.size(); ++i)
        decoders_[i].decode(cells_.columns[i], i, bad_);
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
    if (const auto* label = decoder(csv_.schema.label.column);
        label != nullptr && !csv_.schema.label.column.empty())
      label->append_to(columns);
    return Block::packed(layout_, rows, std::move(columns));
  }
  // A row counts once, however many of its cells are bad; the first one in the order of the columns
  // is the one that is told.
  void drop_bad_rows() {
    std::sort(bad_.begin(), bad_.end(), [](auto a, auto b) {
      return std::pair(a.row, a.column) < std::pair(b.row, b.column);
    });
    std::vector<bool> unwanted(cells_.rows.size());
    for (const BadCell& bad : bad_) {
      if (unwanted[bad.row]) continue;  // its first bad cell was told
      unwanted[bad.row] = true;
      refuse_cell(bad);
    }
    cells_.erase(unwanted);
  }
  // The message names the character within the line, so that an editor can go there. A cell whose
  // quotes were removed is a copy and has no place in the line.
  void refuse_cell(const BadCell& bad) {
    if (!must_tell()) return;
    const std::string_view cell = cells_.columns[bad.column][bad.row];
    const CsvCells::Row& row = cells_.rows[bad.row];
    const bool in_line = !std::less<>()(cell.data(), row.begin) &&
                         !std::less<>()(row.end, cell.data());  // else a copy without its quotes
    const ColumnDecoder& decoder = decoders_[bad.column];
    tell(row.line, in_line ? cell.data() - row.begin + 1 : 0,
         str("column \"", printable(decoder.name()), "\": ", decoder.complaint(cell)));
  }
  void refuse_record() {
    if (!must_tell()) return;
    const QuoteFault& quote = cells_.fault_quote;
    if (quote.kind != QuoteFault::Kind::kNone)
      return tell(cells_.fault_row.line, quote.column, quote_complaint(quote.kind, csv_.schema));
    const bool is_short = cells_.fault_cells < reader_->fields();
    tell(cells_.fault_row.line, 0,
         str(is_short ? "a short row: " : "a long row: ", cells_.fault_cells, " cells where ",
             reader_->fields(), " are expected"));
  }
  // Counts a line that is left out. False: nobody wants to be told why, so no message is made.
  bool must_tell() {
    if (csv_.options.on_error == OnError::kFail) return true;
    ++skipped_;
    return events_.on_skipped_row && told_ < kSkippedRowsTold;
  }
  void tell(std::int64_t line, std::int64_t column, const std::string& why) {
    const std::string place =
        str(csv_.paths[file_], ":", line, ":", column > 0 ? str(column, ": ") : " ", why);
    if (csv_.options.on_error == OnError::kFail)
      throw InvalidArgumentError(str(place, "; ", line_cure()));
    ++told_;
    events_.on_skipped_row(place);
  }

  std::shared_ptr<const StageSpec> source_, features_;
  LineEvents events_;
  Pipes pipes_;
  const CsvSpec& csv_;
  CsvFilter filter_;
  CsvPick pick_;
  std::optional<FeaturePlan> plan_;
  std::shared_ptr<const BlockLayout> layout_;
  std::vector<std::size_t> wanted_;  // places in the schema
  std::vector<ColumnDecoder> decoders_;
  CsvCells cells_;
  std::vector<BadCell> bad_;

  std::unique_ptr<CsvReader> reader_, kept_;  // no reader_: at the end of the last file
  std::size_t file_ = 0;
  std::int64_t record_ = 0;  // records passed, modulo pick_.num
  std::int64_t skipped_ = 0;
  int told_ = 0;
  bool untouched_ = true;  // nothing has been read since it was opened
};

}  // namespace

StagePtr make_csv_source(std::shared_ptr<const StageSpec> source, const ShardSpec& shard,
                         std::shared_ptr<const StageSpec> features, SourceOptions options) {
  return std::make_unique<CsvSource>(std::move(source), shard, std::move(features),
                                     std::move(options));
}

}  // namespace cairn
