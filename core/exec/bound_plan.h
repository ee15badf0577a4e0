// A plan at concrete shapes on a device: types of every value, prepared kernels, and where each
// value lies in the arena. It belongs to one workspace and holds what a run in progress needs, so
// that a warm run allocates next to nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/exec/all_reduce_buffer.h"
#include "core/exec/plan.h"
#include "core/kernels/device.h"
#include "core/rows/unique_ids.h"

namespace cairn {

inline std::size_t bytes_of(const TensorType& type) {
  return static_cast<std::size_t>(type.shape.elements()) * dtype_bytes(type.dtype);
}
inline std::size_t row_bytes_of(const TensorType& type) {
  return static_cast<std::size_t>(type.shape.row_elements()) * dtype_bytes(type.dtype);
}

// InvalidArgument naming the argument or column. Appends the dimensions to `signature`: equal
// signatures have equal shapes throughout.
void check_inputs(const Plan& plan, const RunInputs& inputs, std::vector<std::int64_t>& signature);

struct Instruction {
  std::int32_t node = 0;  // the one that errors name: the last of those computed here
  KernelRun run;          // empty: a check of the elements of input 0
  std::vector<std::int32_t> inputs, outputs;  // values
  // The place in BoundWave::updates of the only reader of what is made here. If the device makes
  // that update, it reads the input instead (BoundUpdate::rows), and this need not run. -1: none.
  std::int32_t for_update = -1;
};

// Rows that lie within those of a larger value.
struct RowsWithin {
  std::int32_t within = -1;            // value; -1: they lie by themselves
  std::int64_t begin = 0, stride = 0;  // elements
};

// A read of a variable that lies in the device's memory.
struct ReadHere {
  bool served = false;         // in this run
  std::vector<bool> in_place;  // beside ReadGroup::nodes: the value is the variable's own memory
  bool cached = false;         // served from a cache
  std::vector<RowKernels::Gathers> gathers;  // of places in the cache, beside ReadGroup::nodes
  std::shared_ptr<std::byte> joined_ids;     // likewise, of all nodes, in the device's memory
  // The rows that the store gave, at most `most`, and for each of `count` ids the place of its row
  // among them, int32; null: the device was not dealt any.
  std::shared_ptr<std::byte> dealt, places;
  std::int64_t most = 0, count = 0;
};

struct BoundUpdate {
  std::int32_t node = 0;
  // It becomes one with those of other replicas, or another one of its variable in the wave does:
  // then the store makes both, in their order.
  bool shared = false;
  RowKernels::Update here;
  std::int64_t rows_here = 0;             // of the variable, or of its cache: `here` is for so many
  std::size_t rates_place = 0;            // among all of the plan's updates
  std::shared_ptr<std::byte> joined_ids;  // of several reads, in the device's memory
  std::int64_t sums_offset = -1;          // in the arena: rows of equal ids summed; -1: dense
  UniqueIds own_ids;                      // if no read has the same ids
  // Where the update's values lie. If that is in a larger value, the device reads them there; for
  // the host they are copied out.
  RowsWithin rows;
  bool summed = false;  // in this run: by the device
};

// The reads that the device makes in one go: of a wave, those of variables that it has, but for
// values that are the variables' own memory, or those of rows that it was dealt.
struct LookupsTogether {
  std::vector<std::int32_t> members;  // nodes
  RowKernels::Gathers run;            // prepared for these members
};

// The updates that the device makes in one go: of a wave's variables, those updated once.
struct UpdatesTogether {
  struct Member {
    const BoundUpdate* update;
    std::int64_t rows;  // of its variable, or of the cache
  };
  std::vector<Member> members;
  RowKernels::Updates run;  // prepared for these members
};

// The updates by ids of a wave whose rows the device sums, and then gives to the host.
struct SumsTogether {
  std::vector<const BoundUpdate*> members;
  RowKernels::Updates run;  // prepared for these members
  std::shared_ptr<std::byte> memory, rates;
  std::vector<std::size_t> offsets;  // in the memory, beside members
  std::size_t bytes = 0;
};

struct BoundWave {
  std::vector<Instruction> compute;
  std::vector<UniqueIds> ids;  // beside Wave::reads
  std::vector<Read> reads;     // likewise; filled anew each run
  std::vector<ReadHere> here;  // likewise
  LookupsTogether lookups, dealt;
  std::vector<BoundUpdate> updates;
  UpdatesTogether together;
  SumsTogether sums;
  std::vector<std::int32_t> reduced;        // values: the outputs of Wave::reductions
  std::vector<AllReduceBuffer> reductions;  // beside `reduced`; filled anew each run
};

// A run that needs nothing from outside once its inputs are on the device: recorded when it is run
// for the second time, and replayed from then on.
struct RecordedRun {
  enum class State : std::uint8_t { kNew, kUsed, kNever };
  State state = State::kNew;
  std::unique_ptr<RecordedWork> work;
  // The addresses that were recorded: the arena, and by variable where its rows are.
  const std::byte* arena = nullptr;
  std::vector<const std::byte*> rows;
};

// The rates of a plan's updates, one behind another in the device's memory.
struct RatesOnDevice {
  std::shared_ptr<std::byte> memory;
  std::vector<std::byte> sent;  // the bytes that lie there
};

class BoundPlan {
 public:
  // not in the arena: an argument, a column, a constant, a variable read whole, where the device's
  // memory is the host's; strings always
  static constexpr std::int64_t kOutside = -1;

