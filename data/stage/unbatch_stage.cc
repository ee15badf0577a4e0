// unbatch(): the rows of batches, one after another.
#include <algorithm>
#include <utility>

#include "data/stage/within_batch.h"

namespace cairn {
namespace {

class UnbatchStage final : public WithinBatch {
 public:
  UnbatchStage(StagePtr input, const StageSpec& spec)
      : WithinBatch(std::move(input), "unbatch()", "rows"),
        pack_(!spec.batched() && has_known_shapes(spec.element)),
        spec_(spec.element),
        layout_(std::make_shared<const BlockLayout>(spec.element)) {}

  Block next(std::int64_t most) override {
    if (!find_rows()) return {};
    const std::int64_t begin = used();
    use_up_to(std::min(size(), begin + most));
    const Block rows = all_.slice(begin, used());
    return pack_ ? rows : rows.loosen();
  }

 private:
  std::int64_t hold(Element batch) override {
    const std::int64_t rows = rows_in(batch);
    all_ = Block::packed(layout_, rows, std::move(batch));
    return rows;
  }
  void drop() override { all_ = {}; }
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
  Block all_;  // the batch at hand
};

}  // namespace

StagePtr make_unbatch_stage(StagePtr input, const StageSpec& spec) {
  return std::make_unique<UnbatchStage>(std::move(input), spec);
}

}  // namespace cairn
