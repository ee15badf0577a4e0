#include "core/kernels/cuda/ops/kernel_table.h"

#include <unordered_map>
#include <vector>

#include "core/base/error.h"

namespace cairn::cuda {

const Kernel* find_kernel(std::string_view op) {
  static const auto table = [] {
    std::unordered_map<std::string_view, const Kernel*> all;
    for (auto part : {arrange_kernels(), convolution_kernels(), indexing_kernels(),
                      matmul_kernels(), normalise_kernels(), piece_kernels(), pooling_kernels(),
                      random_kernels(), recommendation_kernels(), reduction_kernels(),
                      scatter_kernels(), selection_kernels(), shape_kernels(), softmax_kernels()})
      for (const Kernel& kernel : part) all.emplace(kernel.op, &kernel);
    return all;
  }();
  const auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

std::string fault_text(std::string_view op, std::span<const TensorType> inputs,
                       std::string_view what) {
  std::string text = str(op, "(");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    text += str(i > 0 ? ", " : "", inputs[i].to_string());
  return str(text, "): ", what);
}

std::shared_ptr<const FaultSite> id_fault(Queue& queue, std::string_view op,
                                          const KernelTypes& types, std::int64_t bound) {
  return queue.add_fault(
      [op, bound, inputs = std::vector<TensorType>(types.inputs.begin(), types.inputs.end())](
          std::int64_t position, std::int64_t id) {
        return fault_text(
            op, inputs, str("id ", id, " at position ", position, " is outside [0, ", bound, ")"));
      });
}

}  // namespace cairn::cuda
