// A second device: it computes on the CPU, in memory of its own that only its kernels and copies
// can read or write, and counts the work that it is given.
//
// Whatever reaches around the Device is caught: an access to its memory by the host ends the
// process (the pages are inaccessible except within a call), and a kernel that is given a pointer
// to other memory throws InternalError. New memory is filled with NaNs.
#pragma once
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/device.h"

namespace cairn::testing {

// Thread: one.
class FakeDevice final : public Device {
 public:
  struct Counts {
    int allocations = 0;
    int kernels_prepared = 0, trees_prepared = 0;
    int deterministic = 0;  // of both
    int runs = 0;           // of both
    int copies_in = 0, copies_out = 0, copies_within = 0;
    int sent_ahead = 0;   // values
    int found_ahead = 0;  // copies in of a value that was sent ahead
  };
  enum class Fuses : bool { kNo, kYes };

  explicit FakeDevice(Fuses fuses = Fuses::kYes) : fusion_(*this), fuses_(fuses) {}
  ~FakeDevice() override { CAIRN_CHECK(regions_.empty(), "memory of a device outlives it"); }

  std::string_view name() const override { return "fake"; }
  Memory memory() const override { return Memory::kOwn; }

  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    ++counts_.allocations;
    const std::size_t pages = (bytes + kPage) / kPage * kPage;
    void* made = mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CAIRN_CHECK(made != MAP_FAILED, "no memory");
    auto* begin = static_cast<std::byte*>(made);
    std::memset(begin, 0xff, pages);
    regions_[begin] = pages;
    protect(PROT_NONE);
    return {begin, [this](std::byte* memory) {
              munmap(memory, regions_.at(memory));
              regions_.erase(memory);
            }};
  }

  void copy(Direction direction, std::byte* to, const std::byte* from, std::size_t bytes) override {
    ++(direction == Direction::kIn    ? counts_.copies_in
       : direction == Direction::kOut ? counts_.copies_out
                                      : counts_.copies_within);
    check(direction != Direction::kOut, to, bytes);
    check(direction != Direction::kIn, from, bytes);
    const Open open(*this);
    if (bytes > 0) std::memcpy(to, from, bytes);
    counts_.found_ahead += static_cast<int>(
        std::erase_if(ahead_, [&](const Tensor& value) { return value.raw() == from; }));
  }
  void send_ahead(std::span<const Tensor> values) override {
    counts_.sent_ahead += static_cast<int>(values.size());
    ahead_.assign(values.begin(), values.end());
  }

  KernelRun prepare(const OpDef& op, const KernelTypes& types) override {
    KernelRun run = cpu_device().prepare(op, types);
    if (!run) return run;
    ++counts_.kernels_prepared;
    if (types.deterministic) ++counts_.deterministic;
    std::vector<TensorType> read(types.inputs.begin(), types.inputs.end());
    for (std::size_t i = 0; i < read.size(); ++i)
      if (op.needs_shape_only(i)) read[i].shape = Shape{0};  // nothing of it, wherever it is
    return guarded(std::move(run), std::move(read), {types.outputs.begin(), types.outputs.end()});
  }
  Fusion* fusion() override { return fuses_ == Fuses::kYes ? &fusion_ : nullptr; }

  const Counts& counts() const { return counts_; }
  bool holds(const std::byte* at, std::size_t bytes) const {
    auto after = regions_.upper_bound(const_cast<std::byte*>(at));
    if (after == regions_.begin()) return false;
    const auto& [begin, size] = *std::prev(after);
    return at + bytes <= begin + size;
  }

 private:
  static constexpr std::size_t kPage = 4096;

  // For as long as it lives the device's memory can be read and written.
  struct Open {
    explicit Open(FakeDevice& of) : device(of) { device.protect(PROT_READ | PROT_WRITE); }
    ~Open() { device.protect(PROT_NONE); }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    FakeDevice& device;
  };

  class GuardedFusion final : public Fusion {
   public:
    explicit GuardedFusion(FakeDevice& device) : device_(device) {}
    KernelRun prepare(const FusedTree& tree) override {
      ++device_.counts_.trees_prepared;
      if (tree.deterministic) ++device_.counts_.deterministic;
      std::vector<TensorType> inputs = tree.leaves;
      if (tree.product) {
        inputs.push_back({DType::kFloat32, {tree.product->m, tree.product->k}});
        inputs.push_back({DType::kFloat32, {tree.product->k, tree.product->n}});
      }
      return device_.guarded(cpu_device().fusion()->prepare(tree), inputs, {tree.result});
    }

   private:
    FakeDevice& device_;
  };

  void protect(int access) {
    for (const auto& [begin, size] : regions_) mprotect(begin, size, access);
  }

  void check(bool own, const std::byte* at, std::size_t bytes) const {
    if (bytes > 0 && own != holds(at, bytes))
      throw InternalError(str("memory that is ", own ? "not the device's" : "the device's",
                              " is taken for ", own ? "the device's" : "the host's"));
  }

  void check(const std::vector<TensorType>& types, const std::byte* const* pointers) const {
    for (std::size_t i = 0; i < types.size(); ++i)
      if (types[i].dtype != DType::kString)
        check(true, pointers[i],
              static_cast<std::size_t>(types[i].shape.elements()) * dtype_bytes(types[i].dtype));
  }

  KernelRun guarded(KernelRun run, std::vector<TensorType> inputs,
                    std::vector<TensorType> outputs) {
    return [this, run = std::move(run), inputs = std::move(inputs),
            outputs = std::move(outputs)](const KernelCall& call) {
      ++counts_.runs;
      check(inputs, call.inputs);
      check(outputs, call.outputs);
      const Open open(*this);
      run(call);
    };
  }

  Counts counts_;
  std::map<std::byte*, std::size_t> regions_;
  std::vector<Tensor> ahead_;
  GuardedFusion fusion_;
  const Fuses fuses_;
};

}  // namespace cairn::testing
