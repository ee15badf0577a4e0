// shuffle(): blocks of consecutive elements, each in an order of its own. The order is a function
// of (seed, stage, pipeline, epoch, block), so a state holds the state below from before the block,
// and a place in it: resuming reads one block again and draws the same order.
#include <algorithm>
#include <numeric>

#include "core/base/random.h"
#include "data/stage/next_whole.h"

namespace cairn {
namespace {

class ShuffleStage final : public StageOver {
 public:
  ShuffleStage(StagePtr input, const ShuffleSpec& spec, std::uint64_t salt, std::size_t bytes_max)
      : StageOver(std::move(input)), spec_(spec), key_(key_of(spec, salt)), bytes_max_(bytes_max) {}

  Block next(std::int64_t most) override {
    if (!fill()) return {};
    std::int64_t end = std::min(place_ + most, buffer_.size());
    Block block = buffer_.select(std::span(order_).subspan(static_cast<std::size_t>(place_),
                                                           static_cast<std::size_t>(end - place_)));
    move_to(end);
    return block;
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = 0;
    while (gone < count) {
      if (buffer_.empty() && place_ == 0 &&
          count - gone >= spec_.buffer_size) {  // a whole block: its order does not matter
        std::int64_t passed = input_->skip(spec_.buffer_size);
        gone += passed;
        if (passed < spec_.buffer_size) break;
        ++block_;
        continue;
      }
      if (!fill()) break;
      std::int64_t passed = std::min(count - gone, buffer_.size() - place_);
      gone += passed;
      move_to(place_ + passed);
    }
    return gone;
  }

  void restart(std::uint64_t epoch) override {
    StageOver::restart(epoch);
    epoch_ = spec_.reshuffle ? epoch : 0;
    block_ = place_ = 0;
    buffer_ = {};
  }
  void save(StateWriter& out) const override {
    StateWriter below;
    if (buffer_.empty()) input_->save(below);
    out.blob(buffer_.empty() ? below.bytes() : before_);
    out.number(static_cast<std::uint64_t>(block_));
    out.number(static_cast<std::uint64_t>(place_));
  }
  void load(StateReader& in) override {
    StateReader below(in.blob());
    input_->load(below);
    below.expect_end();
    block_ = in.number_up_to(kCountMax, "the block");
    place_ = in.number_up_to(spec_.buffer_size - 1, "the place in the block");
  }

 private:
  // Pipelines that read the same data must not read it in the same order. The order depends on
  // their own numbers, not on the lane that reads, so that an element taken again elsewhere is the
  // same one.
  static std::uint64_t key_of(const ShuffleSpec& spec, std::uint64_t salt) {
    const std::uint64_t key = random_key(spec.seed, salt);
    return spec.pipeline == 0 ? key : random_key(key, spec.pipeline);
  }
  // Makes sure that there is a block with elements left; false: the data is at its end.
  bool fill() {
    if (!buffer_.empty()) return true;
    StateWriter before;
    input_->save(before);
    Block all = next_whole(*input_, spec_.buffer_size, bytes_max_, "a shuffle's block");
    const std::int64_t size = all.size();
    if (size < place_ || (size == place_ && size > 0))
      throw InvalidArgumentError(str("the iterator state is of other data: it stands at element ",
                                     place_, " of a block of ", size));
    if (size == 0) return false;
    buffer_ = std::move(all);
    before_ = before.take();
    draw_order(size);
    return true;
  }
  // Fisher and Yates, in the form of Durstenfeld, "Algorithm 235: Random permutation", CACM 7
  // (1964).
  void draw_order(std::int64_t size) {
    order_.resize(static_cast<std::size_t>(size));
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    Random random(random_key(random_key(key_, epoch_), static_cast<std::uint64_t>(block_)));
    for (std::size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[random.below(i)]);
  }
  void move_to(std::int64_t place) {
    place_ = place;
    if (place_ < buffer_.size()) return;
    buffer_ = {};
    place_ = 0;
    ++block_;
  }

  ShuffleSpec spec_;
  std::uint64_t key_;
  std::size_t bytes_max_;
  std::uint64_t epoch_ = 0;
  std::int64_t block_ = 0, place_ = 0;
  Block buffer_;  // empty: not read yet
  std::vector<std::int64_t> order_;
  std::vector<std::byte> before_;  // the state below from before buffer_ was read
};

}  // namespace

StagePtr make_shuffle_stage(StagePtr input, const ShuffleSpec& spec, std::uint64_t salt,
                            std::size_t bytes_max) {
  return std::make_unique<ShuffleStage>(std::move(input), spec, salt, bytes_max);
}

}  // namespace cairn
