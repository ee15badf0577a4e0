// deal(): what the replicas of a step take one after another.
#include "data/dataset/batch_pieces.h"
#include "data/dataset/stage.h"

namespace cairn {
namespace {

// A batch of which some pieces are still to be handed out is read again by an iterator that is
// resumed there, so the state is the one before it, and how many were handed out.
class CutStage final : public StageOver {
 public:
  CutStage(StagePtr input, const ElementSpec& batches, std::int64_t count)
      : StageOver(std::move(input)), batches_(batches), count_(count) {}

  Block next(std::int64_t) override {
    if (!read()) return {};
    Element piece = std::move(pieces_[static_cast<std::size_t>(given_)]);
    if (++given_ == count_) forget();
    return Block::of(std::move(piece));
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = 0;
    while (gone < count && given_ > 0 && read()) gone += next(1).size();
    const std::int64_t whole = (count - gone) / count_;
    const std::int64_t passed = whole > 0 ? input_->skip(whole) : 0;
    gone += passed * count_;
    if (passed < whole) return gone;
    while (gone < count && read()) gone += next(1).size();
    return gone;
  }

  void restart(std::uint64_t epoch) override {
    StageOver::restart(epoch);
    forget();
  }
  void save(StateWriter& out) const override {
    out.number(static_cast<std::uint64_t>(given_));
    out.blob(pieces_.empty() ? state_below() : before_);
  }
  void load(StateReader& in) override {
    forget();
    given_ = in.number_up_to(count_ - 1, "the number of pieces handed out");
    StateReader below(in.blob());
    StageOver::load(below);
    below.expect_end();
  }

 private:
  std::vector<std::byte> state_below() const {
    StateWriter below;
    StageOver::save(below);
    return below.take();
  }
  // false: the data has ended.
  bool read() {
    if (!pieces_.empty()) return true;
    before_ = state_below();
    const Block block = input_->next(1);
    if (block.empty()) return false;
    pieces_ = cut_in_pieces(batches_, block.element(0), count_);
    return true;
  }
  void forget() {
    pieces_.clear();
    given_ = 0;
  }

  const ElementSpec batches_;
  const std::int64_t count_;
  std::vector<Element> pieces_;  // of the batch at hand; empty: there is none
  std::int64_t given_ = 0;
  std::vector<std::byte> before_;  // beside pieces_: the state below before the batch was read
};

// Batches pass as they are; after the last one come as many of no examples as make the number a
// multiple of `count`.
class InTurnStage final : public StageOver {
 public:
  InTurnStage(StagePtr input, const ElementSpec& batches, std::int64_t count)
      : StageOver(std::move(input)), batches_(batches), count_(count) {}

  Block next(std::int64_t most) override {
    Block block = input_->next(most);
    if (block.empty() && turn_ > 0) block = Block::of(empty_batch(batches_));
    turn_ = (turn_ + block.size()) % count_;
    return block;
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = input_->skip(count);
    turn_ = (turn_ + gone) % count_;
    while (gone < count && turn_ > 0) gone += next(1).size();
    return gone;
  }
  void restart(std::uint64_t epoch) override {
    StageOver::restart(epoch);
    turn_ = 0;
  }
  void save(StateWriter& out) const override {
    StageOver::save(out);
    out.number(static_cast<std::uint64_t>(turn_));
  }
  void load(StateReader& in) override {
    StageOver::load(in);
    turn_ = in.number_up_to(count_ - 1, "the replica whose turn it is");
  }

 private:
  const ElementSpec batches_;
  const std::int64_t count_;
  std::int64_t turn_ = 0;  // elements handed out, modulo count
};

}  // namespace

StagePtr make_deal_stage(StagePtr input, const DealSpec& spec, const ElementSpec& batches) {
  if (spec.cut) return std::make_unique<CutStage>(std::move(input), batches, spec.replicas);
  return std::make_unique<InTurnStage>(std::move(input), batches, spec.replicas);
}

}  // namespace cairn
