// Device: where a replica computes, and the memory that it computes in.
//
// A replica runs its steps on one device. The executor takes from it the memory of a step's values,
// the kernels, and the copies between its memory and the host's; it reads and writes a device's
// memory itself only where that is the host's (memory() is Memory::kHost). Strings are in host
// memory on every device, and so is what comes to a step and leaves it: arguments, elements, rows
// and gradients of variables, outputs.
// Kernels and copies run in the order in which they are called. A device may run them later: then
// nothing is known to have run before a copy to the host returns.
//   Thread  any, unless a call says otherwise.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/graph/op_def.h"
#include "core/kernels/fused_tree.h"
#include "core/kernels/kernel.h"

namespace cairn {

// What a device can do that turns trees of elementwise operations into one kernel each.
class Fusion {
 public:
  virtual ~Fusion() = default;
  // Errors  InvalidArgument: an operation of the tree has no kernel for its dtypes.
  // Cost    as KernelRun has it: prepared once, run many times.
  virtual KernelRun prepare(const FusedTree& tree) = 0;
};

class Device {
 public:
  enum class Memory : std::uint8_t { kHost, kOwn };
  enum class Direction : std::uint8_t { kIn, kOut, kWithin };  // from the host, to it, neither

  virtual ~Device() = default;
  virtual std::string_view name() const = 0;  // "cpu"
  virtual Memory memory() const = 0;

  // The device as one workspace uses it, with work in an order of its own: every workspace opens
  // one, which the device outlives. nullptr: workspaces share the device as it is.
  virtual std::unique_ptr<Device> open() { return nullptr; }

  // At least `bytes` of the device's memory, 64-byte aligned, of any contents.
  //   Errors  ResourceExhausted: there is not so much.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) = 0;
  // kIn, kOut: what it names has been copied when it returns. After kOut the kernels before it have
  // run, and an error that one of them found is raised.
  virtual void copy(Direction direction, std::byte* to, const std::byte* from,
                    std::size_t bytes) = 0;

  // The kernel of an operation at these types. Empty: the device has none.
  //   Errors  InvalidArgument: the operation does not take such values.
  virtual KernelRun prepare(const OpDef& op, const KernelTypes& types) = 0;
  // nullptr: the device does not fuse, and has a kernel for each elementwise operation.
  virtual Fusion* fusion() { return nullptr; }
};

// The processor that runs this program, and its memory.
Device& cpu_device();

}  // namespace cairn
