// Pushes at random to a shard that has a copy: to a dense, a hashed and a whole variable.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/ps/replica/copied_shard.h"

namespace cairn::ps {

inline constexpr std::int64_t kCopiedRows = 200;

inline UpdateRule lazy_adam() { return {RuleKind::kLazyAdam, {0.9f, 0.999f, 1e-7f}}; }

inline std::shared_ptr<const VariableSpec> hashed_variable(std::string name) {
  VariableSpec spec{.name = std::move(name),
                    .dtype = DType::kFloat32,
                    .shape = {1 << 20, 3},
                    .initializer = Initializer::uniform(-1, 1),
                    .hashed = true};
  return std::make_shared<const VariableSpec>(std::move(spec));
}

inline std::vector<TableConfig> three_tables() {
  return {
      whole_table(0, variable("dense", {kCopiedRows, 3}, Initializer::uniform(-1, 1)), adagrad()),
      whole_table(1, hashed_variable("hashed"), lazy_adam()),
      whole_table(2, variable("whole", {4, 2}), sgd())};
}

// Numbers of a run, all from its seed.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_key(seed_, ++n_) % static_cast<std::uint64_t>(bound));
  }
  Floats values(std::size_t count) {
    Floats values(count);
    for (float& value : values) value = static_cast<float>(below(2001) - 1000) / 1000.0f;
    return values;
  }
  Ids ids(std::int64_t bound) {
    std::set<std::int64_t> drawn;
    for (std::int64_t i = below(8) + 1; i > 0; --i) drawn.insert(below(bound));
    return {drawn.begin(), drawn.end()};
  }

 private:
  std::uint64_t seed_, n_ = 0;
};

inline void push_at_random(CopiedShard& both, Draws& draws, std::uint64_t closure) {
  const std::int64_t which = draws.below(3);
  const StepContext step = both.primary.step(closure);
  if (which == 2) {
    both.primary.push_whole(step, 2, draws.values(8));
    return;
  }
  const Ids ids = draws.ids(which == 0 ? kCopiedRows : 300);
  const Floats values = draws.values(ids.size() * 3);
  both.primary.push(step, static_cast<VariableId>(which), ids, values,
                    which == 0 ? adagrad() : lazy_adam());
}

}  // namespace cairn::ps
