// Nccl: NVIDIA's library for what several GPUs compute together, found at run time, since most
// machines lack it and libcairn_cuda.so must not need it.
//
// What is declared of it here is the part of its interface that has been the same since its
// version 2.10.
//   Source  NVIDIA Collective Communication Library, API reference.
//   Thread  any.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "core/kernels/cuda/driver.h"

struct ncclComm;

namespace cairn::cuda {

using NcclComm = ncclComm*;

// Its functions. 0 is success, and what they return else describe() says in words.
struct Nccl {
  static constexpr int kInt32 = 2, kInt64 = 4, kFloat32 = 7;  // ncclDataType_t
  static constexpr int kSum = 0, kMean = 4;                   // ncclRedOp_t

  int (*init_all)(NcclComm* comms, int devices, const int* ordinals) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void* from, void* to, std::size_t count, int type, int op, NcclComm comm,
                    Stream stream) = nullptr;
  int (*async_error)(NcclComm comm, int* status) = nullptr;
  int (*destroy)(NcclComm comm) = nullptr;
  int (*abort)(NcclComm comm) = nullptr;
  const char* (*describe)(int status) = nullptr;

  std::string text;  // "by NCCL 2.28.3", or why it is not there
  bool found = false;
};

// Looked for at the first question: libnccl.so.2, where the system's loader looks.
const Nccl& nccl();

// Has NCCL make all of a communicator's connections when the communicator is made; later a call
// would wait on the host for members that may never come. Before NCCL is first used, while the
// process has one thread that looks at its environment.
void connect_nccl_at_once();

// A group of these devices, by CUDA's numbers; none, if there is no NCCL.
//   Errors  Internal: NCCL could not connect them.
SumGroup make_nccl_group(std::span<const int> ordinals);

}  // namespace cairn::cuda
