// Grouping the lookups of a step by row: keys, a radix sort, the groups' beginnings, and the list
// of those that are too long for one team.
//
// The sort looks at the bits of the id alone, not at those of the table. It is stable and lookups
// lie table by table, so lookups of one id stay in the order of their tables, and those of one row
// end up side by side all the same. Ten tables of 1.68 million rows take 21 bits instead of 25:
// three passes instead of four.
//
// The order in which long groups get their chunks' places depends on timing; nothing that is
// computed depends on the places.
#include <thrust/iterator/counting_iterator.h>

#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "core/kernels/cuda/embedding/groups.cuh"
#include "core/kernels/cuda/embedding/lookup.cuh"

namespace cairn::cuda {
namespace {

// The lookups of a set that lies table by table.
template <typename Id>
struct ListedLookups {
  const std::int64_t* first_row;
  std::int64_t tables;
  const Id* ids;
  const std::int64_t* first_lookup;
  Bags bags;

  __device__ std::int64_t table(std::int64_t at) const {
    return range_of(first_lookup, tables, at);
  }
  __device__ std::int64_t rows(std::int64_t table) const {
    return __ldg(first_row + table + 1) - __ldg(first_row + table);
  }
  __device__ std::int64_t id(std::int64_t, std::int64_t at) const {
    return static_cast<std::int64_t>(__ldg(ids + at));
  }
  __device__ std::uint32_t source(std::int64_t, std::int64_t at) const {
    return static_cast<std::uint32_t>(bags.first == nullptr ? at
                                                            : range_of(bags.first, bags.count, at));
  }
};

template <typename Id>
struct ScatteredLookups {
  ScatteredTables set;

  __device__ std::int64_t table(std::int64_t at) const { return table_of(set, at); }
  __device__ std::int64_t rows(std::int64_t table) const { return set.tables[table].rows; }
  __device__ std::int64_t id(std::int64_t table, std::int64_t at) const {
    const ScatteredTable& one = set.tables[table];
    return static_cast<std::int64_t>(
        __ldg(static_cast<const Id*>(set.ids) + one.ids_at + (at - one.first_lookup)));
  }
  __device__ std::uint32_t source(std::int64_t table, std::int64_t at) const {
    const ScatteredTable& one = set.tables[table];
    return one.gradients_at +
           static_cast<std::uint32_t>(at - one.first_lookup) * one.gradient_stride;
  }
};

template <typename Key, typename Found>
__global__ void __launch_bounds__(kThreads)
    make_keys(const __grid_constant__ Found lookups, std::int64_t count, KeyField<Key> field,
              Key* __restrict__ keys, std::uint32_t* __restrict__ sources, Counts* counts) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const std::int64_t table = lookups.table(at), id = lookups.id(table, at);
  const bool good = id >= 0 && id < lookups.rows(table);
  if (!good) atomicAdd(&counts->refused, 1u);
  keys[at] = field.make(table, good ? static_cast<Key>(id) : field.none());
  sources[at] = lookups.source(table, at);
}

template <typename Key>
struct BeginsGroup {
  const Key* keys;
  __device__ bool operator()(std::uint32_t at) const { return at == 0 || keys[at] != keys[at - 1]; }
};

// Each warp looks at 32 groups, and all of its lanes write the chunks of each long one.
__global__ void __launch_bounds__(kThreads) list_chunks(GroupView view) {
  const std::uint32_t groups = view.counts->groups;
  const std::uint32_t threads = gridDim.x * blockDim.x;
  const std::uint32_t lane = threadIdx.x % 32;
  for (std::uint32_t from = blockIdx.x * blockDim.x + threadIdx.x - lane; from < groups;
       from += threads) {
    const std::uint32_t group = from + lane;
    std::uint32_t begin = 0, length = 0, first = 0;
    if (group < groups) {
      begin = view.starts[group];
      length = (group + 1 < groups ? view.starts[group + 1] : view.occurrences) - begin;
    }
    if (length > kChunk) {
      const std::uint32_t chunks = (length + kChunk - 1) / kChunk;
      first = atomicAdd(&view.counts->chunks, chunks);
      view.longs[atomicAdd(&view.counts->longs, 1u)] = {begin, first, chunks};
    }
    for (unsigned todo = __ballot_sync(~0u, length > kChunk); todo != 0; todo &= todo - 1) {
      const int source = __ffs(static_cast<int>(todo)) - 1;
      const std::uint32_t long_begin = __shfl_sync(~0u, begin, source);
      const std::uint32_t long_length = __shfl_sync(~0u, length, source);
      const std::uint32_t long_first = __shfl_sync(~0u, first, source);
      for (std::uint32_t c = lane; c * kChunk < long_length; c += 32)
        view.chunks[long_first + c] = {long_begin + c * kChunk,
                                       long_begin + min((c + 1) * kChunk, long_length)};
    }
  }
}

// The bytes that CUB needs for either step, or the two steps.
template <typename Key>
void sort(const RowGroups::Memory& memory, int count, void* scratch, std::size_t& bytes,
          Stream stream) {
  check_cuda(cub::DeviceRadixSort::SortPairs(
                 scratch, bytes, reinterpret_cast<const Key*>(memory.keys_in.get()),
                 reinterpret_cast<Key*>(memory.keys.get()), memory.sources_in.get(),
                 memory.sources.get(), count, 0, memory.id_bits, stream),
             "sorting embedding lookups");
}

template <typename Key>
void select(const RowGroups::Memory& memory, int count, void* scratch, std::size_t& bytes,
            Stream stream) {
  Counts* counts = memory.counts.get();
  check_cuda(cub::DeviceSelect::If(
                 scratch, bytes, thrust::counting_iterator<std::uint32_t>(0), memory.starts.get(),
                 counts == nullptr ? nullptr : &counts->groups, count,
                 BeginsGroup<Key>{reinterpret_cast<const Key*>(memory.keys.get())}, stream),
             "finding the groups of embedding lookups");
}

std::uint32_t read_count(const std::uint32_t* count, Stream stream) {
  std::uint32_t value = 0;
  check_cuda(cudaMemcpyAsync(&value, count, sizeof value, cudaMemcpyDeviceToHost, stream),
             "reading a count of embedding lookups");
  check_cuda(cudaStreamSynchronize(stream), "waiting for a count of embedding lookups");
  return value;
}

}  // namespace

