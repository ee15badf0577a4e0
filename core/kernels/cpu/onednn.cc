#include "core/kernels/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

namespace cairn::onednn {

// OpenMP keeps the number of threads per calling thread, so each lane sets it once for itself.
void stay_on_this_thread() {
  thread_local const bool set = (omp_set_num_threads(1), true);
  static_cast<void>(set);
}

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);  // says where, and holds nothing
  return cpu;
}

bool has_bfloat16() {
  // sets of instructions are bits
  constexpr auto kNeeded = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kNeeded) == kNeeded;
}

dnnl::primitive_attr own_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory::desc images(const Shape& s) {
  return {{s[0], s[3], s[1], s[2]}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::nhwc};
}

KernelRun zeros(const KernelTypes& types) {
  std::vector<std::size_t> bytes;
  for (const TensorType& type : types.outputs)
    bytes.push_back(static_cast<std::size_t>(type.shape.elements()) * sizeof(float));
  return [bytes](const KernelCall& call) {
    for (std::size_t i = 0; i < bytes.size(); ++i) std::memset(call.outputs[i], 0, bytes[i]);
  };
}

void raise(dnnl_status_t status, std::string_view what, std::string_view message) {
  std::string text = str(what, ": oneDNN: ", message);
  if (status == dnnl_out_of_memory) throw ResourceExhaustedError(text);
  if (status == dnnl_unimplemented) throw UnimplementedError(text);
  throw InternalError(text);
}

HeldSignals::HeldSignals() {
  sigset_t held;
  sigfillset(&held);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&held, fault);
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

HeldSignals::~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

// The scratch is made with the primitive and bound for good. oneDNN's default would be a buffer
// that belongs to the thread which prepared it, and a run may be on another.
Primitive::Primitive(dnnl::primitive primitive, const dnnl::memory::desc& scratch)
    : primitive_(std::move(primitive)), stream_(engine()) {
  if (scratch.get_size() > 0) set(DNNL_ARG_SCRATCHPAD, dnnl::memory(scratch, engine()));
}

// dnnl_exec_arg_t holds a bare handle, so the memory object is kept beside it, at the same place.
void Primitive::set(int argument, dnnl::memory memory) {
  arguments_.push_back({argument, memory.get()});
  memories_.push_back(std::move(memory));
}

void Primitive::set(int argument, const dnnl::memory::desc& form, const void* data) {
  void* place = const_cast<void*>(data);  // oneDNN knows by the argument whether it may write
  auto known = std::find_if(arguments_.begin(), arguments_.end(),
                            [&](const dnnl_exec_arg_t& one) { return one.arg == argument; });
  if (known == arguments_.end())
    set(argument, dnnl::memory(form, engine(), place));
  else
    memories_[static_cast<std::size_t>(known - arguments_.begin())].set_data_handle(place);
}

// The C function, because the C++ one takes a map of the arguments and builds a list of them at
// every call, and a run must not allocate.
void Primitive::run(std::string_view what) {
  stay_on_this_thread();
  const HeldSignals held;
  dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) raise(status, what, "a primitive did not run");
}

}  // namespace cairn::onednn
