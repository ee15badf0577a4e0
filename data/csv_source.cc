#include <algorithm>
#include <functional>
#include <optional>

#include "data/csv_cells.h"
#include "data/csv_reader.h"
#include "data/feature_plan.h"
#include "data/stage.h"

namespace cairn {
namespace {

constexpr std::int64_t kRowsAtOnce = 512;  // their cells stay in the first caches between cutting and decoding

class CsvSource final : public Stage {
 public:
  CsvSource(std::shared_ptr<const StageSpec> source, const ShardSpec& shard, std::shared_ptr<const StageSpec> features)
      : source_(std::move(source)),
        features_(std::move(features)),
        csv_(std::get<CsvSpec>(source_->kind)),
        pick_{shard.num, shard.index} {
    if (features_) plan_.emplace(source_->element, std::get<FeaturesSpec>(features_->kind).columns);
    layout_ = std::make_shared<BlockLayout>(features_ ? features_->element : source_->element);
    choose_columns();
    for (const auto& path : csv_.paths) file_bytes(path);  // a missing file is reported now, not hours into the run
    open_file();
  }

  Block next(std::int64_t most) override {
    std::vector<Block> parts;
    std::int64_t size = 0;
    while (size < most && reader_) {
      reader_->read(std::min(most - size, kRowsAtOnce), record_, pick_, cells_);
      record_ = (record_ + cells_.passed) % pick_.num;
      if (!cells_.fault.empty())
        refuse(cells_.fault_row, 0,
               cells_.fault + "; mend the line, or leave such lines out with OnError::kSkipAndCount");
      if (cells_.passed == 0) {
        next_file();
      } else if (Block block = decode(); !block.empty()) {
        size += block.size();
        parts.push_back(std::move(block));
      }
    }
    return Block::concat(std::move(parts));
  }

  std::int64_t skip(std::int64_t count) override {
    if (csv_.options.on_error == OnError::kSkipAndCount)
      return Stage::skip(count);  // only parsing tells which lines count
    std::int64_t gone = 0;
    while (gone < count) {
      std::int64_t lead = (pick_.index - record_ + pick_.num) % pick_.num;
      std::int64_t at_once = std::min(count - gone, std::max<std::int64_t>(1, (std::int64_t{1} << 40) / pick_.num));
      if (pass(lead) < lead) break;
      std::int64_t passed = pass((at_once - 1) * pick_.num + 1);
      if (passed == 0) break;
      gone += (passed + pick_.num - 1) / pick_.num;
    }
    return gone;
  }

  void restart(std::uint64_t) override {
    file_ = 0;
    record_ = 0;
    skipped_ = 0;
    open_file();
  }
  void save(StateWriter& out) const override {
    out.number(file_);
    out.number(static_cast<std::uint64_t>(record_));
    out.number(static_cast<std::uint64_t>(skipped_));
    out.number(reader_ ? reader_->offset() : 0);
    out.number(reader_ ? static_cast<std::uint64_t>(reader_->line()) : 0);
  }
  void load(StateReader& in) override {
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
  // The columns to cut: those that somebody asks for.
  void choose_columns() {
    const CsvSchema& schema = csv_.schema;
    auto is_wanted = [&](const CsvColumn& column) {
      if (column.skip) return false;
      return !plan_ || column.name == schema.label.column ||
             std::find(plan_->inputs().begin(), plan_->inputs().end(), column.name) != plan_->inputs().end();
    };
    for (std::size_t i = 0; i < schema.columns.size(); ++i)
      if (is_wanted(schema.columns[i])) wanted_.push_back(i);
    for (std::size_t i : wanted_) decoders_.emplace_back(schema, schema.columns[i]);
    cells_.columns.resize(wanted_.size());
  }
  const ColumnDecoder* decoder(const std::string& name) const {
    for (const auto& decoder : decoders_)
      if (decoder.name() == name) return &decoder;
    return nullptr;
  }

  void open_file() {
    if (file_ == csv_.paths.size()) {
      kept_ = std::move(reader_);
      return;
    }
    if (!reader_) reader_ = std::move(kept_);
    if (reader_ && csv_.paths.size() == 1)
      reader_->rewind();  // one file, read again and again
    else
      reader_ = std::make_unique<CsvReader>(csv_.paths[file_], csv_.schema, wanted_);
  }
  void next_file() {
    ++file_;
    open_file();
  }
  // Goes past `count` records; how many there were.
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

  Block decode() {
    for (;;) {
      bad_.clear();
      for (std::size_t i = 0; i < decoders_.size(); ++i) decoders_[i].decode(cells_.columns[i], i, bad_);
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
    for (const auto& name : plan_->inputs()) raw.push_back(&decoder(name)->decoded());
    columns = plan_->apply(raw, rows);
    if (const auto* label = decoder(csv_.schema.label.column); label != nullptr && !csv_.schema.label.column.empty())
      label->append_to(columns);
    return Block::packed(layout_, rows, std::move(columns));
  }
  void drop_bad_rows() {
    auto first = *std::min_element(bad_.begin(), bad_.end(), [](auto a, auto b) {
      return std::pair(a.row, a.column) < std::pair(b.row, b.column);
    });
    if (csv_.options.on_error == OnError::kFail) {
      std::string_view cell = cells_.columns[first.column][first.row];
      const CsvCells::Row& row = cells_.rows[first.row];
      bool in_line = !std::less<>()(cell.data(), row.begin) &&
                     !std::less<>()(row.end, cell.data());  // else a copy without its quotes
      refuse(row, in_line ? cell.data() - row.begin + 1 : 0,
             str("column \"", decoders_[first.column].name(), "\": ", decoders_[first.column].complaint(cell)));
    }
    std::vector<bool> unwanted(cells_.rows.size());
    for (const auto& bad : bad_) unwanted[bad.row] = true;
    skipped_ += std::count(unwanted.begin(), unwanted.end(), true);
    cells_.erase(unwanted);
  }
  // Throws, or counts one line.
  void refuse(const CsvCells::Row& row, std::ptrdiff_t column, const std::string& why) {
    if (csv_.options.on_error == OnError::kFail)
      throw InvalidArgumentError(str(csv_.paths[file_], ":", row.line, ":", column > 0 ? str(column, ": ") : " ", why));
    ++skipped_;
  }

  std::shared_ptr<const StageSpec> source_, features_;
  const CsvSpec& csv_;
  CsvPick pick_;
  std::optional<FeaturePlan> plan_;
  std::shared_ptr<const BlockLayout> layout_;
  std::vector<std::size_t> wanted_;  // places in the schema
  std::vector<ColumnDecoder> decoders_;
  CsvCells cells_;
  std::vector<BadCell> bad_;

  std::unique_ptr<CsvReader> reader_, kept_;  // no reader_: at the end of the last file
  std::size_t file_ = 0;
  std::int64_t record_ = 0;  // records gone by, modulo pick_.num
  std::int64_t skipped_ = 0;
};

}  // namespace

StagePtr make_csv_source(std::shared_ptr<const StageSpec> source, const ShardSpec& shard,
                         std::shared_ptr<const StageSpec> features) {
  return std::make_unique<CsvSource>(std::move(source), shard, std::move(features));
}

}  // namespace cairn
