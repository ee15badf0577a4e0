// repeat(): passes over what is below. Each pass has an epoch, from which shuffles below draw their
// order; nested repeats mix their passes into it (epoch()), so that no two passes share one by
// accident.
#include <algorithm>

#include "core/base/random.h"
#include "data/dataset/stage.h"

namespace cairn {
namespace {

class RepeatStage final : public StageOver {
 public:
  RepeatStage(StagePtr input, std::int64_t count, bool equal_passes)
      : StageOver(std::move(input)), count_(count), equal_passes_(equal_passes) {}

  Block next(std::int64_t most) override {
    while (!over()) {
      Block block = input_->next(most);
      if (!block.empty()) {
        in_pass_ += block.size();
        return block;
      }
      if (!next_pass()) break;
    }
    return {};
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = 0;
    bool whole_pass = in_pass_ == 0;
    while (gone < count && !over()) {
      std::int64_t passed = input_->skip(count - gone);
      gone += passed;
      in_pass_ += passed;
      if (gone == count) break;
      std::int64_t pass = in_pass_;
      if (!next_pass()) break;
      if (whole_pass && equal_passes_) gone += jump(pass, count - gone);
      whole_pass = true;
    }
    return gone;
  }

  void restart(std::uint64_t epoch) override {
    outer_epoch_ = epoch;
    pass_ = in_pass_ = 0;
    StageOver::restart(epoch);
  }
  void save(StateWriter& out) const override {
    // Before the stages below, because load() must tell them the epoch before they load their own
    // state.
    out.number(static_cast<std::uint64_t>(pass_));
    out.number(static_cast<std::uint64_t>(in_pass_));
    StageOver::save(out);
  }
  void load(StateReader& in) override {
    pass_ = in.number_up_to(count_ < 0 ? kCountMax : count_, "the pass");
    in_pass_ = in.number_up_to(kCountMax, "the place in the pass");
    input_->restart(epoch());
    StageOver::load(in);
  }

 private:
  bool over() const { return pass_ == count_; }
  std::uint64_t epoch() const {
    return pass_ == 0 ? outer_epoch_ : random_key(outer_epoch_, static_cast<std::uint64_t>(pass_));
  }
  // Begins the next pass. False: this pass had no elements, so none would follow either, and
  // repeat() without end would spin.
  bool next_pass() {
    bool any = in_pass_ > 0;
    if (!any) return false;
    ++pass_;
    in_pass_ = 0;
    if (!over()) input_->restart(epoch());
    return true;
  }
  // Goes past whole passes without reading: every pass yields the same number of elements, and
  // skip() has just counted one.
  std::int64_t jump(std::int64_t pass_size, std::int64_t count) {
    std::int64_t passes = (count - 1) / pass_size;
    if (count_ >= 0) passes = std::min(passes, count_ - pass_);
    if (passes <= 0) return 0;
    pass_ += passes;
    if (!over()) input_->restart(epoch());
    return passes * pass_size;
  }

  std::int64_t count_;  // -1: without end
  bool equal_passes_;
  std::int64_t pass_ = 0, in_pass_ = 0;
  std::uint64_t outer_epoch_ = 0;
};

}  // namespace

StagePtr make_repeat_stage(StagePtr input, const RepeatSpec& spec, bool equal_passes) {
  return std::make_unique<RepeatStage>(std::move(input), spec.count, equal_passes);
}

}  // namespace cairn
