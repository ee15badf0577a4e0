// Sources that hold their data: range and tensors.
#include <algorithm>

#include "data/dataset/stage.h"

namespace cairn {
namespace {

// A source of which any element can be made at once, so its state is one number and skipping is
// free.
class IndexedSource : public Stage {
 public:
  explicit IndexedSource(std::int64_t size) : size_(size) {}
  Block next(std::int64_t most) override {
    std::int64_t begin = place_, end = std::min(size_, place_ + std::min(most, size_ - place_));
    if (begin == end) return {};
    Block block = rows(begin, end);
    place_ = end;
    return block;
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = std::min(count, size_ - place_);
    place_ += gone;
    return gone;
  }
  void restart(std::uint64_t) override { place_ = 0; }
  void save(StateWriter& out) const override { out.number(static_cast<std::uint64_t>(place_)); }
  void load(StateReader& in) override {
    place_ = in.number_up_to(size_, "the place in the source");
  }
  std::int64_t skipped() const override { return 0; }

 protected:
  virtual Block rows(std::int64_t begin, std::int64_t end) = 0;

 private:
  std::int64_t size_, place_ = 0;
};

class RangeSource final : public IndexedSource {
 public:
  explicit RangeSource(std::int64_t n) : IndexedSource(n) {}

 private:
  Block rows(std::int64_t begin, std::int64_t end) override {
    Tensor values(DType::kInt64, {end - begin});
    for (std::int64_t i = begin; i < end; ++i)
      values.mutable_values<std::int64_t>()[static_cast<std::size_t>(i - begin)] = i;
    return Block::packed(layout_, end - begin, {values});
  }
  std::shared_ptr<const BlockLayout> layout_ =
      std::make_shared<BlockLayout>(ElementSpec{{{"value", {DType::kInt64, {}}}}, ""});
};

// Hands out slices of the description's own tensors; nothing is copied.
class TensorsSource final : public IndexedSource {
 public:
  explicit TensorsSource(std::shared_ptr<const StageSpec> spec)
      : IndexedSource(std::get<TensorsSpec>(spec->kind).columns.front().second.shape()[0]),
        spec_(std::move(spec)),
        layout_(std::make_shared<BlockLayout>(spec_->element)) {}

 private:
  Block rows(std::int64_t begin, std::int64_t end) override {
    std::vector<Tensor> columns;
    for (const auto& [name, all] : std::get<TensorsSpec>(spec_->kind).columns)
      columns.push_back(all.rows(begin, end));
    return Block::packed(layout_, end - begin, std::move(columns));
  }
  std::shared_ptr<const StageSpec> spec_;
  std::shared_ptr<const BlockLayout> layout_;
};

}  // namespace

StagePtr make_range_source(const RangeSpec& spec) { return std::make_unique<RangeSource>(spec.n); }
StagePtr make_tensors_source(std::shared_ptr<const StageSpec> spec) {
  return std::make_unique<TensorsSource>(std::move(spec));
}

}  // namespace cairn
