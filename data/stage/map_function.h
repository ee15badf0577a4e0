// MapFunction: the traced function of a map(), compiled into a plan that runs on elements.
#pragma once
#include <cstdint>
#include <exception>
#include <memory>

#include "core/exec/executor.h"
#include "data/dataset/block.h"
#include "data/dataset/stage_spec.h"

namespace cairn {

// The elements that the function made, in order, and what it threw at the one after them.
struct Mapped {
  Block block;
  std::exception_ptr error;
};

//   Thread  any, each with a workspace of its own.
class MapFunction {
 public:
  explicit MapFunction(const StageSpec& spec);
  // How many elements it is worth running on at once, at most.
  std::int64_t at_once() const { return at_once_; }
  Mapped run(const Block& block, Workspace& workspace) const;

 private:
  const bool pack_;  // its results travel packed
  const std::int64_t at_once_;
  const std::shared_ptr<const BlockLayout> layout_;
  const std::shared_ptr<const Plan> plan_;
};

}  // namespace cairn
