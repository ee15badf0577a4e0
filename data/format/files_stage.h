// FilesStage: what sources have in common that read one file after another by a reader of records:
// where they stand in the files, which records are their shard's, and how many were left out.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "data/dataset/file_source.h"
#include "data/dataset/stage.h"
#include "data/file/byte_source.h"
#include "data/file/empty_file.h"
#include "data/file/record_reader.h"

namespace cairn {

// Which files they are, and what happens to records and files that are bad.
struct FilesRules {
  std::vector<std::string> paths;
  OnError on_error = OnError::kFail;
  EmptyFiles empty_files = EmptyFiles::kFail;
};

// `Reader` is a FileReader.
template <typename Reader>
class FilesStage : public Stage {
 public:
  void restart(std::uint64_t) override {
    if (untouched_) return;  // a pipe cannot go back, and nothing else needs to
    file_ = 0;
    record_ = 0;
    skipped_ = 0;
    open_file();
  }
  // A resumed iterator seeks to the byte where the next record begins; the record's place within
  // the shards says whose it is.
  void save(StateWriter& out) const override {
    out.number(file_);
    out.number(static_cast<std::uint64_t>(record_));
    out.number(static_cast<std::uint64_t>(skipped_));
    out.number(reader_ ? reader_->offset() : 0);
    out.number(reader_ ? static_cast<std::uint64_t>(reader_->number()) : 0);
  }
  void load(StateReader& in) override {
    untouched_ = false;
    const auto files = static_cast<std::int64_t>(rules_.paths.size());
    file_ = static_cast<std::size_t>(in.number_up_to(files, "the number of the file"));
    record_ = in.number_up_to(shard_.num - 1, "the place within the shards");
    skipped_ = in.number_up_to(kCountMax, "the number of records left out");
    const std::int64_t offset = in.number_up_to(kCountMax, "the place in the file");
    const std::int64_t number = in.number_up_to(kCountMax, "the line or record");
    open_file();
    if (reader_) reader_->seek(static_cast<std::uint64_t>(offset), number);
  }
  std::int64_t skipped() const override { return skipped_; }

 protected:
  using Open = std::function<std::unique_ptr<Reader>(const std::string& path,
                                                     std::unique_ptr<ByteSource> bytes)>;

  FilesStage(FilesRules rules, const ShardSpec& shard, SourceOptions options)
      : rules_(std::move(rules)), shard_(shard), options_(std::move(options)) {}

  // Opens the first file. Called once, before all else.
  void open_first(Open open) {
    open_ = std::move(open);
    // A missing file is reported now, not hours into the run when its turn comes.
    if (!in_memory())
      for (const auto& path : rules_.paths) verify_file(path, options_.pipes);
    open_file();
  }
  // Called when it reads: from now on restart() goes back.
  void touch() { untouched_ = false; }
  // At the end of the last file there is none.
  const std::unique_ptr<Reader>& reader() const { return reader_; }
  const std::string& path() const { return rules_.paths[file_]; }
  std::size_t file() const { return file_; }
  void next_file() {
    if (!reader_->saw_records() && !in_memory())
      pass_empty_file(path(), rules_.empty_files, options_.events);
    ++file_;
    open_file();
  }

  // Whether the bytes are not those of files (SourceOptions::open_bytes).
  bool in_memory() const { return options_.open_bytes != nullptr; }
  const LineEvents& events() const { return options_.events; }
  const ShardSpec& shard() const { return shard_; }
  // The place of the next record within the shards.
  std::int64_t record() const { return record_; }
  void passed(std::int64_t records) { record_ = (record_ + records) % shard_.num; }

  bool leaves_out_bad() const { return rules_.on_error == OnError::kSkipAndCount; }
  // Counts a bad record, unless it ends the run. False: its message is not wanted.
  bool wants_message() {
    if (!leaves_out_bad()) return true;
    ++skipped_;
    return options_.events.on_skipped_row && told_ < kSkippedRowsTold;
  }
  // Reports a record that is left out.
  void report(const std::string& message) {
    ++told_;
    options_.events.on_skipped_row(message);
  }

 private:
  // At the end of the last file the reader is kept: an epoch over one file rewinds it, and a small
  // gzip file need not be decompressed again.
  void open_file() {
    if (file_ == rules_.paths.size()) {
      kept_ = std::move(reader_);
      return;
    }
    if (!reader_) reader_ = std::move(kept_);
    if (reader_ && rules_.paths.size() == 1)
      reader_->rewind();
    else
      reader_ = open_(
          path(), in_memory() ? options_.open_bytes(path()) : open_bytes(path(), options_.pipes));
  }

  FilesRules rules_;
  ShardSpec shard_;
  SourceOptions options_;
  Open open_;
  std::unique_ptr<Reader> reader_, kept_;
  std::size_t file_ = 0;
  std::int64_t record_ = 0;  // records passed, modulo shard_.num
  std::int64_t skipped_ = 0;
  int told_ = 0;
  bool untouched_ = true;  // nothing has been read since it was opened
};

}  // namespace cairn
