// Matrix products by cuBLASLt.
#pragma once
#include <cublasLt.h>

#include <cstddef>
#include <map>
#include <mutex>

#include "core/kernels/cuda/runtime/driver.h"

namespace cairn::cuda {

// Plans products, and remembers for each shape the algorithm that was fastest when it was first
// planned. Thread: any.
class Products {
 public:
  explicit Products(Driver& driver);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  // `workspace` is the stream's, of kWorkspaceBytes.
  static constexpr std::size_t kWorkspaceBytes = 32u << 20;
  ProductRun plan(const ProductShape& shape, Stream stream, std::byte* workspace);

 private:
  class Planned;
  void tune(Planned& planned, Stream stream);

  Driver& driver_;
  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;  // guards fastest_
  std::map<std::string, cublasLtMatmulAlgo_t> fastest_;
};

}  // namespace cairn::cuda
