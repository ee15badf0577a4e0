// The update rules on a CUDA device: a variable's rows and slots are changed where they lie.
//
// The results are those of apply_rule() and apply_rule_dense() (core/graph/update_rule.h), to the
// bit but for two rules: row-wise Adagrad adds the squares of a row in another order, and FTRL's
// powers other than -1/2 are those of CUDA's library. A row's result depends on that row alone, not
// on which others come with it.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "core/graph/rules/rule_def.h"
#include "core/graph/update_rule.h"
#include "core/kernels/cuda/runtime/queue.h"
#include "core/kernels/device.h"

namespace cairn::cuda {

// Enqueues one update of `block`, whose base is in device memory, as is all that follows.
//   rates    From fold_rates(), read when the update runs: a recorded update reads new ones at each
//            replay. Assignments do not look at it.
//   numbers  The rows that are changed: distinct, each in [0, block.rows), in any order; a negative
//            number stands for none. Null: all rows in order; `count` is then block.rows, or 0 for
//            an update without rows.
//   values   [count, block.dim], in the block's dtype.
using RuleRun =
    std::function<void(const RowBlock& block, const RuleRates* rates, const std::int64_t* numbers,
                       std::int64_t count, const std::byte* values)>;
// Updates of all rows of different blocks under one rule. Blocks without gaps between rows go in
// one launch, up to 32 of them.
using DenseRun = std::function<void(std::span<const RowKernels::UpdateRun> updates)>;
DenseRun prepare_dense(Queue& queue, const UpdateRule& rule, DType dtype);

// Prepares `rule` for blocks of `dtype`. The queue outlives the run.
//   rows    How many rows a block may have before a run allocates: a table rule keeps 4 bytes of
//           scratch per row. A run that allocates ends the use of earlier recordings of it.
//   Errors  InvalidArgument: the rule cannot change variables of this dtype, as on the CPU. Of a
//           run, Unimplemented: 2^32 - 1 rows or more named under a table rule.
//   Cost    One pass over the rows named, in one launch. A table rule whose rows are named: one
//           pass over the block and two short launches, in which the rows named are marked and
//           unmarked.
RuleRun prepare_rule(Queue& queue, const UpdateRule& rule, DType dtype, std::int64_t rows = 0);
// For kind kCustom: the rows are laid side by side, computed as fused trees, and put back.
RuleRun prepare_custom_rule(Queue& queue, const UpdateRule& rule);

}  // namespace cairn::cuda
