// window(): batches of consecutive elements that may overlap.
#include <algorithm>
#include <deque>

#include "data/dataset/stage.h"

namespace cairn {
namespace {

// Elements that later windows need too are kept, each with the state below from before it was read:
// an iterator is resumed at the first of the next window, and reads the rest again.
class WindowStage final : public StageOver {
 public:
  WindowStage(StagePtr input, const StageSpec& spec, std::size_t bytes_max)
      : StageOver(std::move(input)),
        spec_(std::get<WindowSpec>(spec.kind)),
        layout_(std::make_shared<const BlockLayout>(spec.input->element)),
        bytes_max_(bytes_max) {}

  Block next(std::int64_t) override {
    const std::int64_t span = (spec_.size - 1) * spec_.stride + 1;
    while (size() < span && read()) {
    }
    if (kept_.empty() || (size() < span && spec_.drop_remainder)) return {};
    std::vector<Block> elements;
    for (std::int64_t at = 0; at < std::min(span, size()); at += spec_.stride)
      elements.push_back(kept_[static_cast<std::size_t>(at)].element);
    Block window = Block::of(Block::concat(std::move(elements)).pack(layout_).batch());
    move_on();
    return window;
  }
  void restart(std::uint64_t epoch) override {
    StageOver::restart(epoch);
    forget();
  }
  void save(StateWriter& out) const override {
    if (!kept_.empty()) return out.blob(kept_.front().before);
    StateWriter below;
    StageOver::save(below);
    out.blob(below.bytes());
  }
  void load(StateReader& in) override {
    forget();
    StateReader below(in.blob());
    StageOver::load(below);
    below.expect_end();
  }

 private:
  struct Kept {
    std::vector<std::byte> before;
    Block element;
  };
  std::int64_t size() const { return static_cast<std::int64_t>(kept_.size()); }
  bool read() {
    StateWriter before;
    StageOver::save(before);
    Block block = input_->next(1);
    if (block.empty()) return false;
    bytes_ += block.bytes();
    if (bytes_ > bytes_max_)
      throw ResourceExhaustedError(str("a window of ", spec_.size, " elements takes more than ",
                                       bytes_max_, " bytes; make it smaller"));
    kept_.push_back({before.take(), std::move(block)});
    return true;
  }
  void move_on() {
    const std::int64_t dropped = std::min(spec_.shift, size());
    for (std::int64_t i = 0; i < dropped; ++i) {
      bytes_ -= kept_.front().element.bytes();
      kept_.pop_front();
    }
    if (dropped < spec_.shift) input_->skip(spec_.shift - dropped);
  }
  void forget() {
    kept_.clear();
    bytes_ = 0;
  }

  const WindowSpec spec_;
  const std::shared_ptr<const BlockLayout> layout_;
  const std::size_t bytes_max_;
  std::deque<Kept> kept_;  // from the first element of the next window on
  std::size_t bytes_ = 0;
};

}  // namespace

StagePtr make_window_stage(StagePtr input, const StageSpec& spec, std::size_t bytes_max) {
  return std::make_unique<WindowStage>(std::move(input), spec, bytes_max);
}

}  // namespace cairn
