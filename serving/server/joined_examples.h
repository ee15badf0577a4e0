// Batches that are joined for one run.
#pragma once
#include <cstdint>
#include <vector>

#include "core/tensor/element.h"

namespace cairn::serving {

// One batch that holds the examples of all parts, in their order, and behind them copies of the
// last one until there are `examples`; of ragged columns, examples without values. Each part has
// the columns of `input`, of which "NAME/row_splits" belongs to the ragged column "NAME": the
// splits of later parts are moved behind those before.
//   Thread  any.
Element joined_examples(const ElementSpec& input, const std::vector<const Element*>& parts,
                        std::int64_t examples);

// How many examples a batch of these columns has.
std::int64_t examples_of(const ElementSpec& input, const Element& columns);

// The number of examples to compute `examples` as: one of two in each octave (..., 32, 48, 64,
// 96, ...), so that a graph is made ready for few shapes, which costs as much as computing a few
// hundred examples.
std::int64_t computed_as(std::int64_t examples);

}  // namespace cairn::serving
