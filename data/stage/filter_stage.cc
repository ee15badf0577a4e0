// filter() and take_while(): a traced function says of each element whether it goes on.
#include <algorithm>

#include "core/exec/executor.h"
#include "core/graph/graph.h"
#include "data/dataset/map_origins.h"
#include "data/dataset/stage.h"

namespace cairn {
namespace {

constexpr std::int64_t kAtOnce = 256;

class FilterStage final : public StageOver {
 public:
  FilterStage(StagePtr input, const std::vector<std::byte>& graph, bool keep)
      : StageOver(std::move(input)), keep_(keep), plan_(make_plan(parse_with_origins(graph), {})) {}

  // An element taken from below either goes on or is left out for good, so the state stays exact.
  // After the first element that ends a take_while() it does not matter what was taken.
  Block next(std::int64_t most) override {
    while (!ended_) {
      Block block = input_->next(std::min(most, kAtOnce));
      if (block.empty()) break;
      rows_.clear();
      for (std::int64_t i = 0; i < block.size() && !ended_; ++i) {
        if (passes(block.element(i)))
          rows_.push_back(i);
        else
          ended_ = !keep_;
      }
      if (static_cast<std::int64_t>(rows_.size()) == block.size()) return block;
      if (!rows_.empty()) return block.select(rows_);
    }
    return {};
  }
  void restart(std::uint64_t epoch) override {
    StageOver::restart(epoch);
    ended_ = false;
  }
  void save(StateWriter& out) const override {
    out.number(ended_ ? 1 : 0);
    StageOver::save(out);
  }
  void load(StateReader& in) override {
    ended_ = in.number_up_to(1, "whether the data has ended") == 1;
    StageOver::load(in);
  }

 private:
  bool passes(Element element) {
    return run_without_variables(plan_, workspace_, {}, {{}, {{std::move(element)}}})
        .at(0)
        .item<bool>();
  }
  const bool keep_;
  std::shared_ptr<const Plan> plan_;
  Workspace workspace_;
  std::vector<std::int64_t> rows_;
  bool ended_ = false;  // take_while() only
};

}  // namespace

StagePtr make_filter_stage(StagePtr input, const std::vector<std::byte>& graph, bool keep) {
  return std::make_unique<FilterStage>(std::move(input), graph, keep);
}

}  // namespace cairn
