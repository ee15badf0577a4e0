// Where a strategy's variables lie: which shard holds which rows. The coordinator makes the layout
// and sends it to all tasks; it is never edited: a change is a new version.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/incarnation.h"
#include "core/graph/variable.h"
#include "core/rows/variable_store.h"

namespace cairn {

using ShardId = std::uint32_t;  // numbers all shards of the cluster: ps by ps, thread by thread

// Consecutive rows of a variable, or places of them in memory.
struct RowRange {
  std::int64_t begin = 0, end = 0;  // half-open
  std::int64_t size() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

// The range that these row numbers count through, one after the other; none where they do not.
std::optional<RowRange> as_range(std::span<const std::int64_t> rows);

// A part of a variable: consecutive rows on one shard. The parts of a variable cover its rows in
// order, without gaps.
struct Part {
  ShardId shard = 0;
  RowRange rows;
  bool operator==(const Part&) const = default;
};

// A variable as all tasks of the cluster know it: its number, its type and where its parts are.
struct VariableLayout {
  VariableId id = 0;
  std::shared_ptr<const VariableSpec> spec;
  UpdateRule rule;  // the rule that has slots; an assignment if none was declared
  std::vector<Part> parts;
};

// A copy of a shard's rows, and the ps that serves it.
struct ShardReplica {
  std::uint32_t ps = 0;  // task index
  std::string address;
  std::uint32_t endpoint = 1;  // of that address
  ProcessIncarnation process;  // none: it is away
  bool operator==(const ShardReplica&) const = default;
};

// A shard as all tasks of the cluster know it: who answers for its rows, and since which epoch.
struct ShardLayout {
  ShardReplica primary;
  std::vector<ShardReplica> backups;  // that have every update which the primary has answered
  Epoch epoch = 1;                    // of the primary; never none
  std::uint32_t home = 0;             // the ps that the shard is numbered under
  bool operator==(const ShardLayout&) const = default;
};
// Whether `next`, as the shard's primary after `before`, has its rows: it is the same process, or
// one of those that have every update.
bool has_rows_after(const ShardLayout& before, const ShardReplica& next);
// A layout names at most so many backups of a shard.
inline constexpr std::size_t kBackupsMax = 7;

// The shards of one ps, from `first` on: one an endpoint, in their first epoch, without backups.
std::vector<ShardLayout> shards_of(ShardReplica first, std::uint32_t count);

// The shards and parts by which a worker finds every row. Two layouts of one session differ in
// their versions, and a closure says by which version it was sent.
struct Layout {
  std::uint64_t version = 0;
  std::uint64_t seed = 0;                 // of the initial values
  std::vector<ShardLayout> shards;        // by ShardId
  std::vector<VariableLayout> variables;  // by VariableId

  const VariableLayout* find(const std::string& name) const;  // nullptr: no such variable
  std::uint32_t shard_count() const { return static_cast<std::uint32_t>(shards.size()); }
};

// ---- Partitioners: a variable's type -> number of parts (the reference's formulas) ----
class Partitioner {
 public:
  virtual ~Partitioner() = default;
  // Partitions along each axis, as the reference returns them: 1 but for `axis`. Strategies ask for
  // axis 0, and refuse what is cut along another one.
  //   Errors  InvalidArgument: there is no such axis (a scalar has none), or a size that the
  //           formula needs is not known.
  virtual std::vector<std::int64_t> operator()(const Shape& shape, DType dtype,
                                               int axis = 0) const = 0;
};
// Makes num_shards parts, or one per row where there are fewer rows.
struct FixedShardsOptions {
  std::int64_t num_shards = 1;
};
// Makes as many parts as leave each at least min_shard_bytes (but for rounding), and at most
// max_shards.
struct MinSizeOptions {
  std::int64_t min_shard_bytes = 256 << 10;
  std::int64_t max_shards = 1;
  std::int64_t bytes_per_string = 16;
};
// Makes as few parts as leave each at most max_shard_bytes; a slice along the axis is never cut.
struct MaxSizeOptions {
  std::int64_t max_shard_bytes = 0;                       // required
  std::optional<std::int64_t> max_shards = std::nullopt;  // none, or 0: no bound
  std::int64_t bytes_per_string = 16;
};
// InvalidArgument: an option below 1, but for MaxSize's max_shards of 0.
std::shared_ptr<const Partitioner> FixedShardsPartitioner(std::int64_t num_shards);
std::shared_ptr<const Partitioner> MinSizePartitioner(MinSizeOptions options);
std::shared_ptr<const Partitioner> MaxSizePartitioner(MaxSizeOptions options);
// "div": the first rows mod n parts have one row more. n is cut to the number of rows.
std::vector<RowRange> split_rows(std::int64_t rows, std::int64_t parts);

// ---- Placement ----
enum class Placement : std::uint8_t {
  kRoundRobin,  // one counter for variables and parts, as in the reference
  // Cairn's default: each part, largest first within a variable, to the shard with the fewest bytes
  kSizeAware,
};

}  // namespace cairn
