// Device: where a replica computes, and the memory that it computes in.
//
// A replica runs its steps on one device. The executor takes from it the memory of a step's values,
// the kernels, and the copies between its memory and the host's; it reads and writes a device's
// memory itself only where that is the host's (memory() is Memory::kHost). Strings are in host
// memory on every device, and so is what comes to a step and leaves it: arguments, elements, rows
// and gradients of variables, outputs.
// Kernels and copies run in the order in which they are called. A device may run them later: then
// nothing is known to have run before a copy to the host returns, or finish_copies_out().
//   Thread  any, unless a call says otherwise.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/graph/op_def.h"
#include "core/kernels/device_figures.h"
#include "core/kernels/device_group.h"
#include "core/kernels/fused_tree.h"
#include "core/kernels/kernel.h"

namespace cairn {

struct RuleRates;  // core/graph/rules/rule_def.h

// A table in the host's memory, with the rows in use in a device's own. While the object lives,
// only this object changes the table.
//   Thread  that of the workspace.
class CachedRows {
 public:
  // In bytes: rows lie a multiple of this apart.
  static constexpr std::size_t kAlignment = 16;
  enum class Access : std::uint8_t { kReads, kChanges };
  // When it ends, rows that changed since the last flush() are lost.
  virtual ~CachedRows() = default;
  // Brings the rows of these ids into the device's memory.
  //   Result  the place of each, int32, in the device's memory: row numbers of block(). Rows stay
  //           there until the next call.
  //   Errors  ResourceExhausted: no memory on the device. As kernels report what they find: an id
  //           out of range, or more different rows than there are places; both name the table.
  virtual const std::byte* find(const TensorType& ids, const std::byte* at, Access access) = 0;
  // Begins to bring in the rows of a batch that comes after those that are prepared so far, beside
  // what the device computes. `ids`, in the host's memory, follow one another as in find().
  //   Result  whether it did: not if an id is out of range, or there is no room.
  virtual bool prepare(std::span<const Tensor> ids, Access access) = 0;
  virtual int prepared() const = 0;  // batches
  virtual int room() const = 0;      // how many more may be
  // As find(), of the batch that was prepared first, if it was of these very tensors. If not,
  // nullptr: find() then, which forgets all that was prepared.
  virtual const std::byte* use(std::span<const Tensor> ids) = 0;
  // All places. Its number of rows is known after the first find().
  virtual RowBlock block() const = 0;
  // Waits for the device, and brings what changed home.
  virtual void flush() = 0;
  virtual std::size_t bytes() const = 0;  // that it takes of the device's memory now
};

// A device's ability to turn trees of elementwise operations into one kernel each.
class Fusion {
 public:
  virtual ~Fusion() = default;
  // Errors  InvalidArgument: an operation of the tree has no kernel for its dtypes.
  // Cost    as KernelRun has it: prepared once, run many times.
  virtual KernelRun prepare(const FusedTree& tree) = 0;
};

// A device's operations on variables whose rows lie in its memory. All pointers are to that memory.
// A run reports an id that is out of range as kernels do.
class RowKernels {
 public:
  virtual ~RowKernels() = default;
  // Lookups, in the order of `all`: rows[i] = the block's row ids[i], or without ids every row in
  // order; in as few pieces of work as the device can make of them. `rows` is how what is looked up
  // is to lie: the table's dtype, or bfloat16 of a table of float32.
  struct GatherOf {
    TensorType table;
    std::optional<TensorType> ids;  // none: every row in order
    DType rows = DType::kFloat32;
  };
  struct GatherRun {
    RowBlock block;
    const std::byte* ids = nullptr;  // nullptr: none
    std::byte* rows = nullptr;
    std::int64_t rows_stride = 0;  // elements from a row that is written to the next
  };
  using Gathers = std::function<void(std::span<const GatherRun>)>;
  virtual Gathers prepare_gathers(std::span<const GatherOf> all) = 0;
  struct UpdateRun {
    RowBlock block;
    const RuleRates* rates = nullptr;  // read when the update runs
    const std::byte* ids = nullptr;    // nullptr: of every row in order
    const std::byte* values = nullptr;
    std::int64_t values_stride = 0;  // elements from a row of the values to the next; with ids
  };
  // Rows of equal ids become one as equal_ids() says; then the rule is applied as apply_rule() does
  // it, or without ids as apply_rule_dense().
  using Update = std::function<void(const UpdateRun&)>;
  virtual Update prepare_update(const UpdateRule& rule, const TensorType& table,
                                const TensorType* ids) = 0;
  // Updates of as many different variables, in the order of `all`: what one update of each would
  // do, in as few pieces of work as the device can make of them. No values lie in a variable of
  // the set.
  struct UpdateOf {
    UpdateRule rule;
    TensorType table;
    std::optional<TensorType> ids;  // nullopt: of every row in order
  };
  using Updates = std::function<void(std::span<const UpdateRun>)>;
  virtual Updates prepare_updates(std::span<const UpdateOf> all) = 0;
  virtual void fill_zero(std::byte* rows, std::size_t bytes) = 0;
  struct CacheOptions {
    std::string name;       // of the table, for errors
    std::size_t bytes = 0;  // that it may take of the device's memory
    int lookahead = 0;      // batches that may be prepared, at most
  };
  // The table at `home`, of which some rows then lie in the device's memory. The host's is pinned
  // meanwhile. Rows have their slots beside them, and lie a multiple of CachedRows::kAlignment
  // apart. nullptr: the device has no cache.
  //   Errors  ResourceExhausted: the host's memory cannot be pinned, or `bytes` are too few.
  virtual std::unique_ptr<CachedRows> cache_rows(const RowBlock& /*home*/,
                                                 const CacheOptions& /*options*/) {
    return nullptr;
  }
  // Updates of different variables may run at the same time. Whatever is enqueued after this comes
  // after them.
  virtual void finish_updates() {}
};

// Work that was enqueued once and is repeated as a whole, on the same memory.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  virtual void replay() = 0;
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

