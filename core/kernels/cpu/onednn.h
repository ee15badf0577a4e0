// What the kernels that go to oneDNN share: primitives on the calling thread that allocate nothing once they are prepared.
#pragma once
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/tensor.h"

namespace cairn::onednn {

// oneDNN may be built on OpenMP: it then asks this thread how many threads a team would have. One: no team is ever made. Before any
// call of oneDNN that plans or computes.
void stay_on_this_thread();
const dnnl::engine& engine();
// For primitives whose scratch is ours: oneDNN's own belongs to the thread that prepared them.
dnnl::primitive_attr own_scratch();
// [batch, height, width, channels] as it lies in memory; dnnl's own order of the dimensions is b, c, h, w.
dnnl::memory::desc images(const Shape& shape);

// Runs `f`; what oneDNN throws becomes ResourceExhausted, Unimplemented or Internal, naming `what`.
[[noreturn]] void rethrow(const dnnl::error& error, std::string_view what);
template <typename F>
auto guarded(std::string_view what, F f) {
  try {
    stay_on_this_thread();
    return f();
  } catch (const dnnl::error& error) {
    rethrow(error, what);
  }
}

// A primitive and its arguments. Thread: one at a time.
class Primitive {
 public:
  Primitive(dnnl::primitive primitive, const dnnl::memory::desc& scratch);
  // The argument's elements are at `data` from now on. `form` is always the same for an argument.
  void set(int argument, const dnnl::memory::desc& form, const void* data);
  void set(int argument, dnnl::memory memory) { arguments_[argument] = std::move(memory); }
  void run() { primitive_.execute(stream_, arguments_); }

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace cairn::onednn