  BoundPlan(std::shared_ptr<const Plan> plan, std::vector<std::int64_t> signature,
            const RunInputs& inputs, Device& device);

  const Plan& plan() const { return *plan_; }
  const std::vector<std::int64_t>& signature() const { return signature_; }
  const TensorType& type(std::int32_t value) const {
    return types_[static_cast<std::size_t>(value)];
  }
  // As it lies in the device's memory: bfloat16 where the device keeps a float32 value so.
  TensorType stored_type(std::int32_t value) const {
    const TensorType& type = types_[static_cast<std::size_t>(value)];
    return narrow_[static_cast<std::size_t>(value)] ? TensorType{DType::kBfloat16, type.shape}
                                                    : type;
  }
  // The value whose memory this one is.
  std::int32_t root(std::int32_t value) const { return roots_[static_cast<std::size_t>(value)]; }
  std::int64_t offset(std::int32_t value) const {
    return offsets_[static_cast<std::size_t>(root(value))];
  }
  // Set if a value's rows lie within those of a larger one: of what a lookup reads, if the device
  // makes it; of others always.
  const RowsWithin& rows_of(std::int32_t value) const {
    return within_[static_cast<std::size_t>(value)];
  }
  std::size_t arena_bytes() const { return arena_bytes_; }
  // Raises an error of that node. Before the message stands "train.py:31, in step: matmul(...): ",
  // with the types of its inputs, or "node 3, matmul(...): " where the line is not known.
  [[noreturn]] void fail(std::int32_t node, Code code, const std::string& message) const;

  std::vector<BoundWave> waves;
  // A device with memory of its own has copies of the constants, one behind another: `constants`,
  // and by value where in it each begins.
  bool constants_sent = false;
  std::shared_ptr<std::byte> constants;
  std::map<std::int32_t, std::size_t> constant_offsets;
  RatesOnDevice rates;
  bool announced = false;  // the store's variables, to the device's rows
  RecordedRun recorded;

 private:
  friend class Binder;
  std::shared_ptr<const Plan> plan_;
  std::vector<std::int64_t> signature_;
  std::vector<TensorType> types_;
  std::vector<std::int32_t> roots_;
  std::vector<bool> narrow_;        // by value: lies as bfloat16
  std::vector<RowsWithin> within_;  // by value
  std::vector<std::int64_t> offsets_;
  std::size_t arena_bytes_ = 0;
};

// Gives intervals of time places in one piece of memory: [first, last] inclusive, places 64-byte
// aligned, those that meet in time apart.
struct Interval {
  std::int64_t first = 0, last = 0;
  std::size_t bytes = 0;
  std::int64_t offset = 0;  // out
};
// Returns the bytes wanted. First fit in order of `first`.
std::size_t place_intervals(std::vector<Interval>& intervals);

}  // namespace cairn
