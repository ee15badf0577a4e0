// The CPU as a device: the host's memory, the table of CPU kernels, and fusion by blocks.
#include "core/kernels/device.h"

#include <cstring>

#include "core/kernels/cpu/fused.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/memory/arena.h"

namespace cairn {
namespace {

class BlockFusion final : public Fusion {
 public:
  KernelRun prepare(const FusedTree& tree) override { return fuse(tree); }
};

class CpuDevice final : public Device {
 public:
  std::string_view name() const override { return "cpu"; }
  Memory memory() const override { return Memory::kHost; }

  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    auto arena = std::make_shared<Arena>(bytes);
    return {arena, arena->data()};
  }
  void copy(Direction, std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }

  KernelRun prepare(const OpDef& op, const KernelTypes& types) override {
    if (const CpuKernel* kernel = find_cpu_kernel(op.name)) return kernel->prepare(types);
    return op.has(OpFlags::kElementwise) ? fuse(FusedTree::of(op, types)) : KernelRun();
  }
  Fusion* fusion() override { return &fusion_; }

 private:
  BlockFusion fusion_;
};

}  // namespace

Device& cpu_device() {
  static CpuDevice device;  // without state that changes
  return device;
}

}  // namespace cairn
