// unbatch(): the rows of batches, one after another.
#include <algorithm>
#include <utility>

#include "data/stage.h"

namespace cairn {
namespace {

// As rebatch(): an iterator that is resumed within a batch reads that one again, so the state is
// the one before it, and how many rows were handed out.
class UnbatchStage final : public StageOver {
 public:
  UnbatchStage(StagePtr input, const StageSpec& spec)
      : StageOver(std::move(input)),
        pack_(!spec.batched() && has_known_shapes(spec.element)),
        spec_(spec.element),
        layout_(std::make_shared<const BlockLayout>(spec.element)) {}

  Block next(std::int64_t most) override {
    if (used_ == size_ && !read()) return {};
    const std::int64_t begin = used_;
    used_ = std::min(size_, begin + most);
    const Block rows = all_.slice(begin, used_);
    return pack_ ? rows : rows.loosen();
  }

  void restart(std::uint64_t epoch) override {
    StageOver::restart(epoch);
    forget();
  }
  void save(StateWriter& out) const override {
    const bool within = used_ < size_;
    out.number(within ? static_cast<std::uint64_t>(used_) : 0);
    out.blob(within ? before_ : state_below());
  }
  void load(StateReader& in) override {
    forget();
    const std::int64_t used = in.number_up_to(kCountMax, "the rows used of a batch");
    StateReader below(in.blob());
    StageOver::load(below);
    below.expect_end();
    if (used == 0) return;
    if (!read() || used > size_)
      throw InvalidArgumentError("a state of unbatch() names rows that its batch has not");
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
      if (block.empty()) return false;
      Element batch = block.element(0);
      size_ = rows_in(batch);
      all_ = Block::packed(layout_, size_, std::move(batch));
    }
    return true;
  }
  void forget() {
    all_ = {};
    size_ = used_ = 0;
  }
  // A map() may have made columns of any lengths, and splits of any numbers.
  std::int64_t rows_in(const Element& batch) const {
    std::int64_t rows = -1;
    std::size_t first = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto& column = layout_->columns[i];
      if (column.role == BlockLayout::Role::kRaggedValues) continue;
      std::int64_t own = batch[i].shape()[0];
      if (column.role == BlockLayout::Role::kRowSplits) {
        check_splits(batch[i], batch[column.partner], i);
        --own;
      }
      if (rows < 0) {
        rows = own;
        first = i;
      } else if (own != rows) {
        throw InvalidArgumentError(str("unbatch: a batch has ", rows, " rows in column \"",
                                       spec_.columns[first].name, "\", and ", own, " in \"",
                                       spec_.columns[i].name, "\""));
      }
    }
    return std::max<std::int64_t>(0, rows);
  }
  void check_splits(const Tensor& splits, const Tensor& values, std::size_t at) const {
    const auto all = splits.values<std::int64_t>();
    if (all.empty() || all.front() < 0 || !std::ranges::is_sorted(all) ||
        all.back() > values.shape()[0])
      throw InvalidArgumentError(str("unbatch: column \"", spec_.columns[at].name,
                                     "\" of a batch does not divide its ", values.shape()[0],
                                     " values"));
  }

  const bool pack_;
  const ElementSpec spec_;
  const std::shared_ptr<const BlockLayout> layout_;
  Block all_;  // the batch at hand, of size_ rows, the first used_ of which were handed out
  std::int64_t size_ = 0, used_ = 0;
  std::vector<std::byte> before_;  // the state below before it was read
};

}  // namespace

StagePtr make_unbatch_stage(StagePtr input, const StageSpec& spec) {
  return std::make_unique<UnbatchStage>(std::move(input), spec);
}

}  // namespace cairn
