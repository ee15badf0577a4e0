// Row splits in device memory: where the rows of a ragged example lie.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/runtime/faults.h"

namespace cairn::cuda {

// The rows [begin, end) of an example.
struct RowBounds {
  std::int64_t begin, end;
};

// Nothing, and a fault, where the splits do not ascend from 0 to `rows`.
CAIRN_DEVICE RowBounds rows_of(std::int64_t examples, std::int64_t rows, const std::int64_t* splits,
                               std::int64_t e, const FaultSite& fault) {
  const RowBounds b{splits[e], splits[e + 1]};
  const bool first = e > 0 || b.begin == 0, last = e + 1 < examples || b.end == rows;
  if (first && last && b.begin >= 0 && b.end >= b.begin && b.end <= rows) return b;
  fault.report(e, b.end);
  return {0, 0};
}

// The site to which rows_of() reports.
inline std::shared_ptr<const FaultSite> split_fault(Queue& queue, std::string_view op,
                                                    const KernelTypes& types, std::int64_t rows) {
  return queue.add_fault(
      [op, rows, inputs = std::vector<TensorType>(types.inputs.begin(), types.inputs.end())](
          std::int64_t example, std::int64_t) {
        return fault_text(op, inputs,
                          str("row_splits at example ", example,
                              " do not ascend from 0 to the number of rows, ", rows));
      });
}

}  // namespace cairn::cuda
