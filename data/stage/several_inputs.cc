// concatenate(), zip() and sample_from_datasets(): stages over several others.
#include <algorithm>
#include <numeric>

#include "core/base/random.h"
#include "data/dataset/stage.h"

namespace cairn {
namespace {

// In a state, those of all inputs lie one after another, each with its length.
class StageOverSeveral : public Stage {
 public:
  explicit StageOverSeveral(std::vector<StagePtr> inputs) : inputs_(std::move(inputs)) {}
  void restart(std::uint64_t epoch) override {
    for (auto& input : inputs_) input->restart(epoch);
  }
  void save(StateWriter& out) const override {
    for (const auto& input : inputs_) {
      StateWriter own;
      input->save(own);
      out.blob(own.bytes());
    }
  }
  void load(StateReader& in) override {
    for (auto& input : inputs_) {
      StateReader own(in.blob());
      input->load(own);
      own.expect_end();
    }
  }
  std::int64_t skipped() const override {
    std::int64_t sum = 0;
    for (const auto& input : inputs_) sum += input->skipped();
    return sum;
  }

 protected:
  std::vector<StagePtr> inputs_;
};

class ConcatenateStage final : public StageOverSeveral {
 public:
  using StageOverSeveral::StageOverSeveral;
  Block next(std::int64_t most) override {
    for (; at_ < inputs_.size(); ++at_) {
      Block block = inputs_[at_]->next(most);
      if (!block.empty()) return block;
    }
    return {};
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = 0;
    for (;;) {
      gone += at_ < inputs_.size() ? inputs_[at_]->skip(count - gone) : 0;
      if (gone == count || at_ == inputs_.size()) return gone;
      ++at_;
    }
  }
  void restart(std::uint64_t epoch) override {
    StageOverSeveral::restart(epoch);
    at_ = 0;
  }
  void save(StateWriter& out) const override {
    out.number(at_);
    StageOverSeveral::save(out);
  }
  void load(StateReader& in) override {
    at_ = static_cast<std::size_t>(in.number_up_to(static_cast<std::int64_t>(inputs_.size()),
                                                   "the dataset of a concatenation"));
    StageOverSeveral::load(in);
  }

 private:
  std::size_t at_ = 0;  // the input that is read
};

// The others are asked for as many elements as the first one gave. If one gives fewer, the data
// ends there, and the surplus of the inputs before it is dropped.
class ZipStage final : public StageOverSeveral {
 public:
  ZipStage(std::vector<StagePtr> inputs, const ElementSpec& element)
      : StageOverSeveral(std::move(inputs)),
        layout_(std::make_shared<const BlockLayout>(element)) {}

  Block next(std::int64_t most) override {
    if (ended_) return {};
    std::vector<Block> blocks;
    std::int64_t size = most;
    for (auto& input : inputs_) {
      blocks.push_back(whole(*input, size, blocks.empty()));
      size = blocks.back().size();
      if (size == 0) break;
    }
    ended_ = size < blocks.front().size() || size == 0;
    if (size == 0) return {};
    bool loose = false;
    for (Block& block : blocks) {
      block = block.slice(0, size);
      loose |= !block.elements().empty();
    }
    if (loose)
      for (Block& block : blocks) block = block.loosen();
    return side_by_side(blocks, size);
  }
  std::int64_t skip(std::int64_t count) override {
    if (ended_) return 0;
    std::int64_t gone = count;
    for (auto& input : inputs_) gone = input->skip(gone);
    ended_ = gone < count;
    return gone;
  }
  void restart(std::uint64_t epoch) override {
    StageOverSeveral::restart(epoch);
    ended_ = false;
  }
  void save(StateWriter& out) const override {
    out.number(ended_ ? 1 : 0);
    StageOverSeveral::save(out);
  }
  void load(StateReader& in) override {
    ended_ = in.number_up_to(1, "whether the data has ended") == 1;
    StageOverSeveral::load(in);
  }

