// The index of hashed embedding tables, but for the lookup itself (hashed_lookup.cuh): its memory,
// and making it anew, larger or without the ids that were not used of late.
//
// Nothing is ever removed in place, so that the lookup needs no marks for removed entries. An index
// that is made anew takes the entries that stay, and the rows of the others become free.
#include "core/kernels/cuda/embedding/hashed.h"

#include <algorithm>
#include <bit>

#include "core/kernels/cuda/embedding/hashed_lookup.cuh"

namespace cairn::cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    clear_entries(IndexEntry* entries, std::uint64_t capacity) {
  const std::uint64_t at = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at > capacity) return;
  entries[at] = {at == capacity ? 0 : kEmpty, kUnnumbered, 0};
}

struct Moved {
  std::uint32_t kept, freed;
};

// Moves the entries of `from` that stay into `to`; every id is there once.
__global__ void __launch_bounds__(kThreads)
    move_entries(IndexPart from, IndexPart to, std::int32_t keep_from, Moved* moved) {
  const std::uint64_t at = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at > from.mask + 1) return;
  const IndexEntry entry = from.entries[at];
  if (entry.row < 0) return;  // empty, or an id that got no row
  if (entry.step < keep_from) {
    to.free_rows[to.free_count + atomicAdd(&moved->freed, 1u)] = entry.row;
    return;
  }
  atomicAdd(&moved->kept, 1u);
  Probe probe(to, entry.id);
  while (!claim(probe.entry(), entry.id) && probe.next()) {
  }
  number_entry(probe.entry(), entry.row, entry.step);
}

IndexPart read_part(const IndexPart* part, Stream stream) {
  IndexPart out;
  check_cuda(cudaMemcpyAsync(&out, part, sizeof out, cudaMemcpyDeviceToHost, stream),
             "reading an index's counts");
  check_cuda(cudaStreamSynchronize(stream), "waiting for an index's counts");
  return out;
}

// All entries of a new index are empty once `stream` gets there.
Buffer<IndexEntry> empty_entries(std::int64_t capacity, Stream stream) {
  Buffer<IndexEntry> entries(capacity + 1);
  clear_entries<<<blocks_for(capacity + 1), kThreads, 0, stream>>>(
      entries.get(), static_cast<std::uint64_t>(capacity));
  check_cuda(cudaGetLastError(), "launching the clearing of an index");
  return entries;
}

std::int64_t power_of_two(std::int64_t at_least) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(at_least, 16))));
}

std::uint32_t rows_given(const IndexPart& part) {  // since the index was made
  const std::uint32_t free_rows = part.free_count, fresh = part.row_room - part.first_fresh;
  return std::min(part.taken, free_rows + fresh);
}

}  // namespace

HashedIndex::HashedIndex(const std::vector<std::int64_t>& row_room, const HashedOptions& options)
    : memory_(std::make_unique<Memory>()) {
  const std::int64_t capacity = power_of_two(options.index_entries);
  const std::int64_t counters = power_of_two(options.filter_counters);
  memory_->admit_at = options.admit_at;
  std::vector<IndexPart> parts;
  for (const std::int64_t room : row_room) {
    if (room < 0 || room >= std::int64_t{1} << 31)
      throw InvalidArgumentError(str("a hashed table of ", room, " rows: at most 2^31 - 1 fit"));
    Memory::Owned& owned = memory_->owned.emplace_back();
    owned.entries = empty_entries(capacity, nullptr);
    IndexPart part{};
    part.entries = owned.entries.get();
    part.mask = static_cast<std::uint64_t>(capacity) - 1;
    part.row_room = static_cast<std::uint32_t>(room);
    if (options.admit_at > 1) {
      owned.filter = Buffer<std::uint32_t>(counters);
      check_cuda(cudaMemset(owned.filter.get(), 0, sizeof(std::uint32_t) * counters),
                 "clearing the counts of new ids");
      part.filter = owned.filter.get();
      part.filter_mask = static_cast<std::uint64_t>(counters) - 1;
    }
    parts.push_back(part);
  }
  memory_->parts = Buffer<IndexPart>(static_cast<std::int64_t>(parts.size()));
  check_cuda(cudaMemcpy(memory_->parts.get(), parts.data(), parts.size() * sizeof(IndexPart),
                        cudaMemcpyHostToDevice),
             "writing the indexes");
  check_cuda(cudaDeviceSynchronize(), "clearing the indexes");
}

