#include "core/kernels/cuda/runtime/host_run.h"

#include <vector>

namespace cairn::cuda {
namespace {

// A value of the call in host memory; strings are there already.
struct Staged {
  explicit Staged(const TensorType& type) : is_string(type.dtype == DType::kString) {
    if (!is_string) copy = Tensor(type.dtype, type.shape);
  }
  bool is_string;
  Tensor copy;
};

struct HostRun {
  Queue& queue;
  KernelRun run;
  std::vector<Staged> inputs, outputs;
  std::vector<const std::byte*> read;
  std::vector<std::byte*> written;

  void operator()(const KernelCall& call) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      read[i] = inputs[i].is_string ? call.inputs[i] : inputs[i].copy.raw();
      if (!inputs[i].is_string)
        queue.begin_copy_out(inputs[i].copy.mutable_raw(), call.inputs[i], inputs[i].copy.bytes());
    }
    queue.wait();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      written[i] = outputs[i].is_string ? nullptr : outputs[i].copy.mutable_raw();
    run({read.data(), written.data()});
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].is_string)
        call.outputs[i] = written[i];
      else
        queue.copy_in(call.outputs[i], written[i], outputs[i].copy.bytes());
  }
};

}  // namespace

KernelRun run_on_host(Queue& queue, KernelRun run, const KernelTypes& types) {
  if (!run) return run;
  auto made = std::make_shared<HostRun>(HostRun{queue, std::move(run), {}, {}, {}, {}});
  for (const TensorType& type : types.inputs) made->inputs.emplace_back(type);
  for (const TensorType& type : types.outputs) made->outputs.emplace_back(type);
  made->read.resize(made->inputs.size());
  made->written.resize(made->outputs.size());
  return [made](const KernelCall& call) { (*made)(call); };
}

}  // namespace cairn::cuda