RowGroups::RowGroups(const Tables& tables, std::int64_t lookups_max)
    : RowGroups(tables.dim, tables.count, tables.rows_max, lookups_max) {
  memory_->first_row = tables.first_row;
}

RowGroups::RowGroups(int dim, int tables, std::int64_t rows_max, std::int64_t lookups_max)
    : memory_(std::make_unique<Memory>()) {
  Memory& m = *memory_;
  if (tables < 1 || rows_max < 0)
    throw InvalidArgumentError("a set of embedding tables needs a table");
  if (lookups_max < 0 || lookups_max >= std::int64_t{1} << 31)
    throw InvalidArgumentError(str("a step of ", lookups_max, " lookups: at most 2^31 - 1 fit"));
  m.dim = dim;
  m.tables = tables;
  m.lookups_max = lookups_max;
  // rows_max itself fits too, so that no id has all bits set.
  m.id_bits = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows_max))));
  const int table_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(tables - 1)));
  m.wide = m.id_bits + table_bits > 31;  // 31: KeyField shifts a one by id_bits
  if (m.id_bits + table_bits > 63)
    throw InvalidArgumentError(
        str(tables, " tables of up to ", rows_max, " rows: row numbers exceed 63 bits"));

  m.resident_blocks = processors() * (2048 / kThreads);
  const std::int64_t room = std::max<std::int64_t>(lookups_max, 1);
  const std::int64_t long_groups = room / kChunk + 1;  // each has more than kChunk occurrences
  const std::int64_t chunks = room / kChunk + long_groups;
  const std::int64_t key_words = m.wide ? room : (room + 1) / 2;
  m.keys_in = Buffer<std::uint64_t>(key_words);
  m.keys = Buffer<std::uint64_t>(key_words);
  m.sources_in = Buffer<std::uint32_t>(room);
  m.sources = Buffer<std::uint32_t>(room);
  m.starts = Buffer<std::uint32_t>(room);
  m.longs = Buffer<LongGroup>(long_groups);
  m.chunks = Buffer<Chunk>(chunks);
  m.partials = Buffer<float>(chunks * m.dim);
  m.counts = Buffer<Counts>(1);
  check_cuda(cudaMemset(m.counts.get(), 0, sizeof(Counts)), "clearing the counts of lookups");
  check_cuda(cudaStreamSynchronize(nullptr), "clearing the counts of lookups");
  with_key_type(m.wide, [&](auto zero) {
    using Key = decltype(zero);
    // CUB asks for no less for more values.
    std::size_t for_sort = 0, for_select = 0;
    sort<Key>(m, static_cast<int>(room), nullptr, for_sort, nullptr);
    select<Key>(m, static_cast<int>(room), nullptr, for_select, nullptr);
    m.scratch_bytes = std::max<std::size_t>({for_sort, for_select, 256});
  });
  m.scratch = Buffer<std::byte>(static_cast<std::int64_t>(m.scratch_bytes));
}

