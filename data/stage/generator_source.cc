// from_generator(): elements from a function of the program.
//
// The source knows how many elements it handed out and nothing else, so it is resumed by beginning
// the function again and dropping as many.
#include <algorithm>

#include "data/dataset/stage.h"

namespace cairn {
namespace {

constexpr std::int64_t kElementsAtOnce = 256;

class GeneratorSource final : public Stage {
 public:
  explicit GeneratorSource(std::shared_ptr<const StageSpec> spec)
      : spec_(std::move(spec)),
        layout_(std::make_shared<const BlockLayout>(spec_->element)),
        pack_(has_known_shapes(spec_->element)) {}

  Block next(std::int64_t most) override {
    std::vector<Element> elements;
    const auto wanted = static_cast<std::size_t>(std::min(most, kElementsAtOnce));
    while (elements.size() < wanted) {
      auto element = take();
      if (!element) break;
      elements.push_back(std::move(*element));
    }
    const Block loose = Block::of(std::move(elements));
    return pack_ ? loose.pack(layout_) : loose;
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = 0;
    while (gone < count && take()) ++gone;
    return gone;
  }
  void restart(std::uint64_t) override {
    next_ = nullptr;
    place_ = 0;
    ended_ = false;
  }
  void save(StateWriter& out) const override { out.number(static_cast<std::uint64_t>(place_)); }
  void load(StateReader& in) override {
    const std::int64_t place = in.number_up_to(kCountMax, "the place in the generator");
    if (skip(place) != place)
      throw InvalidArgumentError(str("from_generator(): the iterator state stands at element ",
                                     place, ", and begun again the function gives only ", place_));
  }
  std::int64_t skipped() const override { return 0; }

 private:
  // Begun when the first element of a pass is wanted, for that may open files.
  void begin() {
    next_ = (*std::get<GeneratorSpec>(spec_->kind).begin)();
    if (!next_) throw InvalidArgumentError("from_generator(): `begin` returned an empty function");
  }
  std::optional<Element> take() {
    if (ended_) return {};
    if (!next_) begin();
    std::optional<Element> element = next_();
    ended_ = !element;
    if (ended_) return {};
    check(*element);
    ++place_;
    return element;
  }
  void check(const Element& element) const {
    const auto& columns = spec_->element.columns;
    if (element.size() != columns.size())
      throw InvalidArgumentError(str("from_generator(): element ", place_, " has ", element.size(),
                                     " columns, and ", columns.size(), " were announced"));
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const TensorType& type = columns[i].type;
      if (element[i].defined() && element[i].dtype() == type.dtype &&
          type.shape.admits(element[i].shape()))
        continue;
      throw InvalidArgumentError(
          str("from_generator(): column \"", columns[i].name, "\" of element ", place_, " is ",
              element[i].defined() ? element[i].type().to_string() : "without a value", ", and ",
              type.to_string(), " was announced"));
    }
  }

  const std::shared_ptr<const StageSpec> spec_;
  const std::shared_ptr<const BlockLayout> layout_;
  const bool pack_;
  ElementGenerator next_;  // empty: the pass has not begun
  std::int64_t place_ = 0;
  bool ended_ = false;
};

}  // namespace

StagePtr make_generator_source(std::shared_ptr<const StageSpec> spec) {
  return std::make_unique<GeneratorSource>(std::move(spec));
}

}  // namespace cairn