HashedIndex::~HashedIndex() = default;

void HashedIndex::find_or_add(const Tables& tables, const Lookups& lookups,
                              const std::int32_t* step, const UniformRows& initial,
                              float initial_slot, std::int32_t* rows, Stream stream) {
  cuda::find_or_add(*this, tables, lookups, step, UniformInitial{initial}, initial_slot, rows,
                    stream);
}

std::vector<IndexState> HashedIndex::states(Stream stream) const {
  std::vector<IndexState> states;
  for (std::size_t t = 0; t < memory_->owned.size(); ++t) {
    const IndexPart part = read_part(memory_->parts.get() + t, stream);
    IndexState& state = states.emplace_back();
    state.entries = static_cast<std::int64_t>(part.mask) + 1;
    state.ids = std::int64_t{part.ids_before} + part.taken;
    state.rows = std::int64_t{part.ids_before} + rows_given(part);
    state.refused = part.refused;
  }
  return states;
}

bool HashedIndex::grow(Stream stream) {
  bool grew = false;
  const std::vector<IndexState> all = states(stream);
  for (std::size_t t = 0; t < all.size(); ++t) {
    std::int64_t entries = all[t].entries;
    while (static_cast<double>(all[t].ids) > kLoadMax * static_cast<double>(entries)) entries *= 2;
    if (entries == all[t].entries) continue;
    make_anew(t, entries, 0, stream);
    grew = true;
  }
  return grew;
}

void HashedIndex::evict_before(std::int32_t step, Stream stream) {
  for (std::size_t t = 0; t < memory_->owned.size(); ++t) {
    const IndexPart part = read_part(memory_->parts.get() + t, stream);
    make_anew(t, static_cast<std::int64_t>(part.mask) + 1, step, stream);
  }
}

void HashedIndex::make_anew(std::size_t table, std::int64_t entries, std::int32_t keep_from,
                            Stream stream) {
  Memory::Owned& owned = memory_->owned[table];
  const IndexPart old = read_part(memory_->parts.get() + table, stream);
  const std::uint32_t given = rows_given(old);
  const std::uint32_t used_free = std::min(given, old.free_count);
  const std::uint32_t left_free = old.free_count - used_free;
  Memory::Owned made;
  made.entries = empty_entries(entries, stream);
  made.free_rows = Buffer<std::int32_t>(std::int64_t{left_free} + old.ids_before + given);
  Buffer<Moved> moved(1);
  check_cuda(cudaMemsetAsync(moved.get(), 0, sizeof(Moved), stream), "clearing counts of entries");
  if (left_free > 0)
    check_cuda(cudaMemcpyAsync(made.free_rows.get(), old.free_rows + used_free,
                               left_free * sizeof(std::int32_t), cudaMemcpyDeviceToDevice, stream),
               "copying the list of free rows");
  IndexPart part = old;
  part.entries = made.entries.get();
  part.mask = static_cast<std::uint64_t>(entries) - 1;
  part.free_rows = made.free_rows.get();
  part.free_count = left_free;
  part.first_fresh = old.first_fresh + (given - used_free);
  part.taken = 0;
  part.refused = 0;
  move_entries<<<blocks_for(static_cast<std::int64_t>(old.mask) + 2), kThreads, 0, stream>>>(
      old, part, keep_from, moved.get());
  check_cuda(cudaGetLastError(), "launching the move of an index");
  Moved counts{};
  check_cuda(cudaMemcpyAsync(&counts, moved.get(), sizeof counts, cudaMemcpyDeviceToHost, stream),
             "reading counts of entries");
  check_cuda(cudaStreamSynchronize(stream), "waiting for the move of an index");
  part.free_count += counts.freed;
  part.ids_before = counts.kept;
  check_cuda(cudaMemcpyAsync(memory_->parts.get() + table, &part, sizeof part,
                             cudaMemcpyHostToDevice, stream),
             "writing an index");
  check_cuda(cudaStreamSynchronize(stream), "waiting for an index");
  owned.entries = std::move(made.entries);
  owned.free_rows = std::move(made.free_rows);
}

}  // namespace cairn::cuda
