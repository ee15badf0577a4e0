#include "data/row_source.h"

#include <algorithm>

#include "data/byte_source.h"
#include "data/empty_file.h"

namespace cairn {
namespace {

// Decoded rows go on before they leave the caches, or are large.
constexpr std::int64_t kDecodedRowsMax = 512;
constexpr std::size_t kDecodedBytesMax = 1 << 20;

class RowSource final : public Stage {
 public:
  RowSource(const ElementSpec& element, RowSourceParts parts, const ShardSpec& shard,
            SourceOptions options)
      : parts_(std::move(parts)),
        num_(shard.num),
        index_(shard.index),
        options_(std::move(options)),
        layout_(std::make_shared<BlockLayout>(element)) {
    // A missing file is reported now, not hours into the run when its turn comes.
    for (const auto& path : parts_.paths) verify_file(path, options_.pipes);
    open_file();
  }

  Block next(std::int64_t most) override {
    RowDecoder& rows = *parts_.rows;
    const std::int64_t wanted = std::min(most, kDecodedRowsMax);
    untouched_ = false;
    while (reader_ && rows.rows() < wanted && rows.bytes() < kDecodedBytesMax) {
      const bool ours = record_ == index_;
      if (pass(ours) && ours && !rows.add(raw_.bytes, fault_)) refuse(fault_);
    }
    const std::int64_t size = rows.rows();
    if (size == 0) return {};
    return Block::packed(layout_, size, rows.take());
  }

  // Skips records without decoding them, unless only that tells which ones count.
  std::int64_t skip(std::int64_t count) override {
    if (parts_.on_error == OnError::kSkipAndCount) return Stage::skip(count);
    std::int64_t gone = 0;
    untouched_ = false;
    while (gone < count && reader_) {
      const bool ours = record_ == index_;
      const std::size_t file = file_;
      pass(false);
      if (ours && file == file_) ++gone;
    }
    return gone;
  }

  void restart(std::uint64_t) override {
    if (untouched_) return;  // a pipe cannot go back, and nothing else needs to
    parts_.rows->clear();    // those before an error
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
    out.number(reader_ ? static_cast<std::uint64_t>(reader_->number()) : 0);
  }
  void load(StateReader& in) override {
    untouched_ = false;
    const auto files = static_cast<std::int64_t>(parts_.paths.size());
    file_ = static_cast<std::size_t>(in.number_up_to(files, "the number of the file"));
    record_ = in.number_up_to(num_ - 1, "the place within the shards");
    skipped_ = in.number_up_to(kCountMax, "the number of records left out");
    const std::int64_t offset = in.number_up_to(kCountMax, "the place in the file");
    const std::int64_t number = in.number_up_to(kCountMax, "the line or record");
    open_file();
    if (reader_) reader_->seek(static_cast<std::uint64_t>(offset), number);
  }
  std::int64_t skipped() const override { return skipped_; }

 private:
  // At the end of the last file there is no reader_, but the reader is kept: an epoch over one file
  // rewinds it, and a small gzip file need not be decompressed again.
  void open_file() {
    if (file_ == parts_.paths.size()) {
      kept_ = std::move(reader_);
      return;
    }
    if (!reader_) reader_ = std::move(kept_);
    if (reader_ && parts_.paths.size() == 1)
      reader_->rewind();
    else
      reader_ = parts_.open(parts_.paths[file_], options_.pipes);
  }
  void next_file() {
    if (!reader_->saw_records())
      pass_empty_file(parts_.paths[file_], parts_.empty_files, options_.events);
    ++file_;
    open_file();
  }

  // Goes to the next record, or to the next file. true: raw_ is a record that can be decoded. A
  // file whose rest is lost ends the run for every shard; under kSkipAndCount the shard whose turn
  // it is counts it.
  bool pass(bool wanted) {
    if (!reader_->next(raw_, wanted)) {
      next_file();
      return false;
    }
    const bool ours = record_ == index_;
    record_ = (record_ + 1) % num_;
    if (raw_.fault.why.empty()) return true;
    const bool lost = raw_.fault.rest_lost;
    if (wanted || (lost && (ours || parts_.on_error == OnError::kFail))) refuse(raw_.fault);
    if (lost) next_file();
    return false;
  }

  void refuse(const RecordFault& fault) {
    const bool fails = parts_.on_error == OnError::kFail;
    if (!fails) ++skipped_;
    if (!fails && (!options_.events.on_skipped_row || told_ == kSkippedRowsTold)) return;
    std::string message = reader_->place(raw_);
    if (fault.column > 0) message += str(":", fault.column);
    message += ": " + fault.why;
    if (!fails) {
      ++told_;
      return options_.events.on_skipped_row(message);
    }
    message += str("; mend the ", fault.rest_lost ? "file" : parts_.record, ", or leave such ",
                   fault.rest_lost ? "rests of files" : str(parts_.record, "s"),
                   " out with OnError::kSkipAndCount");
    if (fault.damaged) throw DataLossError(message);
    throw InvalidArgumentError(message);
  }

  RowSourceParts parts_;
  std::int64_t num_, index_;
  SourceOptions options_;
  std::shared_ptr<const BlockLayout> layout_;
  std::unique_ptr<RecordReader> reader_, kept_;  // no reader_: at the end of the last file
  RawRecord raw_;
  RecordFault fault_;
  std::size_t file_ = 0;
  std::int64_t record_ = 0;  // records passed, modulo num_
  std::int64_t skipped_ = 0;
  int told_ = 0;
  bool untouched_ = true;  // nothing has been read since it was opened
};

}  // namespace

StagePtr make_row_source(const ElementSpec& element, RowSourceParts parts, const ShardSpec& shard,
                         SourceOptions options) {
  return std::make_unique<RowSource>(element, std::move(parts), shard, std::move(options));
}

}  // namespace cairn
