#include "data/format/row_stage.h"

#include <algorithm>

namespace cairn {
namespace {

// Decoded rows go on before they leave the caches, or are large.
constexpr std::int64_t kDecodedRowsMax = 512;
constexpr std::size_t kDecodedBytesMax = 1 << 20;

class RowStage final : public FilesStage<RecordReader> {
 public:
  RowStage(RowStageParts parts, SourceRequest request)
      : FilesStage(std::move(parts.files), request.shard, std::move(request.options)),
        stage_(std::move(request.stage)),
        rows_(std::move(parts.rows)),
        record_name_(parts.record),
        layout_(std::make_shared<BlockLayout>(stage_->element)) {
    open_first(std::move(parts.open));
  }

  Block next(std::int64_t most) override {
    RowDecoder& rows = *rows_;
    const std::int64_t wanted = std::min(most, kDecodedRowsMax);
    touch();
    while (reader() && rows.rows() < wanted && rows.bytes() < kDecodedBytesMax) {
      const bool ours = is_ours();
      if (pass_one(ours) && ours && !rows.add(raw_.bytes, fault_)) refuse(fault_);
    }
    const std::int64_t size = rows.rows();
    if (size == 0) return {};
    return Block::packed(layout_, size, rows.take());
  }

  // Skips records without decoding them, unless decoding decides which ones count.
  std::int64_t skip(std::int64_t count) override {
    if (leaves_out_bad()) return Stage::skip(count);
    std::int64_t gone = 0;
    touch();
    while (gone < count && reader()) {
      const bool ours = is_ours();
      const std::size_t before = file();
      pass_one(false);
      if (ours && file() == before) ++gone;
    }
    return gone;
  }

  void restart(std::uint64_t epoch) override {
    rows_->clear();  // those before an error
    FilesStage::restart(epoch);
  }

 private:
  // Goes to the next record, or to the next file. true: raw_ is a record that can be decoded. A
  // file whose rest is lost ends the run for every shard; under kSkipAndCount the shard whose turn
  // it is counts it.
  bool pass_one(bool wanted) {
    if (!reader()->next(raw_, wanted)) {
      next_file();
      return false;
    }
    const bool ours = is_ours();
    passed(1);
    if (raw_.fault.why.empty()) return true;
    const bool lost = raw_.fault.rest_lost;
    if (wanted || (lost && (ours || !leaves_out_bad()))) refuse(raw_.fault);
    if (lost) next_file();
    return false;
  }
  bool is_ours() const { return record() == shard().index; }

  void refuse(const RecordFault& fault) {
    if (!wants_message()) return;
    std::string message = reader()->place(raw_);
    if (fault.column > 0) message += str(":", fault.column);
    message += ": " + fault.why;
    if (leaves_out_bad()) return report(message);
    if (!in_memory())
      message += str("; mend the ", fault.rest_lost ? "file" : record_name_, ", or leave such ",
                     fault.rest_lost ? "rests of files" : str(record_name_, "s"),
                     " out with OnError::kSkipAndCount");
    if (fault.damaged) throw DataLossError(message);
    throw InvalidArgumentError(message);
  }

  std::shared_ptr<const StageSpec> stage_;  // whose schema the rows refer to
  std::unique_ptr<RowDecoder> rows_;
  const char* record_name_;
  std::shared_ptr<const BlockLayout> layout_;
  RawRecord raw_;
  RecordFault fault_;
};

}  // namespace

StagePtr make_row_stage(RowStageParts parts, SourceRequest request) {
  return std::make_unique<RowStage>(std::move(parts), std::move(request));
}

}  // namespace cairn
