// Looking up ids in an index, and giving rows to new ones. A template, because the caller may bring
// the function that initialises rows:
//
//   struct Initial { __device__ float operator()(std::int64_t table, std::int64_t id, int column)
//                    const; };
//
// Entries only ever go from empty to claimed to numbered, within a launch. A lane that claims an
// entry numbers it before it does anything else, and no lane waits inside of a loop iteration: a
// lane that sees a claimed entry without a number looks again in its next iteration. So lanes of
// one warp may have the same new id. Rows' contents are read by later launches alone, which is why
// relaxed accesses suffice.
#pragma once
#include <cstdint>

#include "core/kernels/cuda/embedding/hashed.h"
#include "core/kernels/cuda/embedding/launch.h"
#include "core/kernels/cuda/embedding/lookup.cuh"

namespace cairn::cuda {

inline constexpr std::int64_t kEmpty = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int32_t kUnnumbered = -1;  // not yet, or an entry that is empty
inline constexpr std::int32_t kRefused = -2;     // no row was left

struct alignas(16) IndexEntry {
  std::int64_t id;
  std::int32_t row;
  std::int32_t step;
};

// One table's index. After `mask + 1` entries there is one more, for the id that means empty.
struct IndexPart {
  IndexEntry* entries;
  std::uint64_t mask;
  std::int32_t* free_rows;  // rows of ids that were removed: the first to be given out
  std::uint32_t free_count;
  std::uint32_t first_fresh;  // then these, upwards
  std::uint32_t row_room;
  std::uint32_t ids_before;  // entries in use when the index was made
  std::uint32_t taken;       // rows asked for since then
  std::uint32_t refused;     // lookups since then
  std::uint32_t* filter;     // null: ids are admitted at once
  std::uint64_t filter_mask;
};

struct HashedIndex::Memory {
  struct Owned {
    Buffer<IndexEntry> entries;
    Buffer<std::int32_t> free_rows;
    Buffer<std::uint32_t> filter;
  };
  std::vector<Owned> owned;  // per table
  Buffer<IndexPart> parts;   // per table
  std::int32_t admit_at = 1;
};

// splitmix64's output function.
__host__ __device__ inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct UniformInitial {
  UniformRows rows;
  __host__ __device__ float operator()(std::int64_t table, std::int64_t id, int column) const {
    const std::uint64_t row =
        mix(mix(rows.seed + static_cast<std::uint64_t>(table)) ^ static_cast<std::uint64_t>(id));
    const std::uint64_t bits = mix(row + static_cast<std::uint64_t>(column)) >> 40;
    return rows.low + (rows.high - rows.low) * (static_cast<float>(bits) * 0x1p-24f);
  }
};

// Both halves of an entry, from the L2 cache, where other processors' writes are seen.
__device__ inline IndexEntry look(const IndexEntry* entry) {
  std::int64_t id, rest;
  asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];"
               : "=l"(id), "=l"(rest)
               : "l"(entry)
               : "memory");
  return {id, static_cast<std::int32_t>(rest & 0xffffffff), static_cast<std::int32_t>(rest >> 32)};
}

// Writes row and step at once.
__device__ inline void number_entry(IndexEntry* entry, std::int32_t row, std::int32_t step) {
  const std::int64_t both = (static_cast<std::int64_t>(step) << 32) |
                            static_cast<std::int64_t>(static_cast<std::uint32_t>(row));
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(&entry->row), "l"(both) : "memory");
}

// True: the entry was empty and is the caller's, who must number it.
__device__ inline bool claim(IndexEntry* entry, std::int64_t id) {
  if (id == kEmpty)  // its own entry, whose id field is 0 while it is empty
    return atomicCAS(reinterpret_cast<unsigned long long*>(&entry->id), 0ull,
                     static_cast<unsigned long long>(kEmpty)) == 0ull;
  return atomicCAS(reinterpret_cast<unsigned long long*>(&entry->id),
                   static_cast<unsigned long long>(kEmpty),
                   static_cast<unsigned long long>(id)) == static_cast<unsigned long long>(kEmpty);
}

// The next row of a table; kRefused if there is none.
__device__ inline std::int32_t take_row(IndexPart& part) {
  const std::uint32_t n = atomicAdd(&part.taken, 1u);
  if (n < part.free_count) return part.free_rows[n];
  const std::uint64_t row = std::uint64_t{part.first_fresh} + (n - part.free_count);
  return row < part.row_room ? static_cast<std::int32_t>(row) : kRefused;
}

// A walk through the entries where an id may be.
struct Probe {
  IndexEntry* entries;
  std::uint64_t mask, at, left;

  __device__ Probe(const IndexPart& part, std::int64_t id)
      : entries(part.entries),
        mask(part.mask),
        at(id == kEmpty ? part.mask + 1 : mix(static_cast<std::uint64_t>(id)) & part.mask),
        left(id == kEmpty ? 1 : part.mask + 1) {}
  __device__ IndexEntry* entry() const { return entries + at; }
  // False: there are no more.
  __device__ bool next() {
    at = (at + 1) & mask;
    return --left > 0;
  }
};

