// DeviceReads: the reads of a run that its device makes by itself, because it keeps variables in
// its memory.
//
// A variable that the store lends lies on the device, whole or cached: nothing is asked of the
// store, and its values are enqueued (serve()). Of others the store gives each distinct row once,
// and the device deals them out to the lookups (deal_out()). Reads are only noted at first; those
// of a wave go to the device together (enqueue()).
//   Thread  the step's.   Cost  one call of the device per wave, whatever is read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/exec/device_rows.h"
#include "core/exec/run_values.h"

namespace cairn {

class DeviceReads {
 public:
  // The values are those of a device that keeps variables.
  explicit DeviceReads(RunValues& values) : values_(values) {}
  // Once the values are bound. `lender`: lends the store's variables to the device; null: none.
  void begin(RowLender* lender);
  bool lends() const { return lender_ != nullptr; }
  // The variable of that number in the graph, as it lies here; null: it stays in its store.
  DeviceRows::Held* hold(std::size_t variable) const;

  // Whether the device has the group's variable. If so, its values are noted, and lie where data()
  // says.
  bool serve(const ReadAt& read);
  // Whether rows of the group that a store gives are dealt out here.
  bool deals(const ReadGroup& group) const;
  void deal_out(const ReadAt& read);
  // Enqueues what was noted. `ids`: the dtype of what the rows are found by, if that is not the
  // values that the graph has for it.
  void enqueue(LookupsTogether& prepared, std::optional<DType> ids = {});
  // Brings rows of later runs into caches. What this run does must be enqueued, because rows move
  // beside it.
  void prepare_later();

  // ---- ids ----

  // The type of the ids of these reads, joined into one vector; a scalar if their dtypes differ.
  TensorType joined_type(std::span<const std::int32_t> readers) const;
  // The ids one behind another, in `joined`, which is allocated at the first call.
  const std::byte* join_ids(std::span<const std::int32_t> readers,
                            std::shared_ptr<std::byte>& joined) const;
  // The places of these ids' rows in the variable's cache.
  const std::byte* find_cached(DeviceRows::Held& held, std::int32_t variable, const TensorType& ids,
                               const std::byte* at) const;
  // As kernels here see the variable's parameters.
  static TensorType type_here(const DeviceRows::Held& held);

 private:
  void serve_whole(const DeviceRows::Held& held, const ReadAt& read);
  void serve_rows(const DeviceRows::Held& held, const ReadAt& read);
  void serve_cached(DeviceRows::Held& held, const ReadAt& read);
  void look_up(std::int32_t read, const RowKernels::GatherRun& run);
  RowKernels::GatherRun run_of_lookup(std::int32_t read, const RowBlock& block,
                                      const std::byte* ids);
  DType dtype_of_rows(std::int32_t read) const;
  bool stays_as_read(std::int32_t read) const;
  CachedRows::Access access_to(std::int32_t variable) const;
  bool has_only_batch(std::size_t wave, std::size_t group) const;
  std::vector<Tensor> columns_of(const ReadGroup& group,
                                 const std::vector<std::vector<Element>>& elements) const;

  RunValues& values_;
  RowLender* lender_ = nullptr;
};

}  // namespace cairn