  // A group of different devices, of which this is the first one here; none, and the reason, by
  // default. As join_devices() has it.
  virtual DeviceGroup join(std::span<Device* const> /*devices*/,
                           const DeviceGroupPlace& /*place*/) {
    return {{}, sum_means().why_not};
  }
  // Whether it can join one that spans processes, and names of such groups, each another one.
  //   Errors  of new_group_id(): Unimplemented: it cannot. Internal: the device failed.
  virtual DeviceSumMeans sum_means() {
    return {.by = {},
            .why_not = std::string(name()) + " cannot sum its values with other devices",
            .chip = {}};
  }
  virtual std::string new_group_id();

  // Bytes of the device's own memory that all workspaces of this process have allocated now.
  virtual std::size_t used_bytes() const { return 0; }
  // For people to read. nullopt: the device has no memory of its own.
  virtual std::optional<DeviceFigures> figures() const { return std::nullopt; }

  // Bytes of the device's own memory, for all processes together; nullopt: the device does not say.
  struct Room {
    std::size_t free = 0, total = 0;
  };
  virtual std::optional<Room> room() const { return std::nullopt; }

  // At least `bytes` of the device's memory, 64-byte aligned, of any contents.
  //   Errors  ResourceExhausted: there is not so much.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) = 0;
  // The same for the rows of variables, which the device counts apart.
  virtual std::shared_ptr<std::byte> allocate_rows(std::size_t bytes) { return allocate(bytes); }
  // kIn, kOut: what it names has been copied when it returns. After kOut the kernels before it have
  // run, and an error that one of them found is raised.
  virtual void copy(Direction direction, std::byte* to, const std::byte* from,
                    std::size_t bytes) = 0;
  // Several copies to the host, of which each costs a wait if it is made by copy(). `to` has the
  // bytes when finish_copies_out() has returned, and must stay until then or until
  // drop_copies_out(); work that is enqueued after the copy may overwrite `from`.
  // finish_copies_out() says of the kernels before it what copy() does, and drops all copies if it
  // raises an error. A device may make the copies at once.
  virtual void begin_copy_out(std::byte* to, const std::byte* from, std::size_t bytes) {
    copy(Direction::kOut, to, from, bytes);
  }
  virtual void finish_copies_out() {}
  virtual void drop_copies_out() noexcept {}
  // Registers whole pages of the host's memory that are copied from and to again and again, such as
  // those shared with a ps of this host. Copies that name a keeper then go straight between these
  // pages and the device.
  //   Result  the registration, to be kept as long as it is wanted: it must go before the memory
  //           and before the device. nullptr: the device gains nothing by it.
  //   Errors  ResourceExhausted: the system does not allow it. Everything works without.
  //   Thread  any.   Cost  a look at each page.
  virtual std::shared_ptr<void> register_host(std::byte* /*begin*/, std::size_t /*bytes*/) {
    return nullptr;
  }
  // As copy(kIn) and begin_copy_out(), for host memory that stays valid and unchanged while
  // `keeper` lives. If the memory was registered (register_host()), the device holds `keeper` until
  // the copy has ended, even if the copies are dropped.
  virtual void copy_in_kept(std::byte* to, const std::byte* from, std::size_t bytes,
                            const std::shared_ptr<const void>& /*keeper*/) {
    copy(Direction::kIn, to, from, bytes);
  }
  virtual void begin_copy_out_kept(std::byte* to, const std::byte* from, std::size_t bytes,
                                   const std::shared_ptr<const void>& /*keeper*/) {
    begin_copy_out(to, from, bytes);
  }
  // Values in the host's memory that a later run is to have. The device may begin to copy them
  // while it computes; copy(kIn) of a value's memory then finds them there. Values that were sent
  // before, and not copied since, are forgotten.
  virtual void send_ahead(std::span<const Tensor> /*values*/) {}

