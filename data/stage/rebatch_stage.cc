// rebatch(): batches of other sizes out of the same examples.
#include <algorithm>
#include <utility>

#include "data/dataset/batch_pieces.h"
#include "data/stage/within_batch.h"

namespace cairn {
namespace {

class RebatchStage final : public WithinBatch {
 public:
  RebatchStage(StagePtr input, const RebatchSpec& spec, const ElementSpec& batches)
      : WithinBatch(std::move(input), "rebatch()", "examples"),
        spec_(spec),
        batches_(batches),
        layout_(std::make_shared<const BlockLayout>(batches)) {}

  Block next(std::int64_t) override {
    const std::int64_t wanted = spec_.sizes[place_];
    std::vector<Block> parts;
    std::int64_t size = 0;
    while (size < wanted && !ended_) {
      if (!find_rows()) {
        ended_ = true;
        break;
      }
      const std::int64_t begin = used(), end = std::min(this->size(), begin + wanted - size);
      size += end - begin;
      use_up_to(end);
      parts.push_back(Block::packed(layout_, end - begin, cut_batch(batches_, batch_, begin, end)));
    }
    const bool dropped = size < wanted && spec_.drop_remainder;
    if (ended_ && (size == 0 || dropped)) return {};
    place_ = (place_ + 1) % spec_.sizes.size();
    if (size == 0) return Block::of(empty_batch(batches_));
    return Block::of(Block::concat(std::move(parts)).batch());
  }

  void restart(std::uint64_t epoch) override {
    WithinBatch::restart(epoch);
    ended_ = false;
    place_ = 0;
  }
  void save(StateWriter& out) const override {
    out.number(place_);
    out.number(ended_ ? 1 : 0);
    WithinBatch::save(out);
  }
  void load(StateReader& in) override {
    place_ = static_cast<std::size_t>(in.number_up_to(
        static_cast<std::int64_t>(spec_.sizes.size()) - 1, "the place in the list of sizes"));
    ended_ = in.number_up_to(1, "whether the data has ended") == 1;
    WithinBatch::load(in);
    if (ended_ && used() > 0)
      throw InvalidArgumentError("a state of rebatch() names examples that its batch has not");
  }

 private:
  std::int64_t hold(Element batch) override {
    batch_ = std::move(batch);
    return batch_size(batches_, batch_);
  }
  void drop() override { batch_.clear(); }

  const RebatchSpec spec_;
  const ElementSpec batches_;
  const std::shared_ptr<const BlockLayout> layout_;
  std::size_t place_ = 0;  // of the next size
  bool ended_ = false;
  Element batch_;  // at hand
};

}  // namespace

StagePtr make_rebatch_stage(StagePtr input, const RebatchSpec& spec, const ElementSpec& batches) {
  return std::make_unique<RebatchStage>(std::move(input), spec, batches);
}

}  // namespace cairn
