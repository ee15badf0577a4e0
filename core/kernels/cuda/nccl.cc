#include "core/kernels/cuda/nccl.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/kernels/cuda/library_function.h"

namespace cairn::cuda {
namespace {

std::string version_text(int version) {
  return str("by NCCL ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

Nccl load_nccl() {
  Nccl made;
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    made.text = "NCCL is not found (libnccl.so.2; set LD_LIBRARY_PATH)";
    return made;
  }
  int (*get_version)(int*) = nullptr;
  int version = 0;
  made.found = load(library, "ncclCommInitAll", made.init_all) &&
               load(library, "ncclGroupStart", made.group_start) &&
               load(library, "ncclGroupEnd", made.group_end) &&
               load(library, "ncclAllReduce", made.all_reduce) &&
               load(library, "ncclCommGetAsyncError", made.async_error) &&
               load(library, "ncclCommDestroy", made.destroy) &&
               load(library, "ncclCommAbort", made.abort) &&
               load(library, "ncclGetErrorString", made.describe) &&
               load(library, "ncclGetVersion", get_version) && get_version(&version) == 0;
  constexpr int kLeast = 21000;  // 2.10, the first that has means
  if (made.found && version < kLeast) {
    made.found = false;
    made.text = version_text(version).substr(3) + " is too old, 2.10 is the least that is used";
  } else {
    made.text = made.found ? version_text(version) : "libnccl.so.2 lacks functions of NCCL's";
  }
  return made;
}

void check(int status, std::string_view what) {
  if (status != 0) throw InternalError(str(what, ": NCCL: ", nccl().describe(status)));
}

int type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return Nccl::kFloat32;
    case DType::kInt32: return Nccl::kInt32;
    case DType::kInt64: return Nccl::kInt64;
    default: CAIRN_CHECK(false, dtype_name(dtype), " has no sum");
  }
}

// The communicators of all members, since what one device waits for must end on all.
class Comms {
 public:
  explicit Comms(std::span<const int> ordinals) : slots_(ordinals.size()) {
    std::vector<NcclComm> made(ordinals.size());
    check(nccl().init_all(made.data(), static_cast<int>(made.size()), ordinals.data()),
          "connecting the GPUs of replicas");
    for (std::size_t i = 0; i < made.size(); ++i) slots_[i].comm = made[i];
  }
  ~Comms() {
    for (Slot& slot : slots_)
      if (slot.comm != nullptr) nccl().destroy(slot.comm);
  }
  Comms(const Comms&) = delete;
  Comms& operator=(const Comms&) = delete;

  template <typename Use>
  void use(std::size_t rank, Use use) {
    Slot& slot = slots_[rank];
    const std::lock_guard hold(slot.mutex);
    if (slot.comm == nullptr) throw AbortedError("the group of GPUs was aborted");
    use(slot.comm);
  }
  void abort() noexcept {
    for (Slot& slot : slots_) {
      const std::lock_guard hold(slot.mutex);
      if (slot.comm != nullptr) nccl().abort(std::exchange(slot.comm, nullptr));
    }
  }

 private:
  struct Slot {
    std::mutex mutex;         // guards comm, which abort() ends in the midst of other calls
    NcclComm comm = nullptr;  // nullptr: aborted
  };
  std::vector<Slot> slots_;
};

class NcclMember final : public SumMember {
 public:
  NcclMember(std::shared_ptr<Comms> comms, std::size_t rank)
      : comms_(std::move(comms)), rank_(rank) {}

  // As one operation, so that small values cost one launch.
  void all_reduce(Stream stream, std::span<const DeviceSum> sums) override {
    comms_->use(rank_, [&](NcclComm comm) {
      check(nccl().group_start(), "a sum of GPUs");
      int status = 0;
      for (const DeviceSum& sum : sums)
        if (status == 0)
          status = nccl().all_reduce(
              sum.values, sum.values, static_cast<std::size_t>(sum.elements), type_of(sum.dtype),
              sum.op == ReduceOp::kMean ? Nccl::kMean : Nccl::kSum, comm, stream);
      const int ended = nccl().group_end();
      check(status, "a sum of GPUs");
      check(ended, "a sum of GPUs");
    });
  }
  void all_have_begun() override {
    comms_->use(rank_, [&](NcclComm comm) {
      int found = 0;
      check(nccl().async_error(comm, &found), "asking for errors of a sum of GPUs");
      check(found, "a sum of GPUs");
    });
  }
  void abort() noexcept override { comms_->abort(); }

 private:
  const std::shared_ptr<Comms> comms_;
  const std::size_t rank_;
};

}  // namespace

const Nccl& nccl() {
  static const Nccl loaded = load_nccl();
  return loaded;
}

void connect_nccl_at_once() { ::setenv("NCCL_RUNTIME_CONNECT", "0", 0); }

SumGroup make_nccl_group(std::span<const int> ordinals) {
  SumGroup made{{}, nccl().text};
  if (!nccl().found) return made;
  const auto comms = std::make_shared<Comms>(ordinals);
  for (std::size_t rank = 0; rank < ordinals.size(); ++rank)
    made.members.push_back(std::make_unique<NcclMember>(comms, rank));
  return made;
}

}  // namespace cairn::cuda