  // The kernel of an operation at these types. Empty: the device has none.
  //   Errors  InvalidArgument: the operation does not take such values.
  virtual KernelRun prepare(const OpDef& op, const KernelTypes& types) = 0;
  // Whether kernels of the operation, and trees of it, take inputs as bfloat16 that it declares
  // float32, and whether they make such a result so too.
  virtual bool takes_bfloat16(const OpDef& /*op*/) const { return false; }
  virtual bool makes_bfloat16(const OpDef& /*op*/) const { return false; }
  // Whether its kernels take a first input, and make an output, of two dimensions whose rows lie
  // within those of a larger value.
  virtual bool takes_rows_within(const OpDef& /*op*/) const { return false; }
  // nullptr: the device does not fuse, and has a kernel for each elementwise operation.
  virtual Fusion* fusion() { return nullptr; }
  // Keeps what `enqueue` has the device do instead of doing it: runs of kernels, and copies within
  // the device's memory. nullptr: the device cannot, and `enqueue` was not called.
  virtual std::unique_ptr<RecordedWork> record(const std::function<void()>& /*enqueue*/) {
    return nullptr;
  }
  // For profilers: what is called from here to end_step() is part of the step of that number. Steps
  // do not nest.
  virtual void begin_step(std::int64_t /*number*/) {}
  virtual void end_step() {}
  // nullptr: the device keeps no variables in its memory.
  virtual RowKernels* row_kernels() { return nullptr; }
};

// Calls made while it lives are part of the step.
class DeviceStepScope {
 public:
  DeviceStepScope(Device& device, std::int64_t number) : device_(device) {
    device_.begin_step(number);
  }
  ~DeviceStepScope() { device_.end_step(); }
  DeviceStepScope(const DeviceStepScope&) = delete;
  DeviceStepScope& operator=(const DeviceStepScope&) = delete;

 private:
  Device& device_;
};

// The processor that runs this program, and its memory.
Device& cpu_device();

}  // namespace cairn
