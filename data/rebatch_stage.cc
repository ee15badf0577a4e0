// rebatch(): batches of other sizes out of the same examples.
#include <algorithm>
#include <utility>

#include "data/batch_pieces.h"
#include "data/stage.h"

namespace cairn {
namespace {

// An iterator that is resumed within a batch from below reads that one again, so the state is the
// one before it, and how many of its examples were handed out.
class RebatchStage final : public StageOver {
 public:
  RebatchStage(StagePtr input, const RebatchSpec& spec, const ElementSpec& batches)
      : StageOver(std::move(input)),
        spec_(spec),
        batches_(batches),
        layout_(std::make_shared<const BlockLayout>(batches)) {}

  Block next(std::int64_t) override {
    const std::int64_t wanted = spec_.sizes[place_];
    std::vector<Block> parts;
    std::int64_t size = 0;
    while (size < wanted && !ended_) {
      if (used_ == size_ && !read()) break;
      const std::int64_t end = std::min(size_, used_ + wanted - size);
      size += end - used_;
      const std::int64_t begin = std::exchange(used_, end);
      parts.push_back(Block::packed(layout_, end - begin, cut_batch(batches_, batch_, begin, end)));
    }
    const bool dropped = size < wanted && spec_.drop_remainder;
    if (ended_ && (size == 0 || dropped)) return {};
    place_ = (place_ + 1) % spec_.sizes.size();
    if (size == 0) return Block::of(empty_batch(batches_));
    return Block::of(Block::concat(std::move(parts)).batch());
  }

  void restart(std::uint64_t epoch) override {
    StageOver::restart(epoch);
    ended_ = false;
    place_ = 0;
    forget();
  }
  void save(StateWriter& out) const override {
    out.number(place_);
    out.number(ended_ ? 1 : 0);
    const bool within = used_ < size_;
    out.number(within ? static_cast<std::uint64_t>(used_) : 0);
    out.blob(within ? before_ : state_below());
  }
  void load(StateReader& in) override {
    forget();
    place_ = static_cast<std::size_t>(in.number_up_to(
        static_cast<std::int64_t>(spec_.sizes.size()) - 1, "the place in the list of sizes"));
    ended_ = in.number_up_to(1, "whether the data has ended") == 1;
    const std::int64_t used = in.number_up_to(kCountMax, "the examples used of a batch");
    StateReader below(in.blob());
    StageOver::load(below);
    below.expect_end();
    if (used == 0) return;
    if (ended_ || !read() || used > size_)
      throw InvalidArgumentError("a state of rebatch() names examples that its batch has not");
    used_ = used;
  }

 private:
  std::vector<std::byte> state_below() const {
    StateWriter below;
    StageOver::save(below);
    return below.take();
  }
  // false: the data has ended.
  bool read() {
    for (forget(); size_ == 0;) {
      before_ = state_below();
      const Block block = input_->next(1);
      if (block.empty()) {
        ended_ = true;
        return false;
      }
      batch_ = block.element(0);
      size_ = batch_size(batches_, batch_);
    }
    return true;
  }
  void forget() {
    batch_.clear();
    size_ = used_ = 0;
  }

  const RebatchSpec spec_;
  const ElementSpec batches_;
  const std::shared_ptr<const BlockLayout> layout_;
  std::size_t place_ = 0;  // of the next size
  bool ended_ = false;
  Element batch_;  // at hand, of size_ examples, the first used_ of which were handed out
  std::int64_t size_ = 0, used_ = 0;
  std::vector<std::byte> before_;  // beside batch_: the state below before it was read
};

}  // namespace

StagePtr make_rebatch_stage(StagePtr input, const RebatchSpec& spec, const ElementSpec& batches) {
  return std::make_unique<RebatchStage>(std::move(input), spec, batches);
}

}  // namespace cairn
