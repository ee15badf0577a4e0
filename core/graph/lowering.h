// From recorded Arrays to a Graph: what is reachable, in the order it was recorded, each thing
// once.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/function.h"
#include "core/graph/recording.h"

namespace cairn {

struct Lowering {
  std::uint64_t trace = 0;  // whose effects may take part; 0: eager
  std::vector<TensorType> arguments;
  std::vector<ElementSpec> iterators;
  std::vector<std::shared_ptr<const ArrayNode>> effects;  // kept even if no output needs them
  Outputs outputs;
};

// Drops what neither outputs nor effects need and shares equal pure nodes, and equal reads between
// two updates of a variable.
//   Errors  FailedPrecondition: something depends on an effect of another trace. InvalidArgument:
//           two variables of one name, an output without a value.
ConcreteFunction lower(const Lowering& request);

}  // namespace cairn
