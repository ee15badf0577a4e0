#include "core/kernels/cpu/kernel_table.h"

#include <unordered_map>

namespace cairn {

const CpuKernel* find_cpu_kernel(std::string_view op) {
  // Built at the first look-up out of tables that each file holds as constants, and not filled by
  // static objects of the files: a linker leaves out a file of a static library to which nothing
  // refers, and its kernels would be missing without a word.
  static const auto table = [] {
    std::unordered_map<std::string_view, const CpuKernel*> all;
    for (auto part :
         {matmul_kernels(), reduction_kernels(), softmax_kernels(), shape_kernels(),
          piece_kernels(), indexing_kernels(), arrange_kernels(), selection_kernels(),
          scatter_kernels(), convolution_kernels(), pooling_kernels(), normalise_kernels(),
          random_kernels(), recommendation_kernels(), string_kernels(), wait_kernels()})
      for (const CpuKernel& kernel : part) all.emplace(kernel.op, &kernel);
    return all;
  }();
  auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace cairn
