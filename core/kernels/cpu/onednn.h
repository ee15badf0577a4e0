// Shared by the kernels that go to oneDNN: primitives on the calling thread whose buffers are made
// when they are prepared.
#pragma once
#include <signal.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/kernel.h"
#include "core/tensor/tensor.h"

namespace cairn::onednn {

// oneDNN may be built on OpenMP, and then asks how many threads a team of this thread would have.
// This answers one, so that no team is ever made. To be called before any call of oneDNN that plans
// or computes.
void stay_on_this_thread();
// The processor, as oneDNN calls a device.
const dnnl::engine& engine();
// Whether the processor multiplies bfloat16 by instructions of its own (AVX-512 BF16, or AMX).
bool has_bfloat16();
// For primitives whose scratch is ours: oneDNN's own belongs to the thread that prepared them.
dnnl::primitive_attr own_scratch();
// [batch, height, width, channels] as it lies in memory; dnnl's own order of the dimensions is b,
// c, h, w.
dnnl::memory::desc images(const Shape& shape);
// Sets every output to 0: the sum, or by our rule the mean, of nothing.
KernelRun zeros(const KernelTypes& types);

// Turns an error of oneDNN into ResourceExhausted, Unimplemented or Internal, naming `what`.
[[noreturn]] void raise(dnnl_status_t status, std::string_view what, std::string_view message);
// Runs `f`, which plans a primitive, with oneDNN's exceptions turned into ours.
template <typename F>
auto guarded(std::string_view what, F f) {
  try {
    stay_on_this_thread();
    return f();
  } catch (const dnnl::error& error) {
    raise(error.status, what, error.what());
  }
}

// Holds back the signals of this thread while it lives; they are handled after it. Some of oneDNN's
// products let the stack pointer point into the heap, where the frame of a signal handler
// overwrites what belongs to others (github.com/uxlfoundation/oneDNN, issue 4845; mended in 3.12).
// Faults, such as SIGSEGV, are not held.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

// A primitive and its arguments. Thread: one at a time.
class Primitive {
 public:
  Primitive(dnnl::primitive primitive, const dnnl::memory::desc& scratch);
  // The argument's elements are at `data` from now on. `form` is always the same for an argument.
  void set(int argument, const dnnl::memory::desc& form, const void* data);
  // The argument is `memory` for the life of the primitive.
  void set(int argument, dnnl::memory memory);
  void run(std::string_view what);

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;  // beside memories_
};

}  // namespace cairn::onednn