// The value of an entry's id field while it is empty, on the walk of `id`.
__device__ inline std::int64_t empty_field(std::int64_t id) { return id == kEmpty ? 0 : kEmpty; }

__device__ inline std::uint32_t* filter_counter(const IndexPart& part, std::int64_t id) {
  return part.filter + (mix(~static_cast<std::uint64_t>(id)) & part.filter_mask);
}

// Counts the occurrences of ids that have no row yet.
static __global__ void __launch_bounds__(kThreads)
    count_absent(IndexPart* parts, int tables, const std::int64_t* __restrict__ ids,
                 const std::int64_t* __restrict__ first_lookup, std::int64_t count) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const IndexPart& part = parts[range_of(first_lookup, tables, at)];
  const std::int64_t id = __ldg(ids + at);
  Probe probe(part, id);
  do {
    const IndexEntry entry = look(probe.entry());
    if (entry.id == id) return;
    if (entry.id == empty_field(id)) break;
  } while (probe.next());
  atomicAdd(filter_counter(part, id), 1u);
}

template <typename Initial>
__global__ void __launch_bounds__(kThreads)
    find_or_add_rows(IndexPart* parts, Tables tables, const std::int64_t* __restrict__ ids,
                     const std::int64_t* __restrict__ first_lookup, std::int64_t count,
                     const std::int32_t* step_now, std::uint32_t admit_at, Initial initial,
                     float initial_slot, std::int32_t* __restrict__ rows) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::int64_t table = 0, id = 0;
  std::int32_t row = kUnnumbered;
  bool added = false;
  if (at < count) {
    table = range_of(first_lookup, tables.count, at);
    id = __ldg(ids + at);
    const std::int32_t step = *step_now;
    IndexPart& part = parts[table];
    Probe probe(part, id);
    bool refused = false;
    for (bool more = true; more;) {
      const IndexEntry entry = look(probe.entry());
      if (entry.id == id) {
        row = entry.row;
        more = row == kUnnumbered;  // its lane is about to number it
        if (!more && entry.step != step)
          *const_cast<volatile std::int32_t*>(&probe.entry()->step) = step;
      } else if (entry.id == empty_field(id)) {
        if (part.filter != nullptr && __ldcg(filter_counter(part, id)) < admit_at) {
          more = false;
        } else if (claim(probe.entry(), id)) {
          row = take_row(part);
          number_entry(probe.entry(), row, step);
          added = row >= 0;
          more = false;
        }  // else another lane was faster, perhaps with the same id: look again
      } else if (!probe.next()) {
        refused = true;  // the index is full
        more = false;
      }
    }
    if (refused || row == kRefused) atomicAdd(&part.refused, 1u);
    rows[at] = row >= 0 ? row : HashedIndex::kNoRow;
  }
  __syncwarp();
  for (unsigned todo = __ballot_sync(~0u, added); todo != 0; todo &= todo - 1) {
    const int source = __ffs(static_cast<int>(todo)) - 1;
    const std::int64_t of_table = __shfl_sync(~0u, table, source);
    const std::int64_t of_id = __shfl_sync(~0u, id, source);
    const std::int32_t number = __shfl_sync(~0u, row, source);
    float* const to =
        tables.rows + (__ldg(tables.first_row + of_table) + number) * tables.row_stride;
    for (int column = lane; column < tables.row_stride; column += 32)
      to[column] = column < tables.dim ? initial(of_table, of_id, column) : initial_slot;
  }
}

// HashedIndex::find_or_add() with an initialiser of the caller's. Slots must lie beside their rows.
template <typename Initial>
void find_or_add(const HashedIndex& index, const Tables& tables, const Lookups& lookups,
                 const std::int32_t* step, const Initial& initial, float initial_slot,
                 std::int32_t* rows, Stream stream) {
  const HashedIndex::Memory& memory = index.memory();
  if (lookups.type != IdType::kInt64)
    throw InvalidArgumentError("ids of hashed embedding tables have 64 bits");
  if (tables.count != static_cast<int>(memory.owned.size()))
    throw InvalidArgumentError(
        str("an index of ", memory.owned.size(), " tables for a set of ", tables.count));
  if (lookups.count == 0) return;
  const auto* ids = static_cast<const std::int64_t*>(lookups.ids);
  if (memory.admit_at > 1) {
    count_absent<<<blocks_for(lookups.count), kThreads, 0, stream>>>(
        memory.parts.get(), tables.count, ids, lookups.first_lookup, lookups.count);
    check_cuda(cudaGetLastError(), "launching the count of new ids");
  }
  find_or_add_rows<<<blocks_for(lookups.count), kThreads, 0, stream>>>(
      memory.parts.get(), tables, ids, lookups.first_lookup, lookups.count, step,
      static_cast<std::uint32_t>(memory.admit_at), initial, initial_slot, rows);
  check_cuda(cudaGetLastError(), "launching the lookup of ids");
}

}  // namespace cairn::cuda
