#include "core/kernels/cuda/runtime/nccl.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/library_function.h"

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
  constexpr int kLeast = 21000;          // 2.10, the first that has means
  constexpr int kLeastSpanning = 21400;  // 2.14, the first whose calls need not wait
  made.spans = load(library, "ncclGetUniqueId", made.new_id) &&
               load(library, "ncclCommInitRankConfig", made.init_rank) &&
               load(library, "ncclCommFinalize", made.finalize) && made.found &&
               version >= kLeastSpanning;
  if (made.found && version < kLeast) {
    made.found = false;
    made.text = version_text(version).substr(3) + " is too old, 2.10 is the least that is used";
  } else {
    made.text = made.found ? version_text(version) : "libnccl.so.2 lacks functions of NCCL's";
  }
  return made;
}

bool has_begun(int status) { return status == 0 || status == Nccl::kInProgress; }

void check(int status, std::string_view what) {
  if (!has_begun(status)) throw InternalError(str(what, ": NCCL: ", nccl().describe(status)));
}

int type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return Nccl::kFloat32;
    case DType::kInt32: return Nccl::kInt32;
    case DType::kInt64: return Nccl::kInt64;
    default: CAIRN_CHECK(false, dtype_name(dtype), " has no sum");
  }
}

// The communicators of this process's members, since what one device waits for must end on all.
class Comms {
 public:
  // `timeout`: of calls that return before they have ended; 0: all end before they return.
  Comms(std::size_t members, Duration timeout)
      : made_(members), slots_(members), timeout_(timeout) {}
  ~Comms() {
    if (timeout_ > Duration(0)) leave();
    for (Slot& slot : slots_)
      if (slot.comm != nullptr) nccl().destroy(slot.comm);
  }
  Comms(const Comms&) = delete;
  Comms& operator=(const Comms&) = delete;

  // Where NCCL puts them. It writes them once more, on a thread of its own, when it has connected
  // them or failed to; so they are used from elsewhere.
  NcclComm* made() { return made_.data(); }
  void take_made() {
    for (std::size_t i = 0; i < made_.size(); ++i) slots_[i].comm = made_[i];
  }

  template <typename Use>
  void use(std::size_t member, Use use) {
    Slot& slot = slots_[member];
    const std::lock_guard hold(slot.mutex);
    if (slot.comm == nullptr) throw AbortedError("the group of GPUs was aborted");
    use(slot.comm);
  }
  // Returns when the member's last call has ended.
  void end(std::size_t member, std::string_view what) { end(member, what, timeout_); }
  void require_well(std::size_t member) { check(state_of(member), "a sum of GPUs"); }
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

  int state_of(std::size_t member) {
    int state = 0;
    use(member, [&](NcclComm comm) {
      check(nccl().async_error(comm, &state), "asking for errors of a sum of GPUs");
    });
    return state;
  }
  // abort() may come between two questions.
  void end(std::size_t member, std::string_view what, Duration timeout) {
    if (timeout_ == Duration(0)) return;
    constexpr auto kPause = std::chrono::microseconds(20);
    const auto last = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      const int state = state_of(member);
      if (state != Nccl::kInProgress) return check(state, what);
      if (std::chrono::steady_clock::now() > last)
        throw DeadlineExceededError(str(what, ": NCCL did not end it within ",
                                        std::chrono::duration<double>(timeout).count(),
                                        " s (NCCL_DEBUG=INFO tells what it waits for)"));
      std::this_thread::sleep_for(kPause);
    }
  }
  // Lets values that are on their way to other processes arrive first.
  void leave() noexcept {
    constexpr auto kPatience = std::chrono::seconds(5);
    try {
      for (std::size_t i = 0; i < slots_.size(); ++i)
        use(i, [](NcclComm comm) { check(nccl().finalize(comm), "leaving a group of GPUs"); });
      for (std::size_t i = 0; i < slots_.size(); ++i) end(i, "leaving a group of GPUs", kPatience);
    } catch (const Error&) {
      abort();
    }
  }

  std::vector<NcclComm> made_;
  std::vector<Slot> slots_;
  const Duration timeout_;
};

