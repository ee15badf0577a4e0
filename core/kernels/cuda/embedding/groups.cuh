// The contents of RowGroups: the occurrences of each row side by side, and the work that they make.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/kernels/cuda/embedding/launch.h"
#include "core/kernels/cuda/embedding/tables.h"

namespace cairn::cuda {

// A group of more occurrences than this is added up in chunks of as many, by a team each.
inline constexpr std::uint32_t kChunk = 64;

struct Counts {
  std::uint32_t groups;
  std::uint32_t longs;    // groups of more than kChunk occurrences
  std::uint32_t chunks;   // of all of them
  std::uint32_t ticket;   // the next piece of work; 0 between launches
  std::uint32_t refused;  // lookups whose id is out of range
};

struct LongGroup {
  std::uint32_t begin;  // its first occurrence
  std::uint32_t first_chunk, chunks;
};

// Occurrences [begin, end) of a long group.
struct Chunk {
  std::uint32_t begin, end;
};

// Plain pointers, as kernels take them. An occurrence is a place in `keys` and `sources`: sorted by
// row and, within a row, by lookup.
struct GroupView {
  const void* keys;              // 32 or 64 bits each: the table, then id_bits of the id
  const std::uint32_t* sources;  // where the gradients are, in units of `source_floats`
  const std::uint32_t* starts;   // [groups] the first occurrence of each
  const std::int64_t* bags;      // where bags begin, if gradients are divided by their lengths
  Counts* counts;
  LongGroup* longs;
  Chunk* chunks;
  float* partials;  // [chunks, dim]
  std::uint32_t occurrences;
  int id_bits;
  int source_floats;  // dim, or 4 where tables are scattered
};

// A lookup's row as a number to sort by. The id field is wide enough that all of its bits set are
// no id; that is what a refused id becomes.
template <typename Key>
struct KeyField {
  int id_bits;
  __device__ Key none() const { return (Key{1} << id_bits) - 1; }
  __device__ Key make(std::int64_t table, Key id) const {
    return (static_cast<Key>(table) << id_bits) | id;
  }
  __device__ Key id(Key key) const { return key & none(); }
  __device__ std::int64_t table(Key key) const { return static_cast<std::int64_t>(key >> id_bits); }
};

struct RowGroups::Memory {
  int dim = 0, tables = 0;
  int id_bits = 0;
  bool wide = false;  // keys of 64 bits
  std::int64_t lookups_max = 0;
  const std::int64_t* first_row = nullptr;  // nullptr: of scattered tables
  std::size_t scratch_bytes = 0;
  unsigned resident_blocks = 0;  // as many as the device runs at once, if a kernel lets it
  Buffer<std::byte> scratch;     // CUB's
  Buffer<std::uint64_t> keys_in, keys;
  Buffer<std::uint32_t> sources_in, sources, starts;
  Buffer<Counts> counts;
  Buffer<LongGroup> longs;
  Buffer<Chunk> chunks;
  Buffer<float> partials;
  GroupView view = {};  // of the last find()
};

// Calls `call` with a zero of the keys' type.
template <typename Call>
void with_key_type(bool wide, const Call& call) {
  if (wide)
    call(std::uint64_t{});
  else
    call(std::uint32_t{});
}

}  // namespace cairn::cuda
