// take, skip and shard: stages that leave elements out.
#include <algorithm>

#include "data/dataset/stage.h"

namespace cairn {
namespace {

constexpr std::int64_t kRowsPassed = 4096;

// Never asks for more than it may take, since elements that are read and not handed out would be
// lost to a resumed iterator.
class TakeStage final : public StageOver {
 public:
  TakeStage(StagePtr input, std::int64_t count) : StageOver(std::move(input)), count_(count) {}
  Block next(std::int64_t most) override {
    if (taken_ == count_) return {};
    Block block = input_->next(std::min(most, count_ - taken_));
    taken_ += block.size();
    return block;
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = input_->skip(std::min(count, count_ - taken_));
    taken_ += gone;
    return gone;
  }
  void restart(std::uint64_t epoch) override {
    StageOver::restart(epoch);
    taken_ = 0;
  }
  void save(StateWriter& out) const override {
    StageOver::save(out);
    out.number(static_cast<std::uint64_t>(taken_));
  }
  void load(StateReader& in) override {
    StageOver::load(in);
    taken_ = in.number_up_to(count_, "the number of elements taken");
  }

 private:
  std::int64_t count_, taken_ = 0;
};

// Skips when it is first asked, not when it is made: a stage that was loaded from a state has its
// skipping behind it.
class SkipStage final : public StageOver {
 public:
  SkipStage(StagePtr input, std::int64_t count) : StageOver(std::move(input)), count_(count) {}
  Block next(std::int64_t most) override {
    begin();
    return input_->next(most);
  }
  std::int64_t skip(std::int64_t count) override {
    begin();
    return input_->skip(count);
  }
  void restart(std::uint64_t epoch) override {
    StageOver::restart(epoch);
    begun_ = false;
  }
  void save(StateWriter& out) const override {
    StageOver::save(out);
    out.number(begun_ ? 1 : 0);
  }
  void load(StateReader& in) override {
    StageOver::load(in);
    begun_ = in.number_up_to(1, "a flag") == 1;
  }

 private:
  void begin() {
    if (!begun_) input_->skip(count_);
    begun_ = true;
  }
  std::int64_t count_;
  bool begun_ = false;
};

// Reads its own elements, and those between them, from below at once, and picks every num-th.
// phase_ is all the state there is: how many elements have passed, modulo num.
class ShardStage final : public StageOver {
 public:
  ShardStage(StagePtr input, const ShardSpec& spec)
      : StageOver(std::move(input)), num_(spec.num), index_(spec.index) {}
  Block next(std::int64_t most) override {
    if (!to_ours()) return {};
    std::int64_t ours = std::clamp<std::int64_t>(kRowsPassed / num_, 1, most);
    Block block = input_->next((ours - 1) * num_ + 1);
    advance(block.size());
    if (num_ == 1) return block;
    rows_.clear();
    for (std::int64_t row = 0; row < block.size(); row += num_) rows_.push_back(row);
    return block.select(rows_);
  }
  // As next(), in steps that keep the product from overflowing.
  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = 0;
    while (gone < count && to_ours()) {
      std::int64_t ours =
          std::min(count - gone, std::max<std::int64_t>(1, (std::int64_t{1} << 40) / num_));
      std::int64_t passed = input_->skip((ours - 1) * num_ + 1);
      advance(passed);
      if (passed == 0) break;
      gone += (passed + num_ - 1) / num_;
    }
    return gone;
  }
  void restart(std::uint64_t epoch) override {
    StageOver::restart(epoch);
    phase_ = 0;
  }
  void save(StateWriter& out) const override {
    StageOver::save(out);
    out.number(static_cast<std::uint64_t>(phase_));
  }
  void load(StateReader& in) override {
    StageOver::load(in);
    phase_ = in.number_up_to(num_ - 1, "the place within the shards");
  }

 private:
  void advance(std::int64_t passed) { phase_ = (phase_ + passed) % num_; }
  // Stands before an element of ours; false: the data ended on the way.
  bool to_ours() {
    std::int64_t lead = (index_ - phase_ + num_) % num_;
    std::int64_t passed = lead == 0 ? 0 : input_->skip(lead);
    advance(passed);
    return passed == lead;
  }
  std::int64_t num_, index_;
  std::int64_t phase_ = 0;  // elements passed below, modulo num_
  std::vector<std::int64_t> rows_;
};

}  // namespace

// The way for stages that cannot skip faster: read and drop.
std::int64_t Stage::skip(std::int64_t count) {
  std::int64_t gone = 0;
  while (gone < count) {
    std::int64_t passed = next(std::min(count - gone, kRowsPassed)).size();
    if (passed == 0) break;
    gone += passed;
  }
  return gone;
}

StagePtr make_take_stage(StagePtr input, const TakeSpec& spec) {
  return std::make_unique<TakeStage>(std::move(input), spec.count);
}
StagePtr make_skip_stage(StagePtr input, const SkipSpec& spec) {
  return std::make_unique<SkipStage>(std::move(input), spec.count);
}
StagePtr make_shard_stage(StagePtr input, const ShardSpec& spec) {
  return std::make_unique<ShardStage>(std::move(input), spec);
}

}  // namespace cairn