std::shared_ptr<Comms> connected_here(std::span<const int> ordinals) {
  const auto comms = std::make_shared<Comms>(ordinals.size(), Duration(0));
  check(nccl().init_all(comms->made(), static_cast<int>(ordinals.size()), ordinals.data()),
        "connecting the GPUs of replicas");
  comms->take_made();
  return comms;
}

std::shared_ptr<Comms> connected_with_others(std::span<const int> ordinals,
                                             const DeviceGroupPlace& place,
                                             const std::function<void(int)>& choose) {
  constexpr const char* kWhat = "connecting the GPUs of all processes";
  NcclId id;
  CAIRN_CHECK(place.id.size() == sizeof id.bytes, "an id of NCCL's has ", place.id.size(),
              " bytes");
  place.id.copy(id.bytes, sizeof id.bytes);
  const auto comms = std::make_shared<Comms>(ordinals.size(), place.timeout);
  NcclConfig config;
  for (const int each : ordinals) choose(each);  // an error here comes before a group is open
  check(nccl().group_start(), kWhat);
  int status = 0;
  for (std::size_t i = 0; i < ordinals.size() && has_begun(status); ++i) {
    choose(ordinals[i]);
    status = nccl().init_rank(comms->made() + i, place.size, id, place.first + static_cast<int>(i),
                              &config);
  }
  const int ended = nccl().group_end();
  comms->take_made();
  try {
    check(status, kWhat);
    check(ended, kWhat);
    for (std::size_t i = 0; i < ordinals.size(); ++i) comms->end(i, kWhat);
  } catch (const Error&) {
    comms->abort();
    throw;
  }
  return comms;
}

class NcclMember final : public SumMember {
 public:
  NcclMember(std::shared_ptr<Comms> comms, std::size_t member)
      : comms_(std::move(comms)), member_(member) {}

  // As one operation, so that small values cost one launch.
  void all_reduce(Stream stream, std::span<const DeviceSum> sums) override {
    comms_->use(member_, [&](NcclComm comm) {
      check(nccl().group_start(), "a sum of GPUs");
      int status = 0;
      for (const DeviceSum& sum : sums)
        if (has_begun(status))
          status = nccl().all_reduce(
              sum.values, sum.values, static_cast<std::size_t>(sum.elements), type_of(sum.dtype),
              sum.op == ReduceOp::kMean ? Nccl::kMean : Nccl::kSum, comm, stream);
      const int ended = nccl().group_end();
      check(status, "a sum of GPUs");
      check(ended, "a sum of GPUs");
    });
    comms_->end(member_, "a sum of GPUs");
  }
  void all_have_begun() override { comms_->require_well(member_); }
  void require_well() override { comms_->require_well(member_); }
  void abort() noexcept override { comms_->abort(); }

 private:
  const std::shared_ptr<Comms> comms_;
  const std::size_t member_;  // of this process
};

}  // namespace

const Nccl& nccl() {
  static const Nccl loaded = load_nccl();
  return loaded;
}

void connect_nccl_at_once() { ::setenv("NCCL_RUNTIME_CONNECT", "0", 0); }

DeviceSumMeans nccl_means(std::string chip) {
  const Nccl& found = nccl();
  if (found.spans) return {.by = found.text, .why_not = {}, .chip = std::move(chip)};
  return {.by = {},
          .why_not = found.found ? str("GPUs of one process sum ", found.text,
                                       ", and those of several need 2.14 or newer")
                                 : found.text,
          .chip = std::move(chip)};
}

std::string new_nccl_id() {
  if (!nccl().spans) throw UnimplementedError(nccl_means({}).why_not);
  NcclId id;
  check(nccl().new_id(&id), "opening a group of GPUs");
  return {id.bytes, sizeof id.bytes};
}

SumGroup make_nccl_group(std::span<const int> ordinals, const DeviceGroupPlace& place,
                         const std::function<void(int ordinal)>& choose) {
  SumGroup made{{}, nccl().text};
  if (!nccl().found || (place.spans() && !nccl().spans)) return made;
  const auto comms =
      place.spans() ? connected_with_others(ordinals, place, choose) : connected_here(ordinals);
  for (std::size_t i = 0; i < ordinals.size(); ++i)
    made.members.push_back(std::make_unique<NcclMember>(comms, i));
  return made;
}

}  // namespace cairn::cuda
