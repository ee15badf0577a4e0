#include "data/dataset/stage.h"
#include "data/feature/feature_plan.h"

namespace cairn {
namespace {

// Features of examples that already are tensors, as from records() or below a shuffle(). Directly
// above csv() the source does this work itself, from the text.
class FeaturesStage final : public StageOver {
 public:
  FeaturesStage(StagePtr input, std::shared_ptr<const StageSpec> spec)
      : StageOver(std::move(input)),
        spec_(std::move(spec)),
        below_(std::make_shared<BlockLayout>(spec_->input->element)),
        layout_(std::make_shared<BlockLayout>(spec_->element)),
        plan_(spec_->input->element, std::get<FeaturesSpec>(spec_->kind).columns) {}

  Block next(std::int64_t most) override {
    Block block = input_->next(most);
    if (block.empty()) return block;
    const ElementSpec& below = spec_->input->element;
    Element all = block.pack(below_).batch();  // ragged columns begin at 0
    std::vector<RawColumn> raw(plan_.inputs().size());
    std::vector<std::vector<std::string_view>> texts(raw.size());
    std::vector<const RawColumn*> pointers;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      raw[i] = raw_column(below, all, plan_.inputs()[i], texts[i]);
      pointers.push_back(&raw[i]);
    }
    std::vector<Tensor> made = plan_.apply(pointers, block.size());
    if (!below.label.empty()) made.push_back(all[below.find(below.label)]);
    return Block::packed(layout_, block.size(), std::move(made));
  }
  std::int64_t skip(std::int64_t count) override { return input_->skip(count); }

 private:
  static RawColumn raw_column(const ElementSpec& spec, const Element& all, const std::string& name,
                              std::vector<std::string_view>& text) {
    RawColumn raw;
    std::size_t place = spec.find(name);
    raw.dtype = all[place].dtype();
    if (raw.dtype != DType::kString) {
      raw.values = all[place];
    } else {
      text.assign(all[place].string_values().begin(), all[place].string_values().end());
      raw.text = text;
    }
    for (std::size_t i = 0; i < spec.columns.size(); ++i)
      if (spec.columns[i].name == name + kRowSplits) raw.splits = all[i];
    return raw;
  }

  std::shared_ptr<const StageSpec> spec_;
  std::shared_ptr<const BlockLayout> below_, layout_;
  FeaturePlan plan_;
};

}  // namespace

StagePtr make_features_stage(StagePtr input, std::shared_ptr<const StageSpec> spec) {
  return std::make_unique<FeaturesStage>(std::move(input), std::move(spec));
}

}  // namespace cairn
