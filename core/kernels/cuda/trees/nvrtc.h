// Nvrtc: NVIDIA's compiler of kernels at run time, found when it is first wanted, since many
// machines lack it and libcairn_cuda.so must not need it.
//
// Declared here is only the part of its interface that has been the same since CUDA 11.1.
//   Source  NVRTC, "NVIDIA Runtime Compilation Library".
//   Thread  any.
#pragma once
#include <cstddef>
#include <string>

#include "core/kernels/cuda/runtime/driver.h"

struct _nvrtcProgram;  // as the library calls it

namespace cairn::cuda {

using NvrtcProgram = _nvrtcProgram*;

// Its functions. 0 is success, and what they return else describe() says in words.
struct Nvrtc {
  int (*create)(NvrtcProgram* made, const char* source, const char* name, int headers,
                const char* const* texts, const char* const* names) = nullptr;
  int (*compile)(NvrtcProgram program, int options, const char* const* option) = nullptr;
  int (*code_size)(NvrtcProgram program, std::size_t* bytes) = nullptr;
  int (*code)(NvrtcProgram program, char* to) = nullptr;
  int (*log_size)(NvrtcProgram program, std::size_t* bytes) = nullptr;
  int (*log)(NvrtcProgram program, char* to) = nullptr;
  int (*destroy)(NvrtcProgram* program) = nullptr;
  const char* (*describe)(int status) = nullptr;

  std::string text;  // "by NVRTC 13.0", or why it is not there
  bool found = false;
};

// Looked for at the first question: libnvrtc.so.13, .12 and without a number, where the system's
// loader looks.
//   Cost  the first: up to some tenths of a second, to load it.
const Nvrtc& nvrtc();

// Everything but the source that a kernel's code depends on.
std::string compiler_key(int capability);

// The code of a kernel for devices of that compute capability, 90 for 9.0.
//   Errors  Internal: NVRTC does not compile it; what it says is in the message.
std::string compile_kernel(const KernelSource& source, int capability);

}  // namespace cairn::cuda
