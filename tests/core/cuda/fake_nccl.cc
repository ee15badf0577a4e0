#include "tests/core/cuda/fake_nccl.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace {

std::vector<std::string> calls;
int error = 0;
std::uintptr_t comms = 0;

int note(std::string call) {
  calls.push_back(std::move(call));
  return error;
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
CAIRN_EXPORT int ncclGroupStart() { return note("start"); }
CAIRN_EXPORT int ncclGroupEnd() { return note("end"); }
CAIRN_EXPORT int ncclAllReduce(const void*, void*, std::size_t count, int type, int op, void* comm,
                               void*) {
  return note("all_reduce " + number(comm) + " " + type_text(type) + (op == 4 ? " mean" : " sum") +
              " of " + std::to_string(count));
}
CAIRN_EXPORT int ncclCommGetAsyncError(void*, int* found) {
  *found = error;
  return 0;
}
CAIRN_EXPORT int ncclCommDestroy(void* comm) { return note("destroy " + number(comm)); }
CAIRN_EXPORT int ncclCommAbort(void* comm) { return note("abort " + number(comm)); }
CAIRN_EXPORT const char* ncclGetErrorString(int status) {
  return status == 6 ? "remote process error" : "another error";
}
}
