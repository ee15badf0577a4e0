#include "core/kernels/cpu/onednn.h"

#include <omp.h>

namespace cairn::onednn {

void stay_on_this_thread() {
  thread_local const bool set = (omp_set_num_threads(1), true);
  static_cast<void>(set);
}

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);  // says where, and holds nothing
  return cpu;
}

dnnl::primitive_attr own_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory::desc images(const Shape& s) {
  return {{s[0], s[3], s[1], s[2]}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::nhwc};
}

void rethrow(const dnnl::error& error, std::string_view what) {
  std::string message = str(what, ": oneDNN: ", error.what());
  if (error.status == dnnl_out_of_memory) throw ResourceExhaustedError(message);
  if (error.status == dnnl_unimplemented) throw UnimplementedError(message);
  throw InternalError(message);
}

Primitive::Primitive(dnnl::primitive primitive, const dnnl::memory::desc& scratch) : primitive_(std::move(primitive)), stream_(engine()) {
  if (scratch.get_size() > 0) arguments_.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(scratch, engine()));
}

void Primitive::set(int argument, const dnnl::memory::desc& form, const void* data) {
  void* place = const_cast<void*>(data);  // oneDNN knows by the argument whether it may write
  auto found = arguments_.find(argument);
  if (found == arguments_.end()) arguments_.emplace(argument, dnnl::memory(form, engine(), place));
  else found->second.set_data_handle(place);
}

}  // namespace cairn::onednn