RowGroups::~RowGroups() = default;

namespace {

// The common start of both kinds of lookups; `means` as GroupView::bags has it.
void begin(RowGroups::Memory& m, std::int64_t count, const std::int64_t* means, int source_floats,
           Stream stream) {
  if (count < 0 || count > m.lookups_max)
    throw InvalidArgumentError(str(count, " lookups, and there is room for ", m.lookups_max));
  m.view = {m.keys.get(),   m.sources.get(),  m.starts.get(),
            means,          m.counts.get(),   m.longs.get(),
            m.chunks.get(), m.partials.get(), static_cast<std::uint32_t>(count),
            m.id_bits,      source_floats};
  check_cuda(cudaMemsetAsync(m.counts.get(), 0, sizeof(Counts), stream),
             "clearing the counts of lookups");
}

template <typename Found>
void group(RowGroups::Memory& m, const Found& lookups, std::int64_t count, Stream stream) {
  if (count == 0) return;
  with_key_type(m.wide, [&](auto zero) {
    using Key = decltype(zero);
    make_keys<Key, Found><<<blocks_for(count), kThreads, 0, stream>>>(
        lookups, count, KeyField<Key>{m.id_bits}, reinterpret_cast<Key*>(m.keys_in.get()),
        m.sources_in.get(), m.counts.get());
    check_cuda(cudaGetLastError(), "launching the making of keys");
    const int number = static_cast<int>(count);
    std::size_t bytes = m.scratch_bytes;
    sort<Key>(m, number, m.scratch.get(), bytes, stream);
    bytes = m.scratch_bytes;
    select<Key>(m, number, m.scratch.get(), bytes, stream);
  });
  const unsigned blocks = std::min(m.resident_blocks, blocks_for(count));
  list_chunks<<<blocks, kThreads, 0, stream>>>(m.view);
  check_cuda(cudaGetLastError(), "launching the listing of chunks");
}

}  // namespace

void RowGroups::find(const Lookups& lookups, const Bags* bags, Stream stream) {
  Memory& m = *memory_;
  const bool means = bags != nullptr && bags->pooling == Pooling::kMean;
  begin(m, lookups.count, means ? bags->first : nullptr, m.dim, stream);
  with_id_type(lookups.type, [&](auto* null) {
    using Id = std::remove_const_t<std::remove_pointer_t<decltype(null)>>;
    const ListedLookups<Id> listed{m.first_row, m.tables, static_cast<const Id*>(lookups.ids),
                                   lookups.first_lookup, bags != nullptr ? *bags : Bags{}};
    group(m, listed, lookups.count, stream);
  });
}

void RowGroups::find(const ScatteredTables& tables, Stream stream) {
  Memory& m = *memory_;
  begin(m, tables.lookups, nullptr, 4, stream);
  with_id_type(tables.type, [&](auto* null) {
    using Id = std::remove_const_t<std::remove_pointer_t<decltype(null)>>;
    group(m, ScatteredLookups<Id>{tables}, tables.lookups, stream);
  });
}

std::int64_t RowGroups::distinct(Stream stream) const {
  return read_count(&memory_->counts.get()->groups, stream);
}

std::int64_t RowGroups::refused(Stream stream) const {
  return read_count(&memory_->counts.get()->refused, stream);
}

}  // namespace cairn::cuda
