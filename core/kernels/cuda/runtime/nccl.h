// Nccl: NVIDIA's library for what several GPUs compute together, found at run time, since most
// machines lack it and libcairn_cuda.so must not need it.
//
// Declared here is only the part of its interface that has been the same since its version 2.10,
// and for groups of several processes since 2.14.
//   Source  NVIDIA Collective Communication Library, API reference.
//   Thread  any.
#pragma once
#include <climits>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "core/kernels/cuda/runtime/driver.h"

struct ncclComm;

namespace cairn::cuda {

using NcclComm = ncclComm*;

struct NcclId {  // ncclUniqueId
  char bytes[128] = {};
};

// ncclConfig_t as of 2.14. Newer versions read from it that it is this one, and take their own
// defaults for what it lacks.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef, version = 21400;
  int blocking = 0;         // calls return kInProgress instead of waiting
  int undefined = INT_MIN;  // in place of padding
};

// Its functions. 0 is success, and what they return else describe() says in words.
struct Nccl {
  static constexpr int kInProgress = 7;                       // ncclResult_t
  static constexpr int kInt32 = 2, kInt64 = 4, kFloat32 = 7;  // ncclDataType_t
  static constexpr int kSum = 0, kMean = 4;                   // ncclRedOp_t

  int (*init_all)(NcclComm* comms, int devices, const int* ordinals) = nullptr;
  int (*new_id)(NcclId* id) = nullptr;
  int (*init_rank)(NcclComm* comm, int ranks, NcclId id, int rank, NcclConfig* config) = nullptr;
  int (*finalize)(NcclComm comm) = nullptr;
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
  bool spans = false;  // it has what groups of several processes need
};

// Looked for at the first question: libnccl.so.2, where the system's loader looks.
const Nccl& nccl();

// Has NCCL make all of a communicator's connections when the communicator is made; later a call
// would wait on the host for members that may never come. Before NCCL is first used, while the
// process has one thread that looks at its environment.
void connect_nccl_at_once();

// NCCL's means to sum between processes, as Driver has them.
DeviceSumMeans nccl_means(std::string chip);
//   Errors  Internal: NCCL could not make one. It listens for members from now on.
std::string new_nccl_id();

// A group of these devices, by CUDA's numbers, and of those of other processes, if the place has
// any; none, if there is no NCCL.
//
// In a group that spans processes no call waits on the host without a limit, as NCCL's own would:
// each is begun, and asked after until it has ended or the place's timeout is over. That costs a
// thread of NCCL's for each call. Such a group is left together: its end waits for the other
// processes' for a few seconds, and is then an abort. An abort has no limit of ours: it ends what
// NCCL's threads wait for, and joins them.
//   `choose`  makes that device the thread's.
//   Errors    Internal: NCCL could not connect them. DeadlineExceeded: not within the timeout.
SumGroup make_nccl_group(std::span<const int> ordinals, const DeviceGroupPlace& place = {},
                         const std::function<void(int ordinal)>& choose = {});

}  // namespace cairn::cuda
