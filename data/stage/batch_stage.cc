// batch(): consecutive examples packed into one element. Examples arrive packed column by column
// (data/dataset/block.h), so a batch is mostly one block as it is.
#include <algorithm>

#include "data/stage/next_whole.h"

namespace cairn {
namespace {

class BatchStage final : public StageOver {
 public:
  BatchStage(StagePtr input, const StageSpec& spec, std::size_t bytes_max)
      : StageOver(std::move(input)),
        spec_(std::get<BatchSpec>(spec.kind)),
        layout_(std::make_shared<const BlockLayout>(spec.input->element)),
        bytes_max_(bytes_max) {}

  Block next(std::int64_t) override {
    const Block all = next_whole(*input_, spec_.n, bytes_max_, "a batch");
    if (all.empty() || (all.size() < spec_.n && spec_.drop_remainder)) return {};
    return Block::of(all.pack(layout_).batch());
  }

  // Skips examples below, as many batches at once as keep the product from overflowing. A last
  // batch that is not full counts as one, unless it would be dropped.
  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = 0;
    while (gone < count) {
      std::int64_t at_once =
          std::min(count - gone, std::max<std::int64_t>(1, (std::int64_t{1} << 40) / spec_.n));
      std::int64_t passed = input_->skip(at_once * spec_.n);
      gone += passed / spec_.n;
      if (passed % spec_.n != 0 && !spec_.drop_remainder) ++gone;
      if (passed < at_once * spec_.n) break;
    }
    return gone;
  }

 private:
  const BatchSpec spec_;
  const std::shared_ptr<const BlockLayout> layout_;
  std::size_t bytes_max_;
};

}  // namespace

StagePtr make_batch_stage(StagePtr input, const StageSpec& spec, std::size_t bytes_max) {
  return std::make_unique<BatchStage>(std::move(input), spec, bytes_max);
}

}  // namespace cairn
