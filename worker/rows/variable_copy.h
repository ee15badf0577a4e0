// VariableCopy: one variable with its slots in this process, part by part as its shards have it.
//
// Each part is a RowMemory, as it is on its shard, and an update reaches a part as Routing has it
// reach the shard: rows by their local numbers, and a part that has none of them only if the rule
// reaches every part. So the same updates leave the same bits here and there.
//   Thread  one at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/rows/layout.h"
#include "core/rows/row_memory.h"
#include "core/rows/variable_store.h"
#include "worker/rows/segment.h"

namespace cairn::worker {

class VariableCopy {
 public:
  // Its rows are zeros, and are to be put.
  //   Errors  InvalidArgument: the variable is hashed and has no whole. ResourceExhausted: not
  //           enough memory.
  explicit VariableCopy(const VariableLayout& layout);

  const VariableSpec& spec() const { return *spec_; }
  std::size_t parts() const { return parts_.size(); }
  std::int64_t rows(std::uint32_t part) const { return parts_[part].rows(); }
  std::size_t saved_row_bytes() const;  // of a row with its slots

  // Local rows of a part, from `begin` on, each with its slots: RowMemory::save().
  //   Needs  whole rows, of this part.
  void put(std::uint32_t part, std::int64_t begin, std::span<const std::byte> rows);
  void set_updates(std::uint32_t part, std::int64_t updates) { parts_[part].set_updates(updates); }

  // The rows `ids` (ascending and distinct), or the whole where they are undefined.
  //   Errors  InvalidArgument: ids of another type, or outside the variable.
  Tensor read(const Tensor& ids);

  // Whether a shard would take the update.
  //   Errors  InvalidArgument: it does not fit the variable. FailedPrecondition: the slots are of
  //           another rule.
  void verify(const Update& update) const;
  // Needs  verify().
  void apply(const Update& update, RowEncoding encoding);

  // Goes on from `hash` over all rows, each with its slots.
  std::uint64_t fingerprint(std::uint64_t hash) const;

 private:
  void verify_ids(const Tensor& ids) const;
  const UpdateRule& rule() const { return parts_.front().rule(); }

  std::shared_ptr<const VariableSpec> spec_;
  std::vector<RowMemory> parts_;
  std::vector<float> rounded_;  // values as they would be after their way over the wire
};

}  // namespace cairn::worker