 private:
  static Block whole(Stage& input, std::int64_t wanted, bool first) {
    std::vector<Block> parts;
    std::int64_t size = 0;
    do {
      Block part = input.next(wanted - size);
      if (part.empty()) break;
      size += part.size();
      parts.push_back(std::move(part));
    } while (!first && size < wanted);
    return Block::concat(std::move(parts));
  }
  Block side_by_side(const std::vector<Block>& blocks, std::int64_t size) const {
    if (blocks.front().elements().empty()) {
      std::vector<Tensor> columns;
      for (const Block& block : blocks)
        columns.insert(columns.end(), block.columns().begin(), block.columns().end());
      return Block::packed(layout_, size, std::move(columns));
    }
    std::vector<Element> elements(static_cast<std::size_t>(size));
    for (const Block& block : blocks)
      for (std::size_t i = 0; i < elements.size(); ++i)
        elements[i].insert(elements[i].end(), block.elements()[i].begin(),
                           block.elements()[i].end());
    return Block::of(std::move(elements));
  }
  const std::shared_ptr<const BlockLayout> layout_;
  bool ended_ = false;
};

// Which dataset is drawn is a function of (seed, epoch, number of the draw).
class SampleStage final : public StageOverSeveral {
 public:
  SampleStage(std::vector<StagePtr> inputs, const SampleSpec& spec)
      : StageOverSeveral(std::move(inputs)), spec_(spec), left_(inputs_.size(), 1) {}

  Block next(std::int64_t) override {
    while (const auto drawn = draw()) {
      Block block = inputs_[*drawn]->next(1);
      if (!block.empty()) return block;
      left_[*drawn] = 0;
      if (spec_.stop_on_empty) std::ranges::fill(left_, 0);
    }
    return {};
  }
  void restart(std::uint64_t epoch) override {
    StageOverSeveral::restart(epoch);
    epoch_ = epoch;
    draws_ = 0;
    std::ranges::fill(left_, 1);
  }
  void save(StateWriter& out) const override {
    out.number(epoch_);
    out.number(draws_);
    for (const std::uint8_t left : left_) out.number(left);
    StageOverSeveral::save(out);
  }
  void load(StateReader& in) override {
    epoch_ = in.number();
    draws_ = static_cast<std::uint64_t>(in.number_up_to(kCountMax, "the number of draws"));
    for (auto& left : left_)
      left = static_cast<std::uint8_t>(in.number_up_to(1, "whether a dataset has elements"));
    StageOverSeveral::load(in);
  }

 private:
  // Among those that have elements and a weight; none: there are none.
  std::optional<std::size_t> draw() {
    double sum = 0;
    for (std::size_t i = 0; i < left_.size(); ++i) sum += left_[i] * spec_.weights[i];
    if (!(sum > 0)) return std::nullopt;
    const std::uint64_t bits = random_key(random_key(spec_.seed, epoch_), draws_++);
    double at = static_cast<double>(bits >> 11) * 0x1p-53 * sum;
    std::size_t last = 0;
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (left_[i] * spec_.weights[i] <= 0) continue;
      last = i;
      at -= spec_.weights[i];
      if (at < 0) break;
    }
    return last;
  }
  const SampleSpec spec_;
  std::vector<std::uint8_t> left_;  // 0: has ended
  std::uint64_t epoch_ = 0, draws_ = 0;
};

}  // namespace

StagePtr make_concatenate_stage(std::vector<StagePtr> inputs) {
  return std::make_unique<ConcatenateStage>(std::move(inputs));
}
StagePtr make_zip_stage(std::vector<StagePtr> inputs, const ElementSpec& element) {
  return std::make_unique<ZipStage>(std::move(inputs), element);
}
StagePtr make_sample_stage(std::vector<StagePtr> inputs, const SampleSpec& spec) {
  return std::make_unique<SampleStage>(std::move(inputs), spec);
}

}  // namespace cairn
