// Embedding tables that live wholly in one GPU's memory: lookups, with and without pooling, and the
// update of exactly those rows that a step looked up.
//
//   A set of tables shares one dimension and one piece of memory, and every call serves all tables
//   of a set in one launch. The lookups of a step lie table by table: those of table 0, then those
//   of table 1, and so on; `first_lookup` says where each table's begin.
//
//   Pointers  All of them are device pointers, to memory of the caller's, unless a line says
//             otherwise. Rows, outputs and gradients are aligned to 16 bytes, and so are strides.
//   Streams   Every call only enqueues work on its stream: it allocates nothing, waits for nothing
//             and may be captured into a CUDA graph. What changes from step to step (ids,
//             `first_lookup`, rates) is read from device memory, so that a replayed graph sees it.
//   Ids       An id outside of its table reads as zeros, and its gradient is dropped and counted
//             (RowGroups::refused()). Nothing outside of the table is touched.
//   Errors    InvalidArgument: sizes that do not fit. Internal: CUDA refused a launch. What goes
//             wrong while a kernel runs is reported by the stream's next synchronising call.
//   Thread    any, one at a time per object; the caller has set the device.
#pragma once
#include <cstdint>
#include <memory>

#include "core/graph/rules/rule_def.h"

struct CUstream_st;  // the target of a cudaStream_t

namespace cairn::cuda {

using Stream = CUstream_st*;

// Parameter j of row r of table t is rows[(first_row[t] + r) * row_stride + j], and slot k of it is
// slot_offset * (k + 1) further on: the layout of RowBlock (core/graph/update_rule.h). Slots right
// beside their row have slot_offset = dim and row_stride = dim * (1 + slots).
struct Tables {
  float* rows = nullptr;
  std::int64_t row_stride = 0;   // in floats; a multiple of 4, and best one of 8 (a sector)
  std::int64_t slot_offset = 0;  // in floats; a multiple of 4
  int dim = 0;                   // a multiple of 4, up to 512; 32, 64, 128 and 256 are fastest
  int count = 0;
  const std::int64_t* first_row = nullptr;  // [count + 1], in rows
  std::int64_t rows_max = 0;                // rows of the largest table
};

enum class IdType : std::uint8_t { kInt32, kInt64 };

// The ids of a step, table by table.
struct Lookups {
  const void* ids = nullptr;  // [count]
  IdType type = IdType::kInt64;
  const std::int64_t* first_lookup = nullptr;  // [tables + 1]; the last one is `count`
  std::int64_t count = 0;                      // below 2^31
};

// Bag b holds lookups [first[b], first[b + 1]). Bags lie in the order of their lookups.
enum class Pooling : std::uint8_t { kSum, kMean };
struct Bags {
  const std::int64_t* first = nullptr;  // [count + 1]; first[0] is 0, the last the lookups' count
  std::int64_t count = 0;
  Pooling pooling = Pooling::kSum;
};

// Writes the row of every lookup to `out`, [lookups, dim].
//   Cost  reads each row and writes the output once; repeated rows come from the L2 cache.
void gather(const Tables& tables, const Lookups& lookups, float* out, Stream stream);

// Writes the sum, or the mean, of each bag's rows to `out`, [bags, dim], added in the order of the
// lookups. An empty bag is zeros.
void pool(const Tables& tables, const Lookups& lookups, const Bags& bags, float* out,
          Stream stream);

// Tables that are separate pieces of memory, as variables are, with separate ids and gradients.
// Kernels take the whole set by value, so that a recorded step keeps it. Each `..._at` is a
// distance from the set's pointer of that kind, which is the lowest of all tables'.
struct ScatteredTable {
  std::int64_t rows_at = 0;  // floats
  std::int64_t rows = 0;
  std::int64_t slot_offset = 0;  // floats; a multiple of 4
  std::int64_t ids_at = 0;       // ids
  std::int64_t first_lookup = 0;
  std::uint32_t gradients_at = 0, gradient_stride = 0;  // vectors of 4 floats
  std::uint32_t row_stride = 0;                         // floats; a multiple of 4
  std::uint32_t rates_at = 0;
};
struct ScatteredTables {
  static constexpr int kCountMax = 64;  // more do not fit into a kernel's parameters
  ScatteredTable tables[kCountMax];
  int count = 0;
  int dim = 0;
  std::int64_t lookups = 0;
  float* rows = nullptr;
  const void* ids = nullptr;
  IdType type = IdType::kInt64;
  const float* gradients = nullptr;
  const RuleRates* rates = nullptr;
};

// The lookups of a step grouped by row, and the memory that this needs. It depends on ids alone, so
// it can run on a second stream beside the forward pass.
class RowGroups {
 public:
  // Room for steps of up to `lookups_max` lookups in such tables (their dim, count and rows_max).
  //   Errors  ResourceExhausted: not enough device memory.
  //   Cost    about 40 bytes per lookup, and 4 * dim / 32 bytes per lookup for partial sums.
  RowGroups(const Tables& tables, std::int64_t lookups_max);
  RowGroups(int dim, int tables, std::int64_t rows_max, std::int64_t lookups_max);
  ~RowGroups();
  RowGroups(const RowGroups&) = delete;
  RowGroups& operator=(const RowGroups&) = delete;

  // Groups these lookups; an apply() of the ones before must come earlier on the same stream, or be
  // waited for. `bags`, if they were pooled: a lookup's gradient is then its bag's.
  void find(const Lookups& lookups, const Bags* bags, Stream stream);

  void find(const ScatteredTables& tables, Stream stream);

  // Counts of the last find(), for tests and reports. Each call waits for `stream`.
  std::int64_t distinct(Stream stream) const;  // groups; refused ids of a table make one
  std::int64_t refused(Stream stream) const;   // lookups whose id is out of range

  struct Memory;  // groups.cuh
  const Memory& memory() const { return *memory_; }

 private:
  std::unique_ptr<Memory> memory_;
};

enum class Rule : std::uint8_t { kSgd, kAdam, kRowwiseAdagrad };

// A rule's constants, in device memory: what fold_rates() makes, of which rate, share_1, share_2
// and epsilon are read.
using Rates = RuleRates;

// Floats that a row's slots take: Adam's m and v; one number for row-wise Adagrad, padded so that
// rows stay aligned to sectors of 32 bytes.
constexpr std::int64_t slot_floats(Rule rule, int dim) {
  return rule == Rule::kAdam ? 2 * std::int64_t{dim} : rule == Rule::kRowwiseAdagrad ? 8 : 0;
}

// Adds up the gradients of each row that `groups` found, in ascending order of occurrence, and
// applies the rule to the row, once, in place. `gradients` is [lookups, dim], or [bags, dim] if
// find() had bags. Adam is the lazy form: rows that were not looked up do not move.
//   Result  depends on the row and its gradients alone, to the bit, and not on the other rows of
//           the call. The gradients of a row that occurs more than 64 times are summed in chunks of
//           64, and then the sums of the chunks (apply.cu).
//   Cost    reads the gradients once, and reads and writes rows and slots once per distinct row.
void apply(Rule rule, const Tables& tables, const RowGroups& groups, const float* gradients,
           const Rates* rates, Stream stream);
// The same for the lookups that `groups` found in scattered tables.
void apply(Rule rule, const ScatteredTables& tables, const RowGroups& groups, Stream stream);

}  // namespace cairn::cuda
