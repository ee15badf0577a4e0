#include "tests/core/kernels/cuda/runtime/fake_nccl.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>

struct Id {
  char bytes[128];
};
struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking;
};

namespace {

constexpr int kInProgress = 7;

std::vector<std::string> calls;
int error = 0;
std::uintptr_t comms = 0;
int ids = 0, questions = 0;
std::vector<std::pair<void**, void*>> connecting;  // to be written again, as NCCL does

int note(std::string call) {
  calls.push_back(std::move(call));
  return error;
}
void end_connecting() {
  for (const auto& [made, comm] : std::exchange(connecting, {})) *made = comm;
}
// A communicator is its number and 1, since null is none.
std::string number(void* comm) {
  return std::to_string(reinterpret_cast<std::uintptr_t>(comm) - 1);
}
std::string type_text(int type) {
  return type == 7 ? "float32" : type == 4 ? "int64" : type == 2 ? "int32" : "another";
}

}  // namespace

std::vector<std::string> take_nccl_calls() { return std::exchange(calls, {}); }
void set_nccl_error(int now) { error = now; }
void set_nccl_progress(int now) { questions = now; }

// The names and types of NCCL's interface.
extern "C" {
#define CAIRN_EXPORT __attribute__((visibility("default")))
CAIRN_EXPORT int ncclGetVersion(int* version) {
  *version = 22809;
  return 0;
}
CAIRN_EXPORT int ncclCommInitAll(void** made, int devices, const int* ordinals) {
  std::string call = "init";
  comms = 0;
  for (int i = 0; i < devices; ++i) {
    made[i] = reinterpret_cast<void*>(++comms);
    call += " " + std::to_string(ordinals[i]);
  }
  return note(call);
}
CAIRN_EXPORT int ncclGetUniqueId(Id* made) {
  *made = {};
  std::snprintf(made->bytes, sizeof made->bytes, "id %d", ++ids);
  made->bytes[127] = 'x';  // all of it counts
  return note("id");
}
CAIRN_EXPORT int ncclCommInitRankConfig(void** made, int ranks, Id id, int rank, Config* config) {
  const bool known = config->size == 24 && config->magic == 0xcafebeef && config->version == 21400;
  if (!known || config->blocking != 0 || id.bytes[127] != 'x') return note("a wrong config");
  *made = reinterpret_cast<void*>(++comms);
  connecting.emplace_back(made, *made);
  return note("rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " by " + id.bytes);
}
CAIRN_EXPORT int ncclCommFinalize(void* comm) { return note("finalize " + number(comm)); }
CAIRN_EXPORT int ncclGroupStart() {
  note("start");
  return 0;
}
CAIRN_EXPORT int ncclGroupEnd() {
  const int status = note("end");
  return status == 0 && questions != 0 ? kInProgress : status;
}
CAIRN_EXPORT int ncclAllReduce(const void*, void*, std::size_t count, int type, int op, void* comm,
                               void*) {
  return note("all_reduce " + number(comm) + " " + type_text(type) + (op == 4 ? " mean" : " sum") +
              " of " + std::to_string(count));
}
CAIRN_EXPORT int ncclCommGetAsyncError(void*, int* found) {
  *found = error == 0 && questions != 0 ? kInProgress : error;
  if (questions > 0) --questions;
  if (questions == 0) end_connecting();
  return 0;
}
CAIRN_EXPORT int ncclCommDestroy(void* comm) { return note("destroy " + number(comm)); }
CAIRN_EXPORT int ncclCommAbort(void* comm) {
  end_connecting();
  return note("abort " + number(comm));
}
CAIRN_EXPORT const char* ncclGetErrorString(int status) {
  return status == 6 ? "remote process error" : "another error";
}
}
