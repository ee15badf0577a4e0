// The backward pass and the update in one: gradients of a row are added up in registers and the row
// is changed, so that the sums never go through memory.
//
// The order of additions is fixed by the number of a row's occurrences alone. Up to kChunk of them
// are added one after the other, in the order of lookups. Of a longer group each chunk of kChunk,
// counted from the group's own first occurrence, is added up so, by whichever team is free; then
// the block that combines the group deals its chunks out to its teams in equal runs, each team adds
// up its run in order, and the runs are added in order.
//
// Work is taken from a counter, long groups' chunks first: then no team has much left to do when
// the others have run out of work, however the lookups are distributed. What a team takes is one
// chunk, or kGroups groups that are short; for these the lanes read where they are, side by side.
#include <algorithm>

#include "core/kernels/cuda/embedding/groups.cuh"
#include "core/kernels/cuda/embedding/rules.cuh"

namespace cairn::cuda {
namespace {

constexpr std::uint32_t kGroups = 8;  // at most the smallest team's lanes

// Where the rows of a set lie, and what they are updated by: one piece of memory, and one rate.
struct ListedPlaces {
  static constexpr bool kOneRate = true;
  float* rows;
  std::int64_t row_stride, slots;
  const std::int64_t* first_row;
  const Rates* all_rates;

  __device__ std::int64_t offset(int table, std::int64_t id) const {
    return (__ldg(first_row + table) + id) * row_stride;
  }
  __device__ float* at(std::int64_t offset) const { return rows + offset; }
  __device__ std::int64_t slot_offset(int) const { return slots; }
  __device__ const Rates& rates(int) const { return *all_rates; }
};

struct ScatteredPlaces {
  static constexpr bool kOneRate = false;
  ScatteredTables set;

  __device__ std::int64_t offset(int table, std::int64_t id) const {
    return set.tables[table].rows_at + id * set.tables[table].row_stride;
  }
  __device__ float* at(std::int64_t offset) const { return set.rows + offset; }
  __device__ std::int64_t slot_offset(int table) const { return set.tables[table].slot_offset; }
  __device__ const Rates& rates(int table) const { return set.rates[set.tables[table].rates_at]; }
};

// A row that lookups found. offset: floats before it; -1: there is none.
struct FoundRow {
  std::int64_t offset = -1;
  int table = 0;
};

template <typename P>
struct Job {
  using Places = P;
  Places places;
  const float* gradients;
  GroupView groups;
  int dim;

  // The row of the group that begins at this occurrence; none if its id was refused.
  template <typename Key>
  __device__ FoundRow row(std::uint32_t begin) const {
    const Key key = __ldg(static_cast<const Key*>(groups.keys) + begin);
    const KeyField<Key> field{groups.id_bits};
    const Key id = field.id(key);
    if (id == field.none()) return {};
    const int table = static_cast<int>(field.table(key));
    return {places.offset(table, static_cast<std::int64_t>(id)), table};
  }
  __device__ const float* gradient(std::uint32_t source) const {
    return gradients + static_cast<std::int64_t>(source) * groups.source_floats;
  }
  // The factor of a gradient's row.
  __device__ float scale(std::uint32_t source) const {
    if (groups.bags == nullptr) return 1.0f;
    const std::int64_t length = __ldg(groups.bags + source + 1) - __ldg(groups.bags + source);
    return 1.0f / static_cast<float>(length);
  }
};

// Adds the gradients of occurrences [begin, end) to `sum`, in order.
template <typename S, typename J>
__device__ void add_gradients(const Team<S>& team, const J& job, std::uint32_t begin,
                              std::uint32_t end, Row<S>& sum) {
  for (std::uint32_t from = begin; from < end; from += S::kLanes) {
    const int n = static_cast<int>(min(static_cast<std::uint32_t>(S::kLanes), end - from));
    std::uint32_t source = 0;
    float scale = 1.0f;
    if (team.lane < n) {
      source = __ldg(job.groups.sources + from + team.lane);
      scale = job.scale(source);
    }
    for (int i = 0; i < n; i += S::kFlight) {
      Row<S> rows[S::kFlight];
#pragma unroll
      for (int k = 0; k < S::kFlight; ++k) {
        const std::uint32_t one = team.from(source, i + k);
        if (i + k < n)
          rows[k].load_once(team, job.gradient(one));
        else
          rows[k].clear();
      }
#pragma unroll
      for (int k = 0; k < S::kFlight; ++k) {
        rows[k].scale(team.from(scale, i + k));
        if (i + k < n) sum.add(rows[k]);
      }
    }
  }
}

template <typename S, typename R, typename Key, typename J>
__device__ void update_short(const Team<S>& team, const J& job, std::uint32_t first, Rates rates) {
  const std::uint32_t groups = job.groups.counts->groups;
  const std::uint32_t group = first + static_cast<std::uint32_t>(team.lane);
  std::uint32_t begin = 0, length = 0, source = 0;
  FoundRow row;
  if (static_cast<std::uint32_t>(team.lane) < kGroups && group < groups) {
    const std::uint32_t* starts = job.groups.starts;
    begin = __ldg(starts + group);
    length = (group + 1 < groups ? __ldg(starts + group + 1) : job.groups.occurrences) - begin;
    if (length <= kChunk) {
      row = job.template row<Key>(begin);
      source = __ldg(job.groups.sources + begin);
    }
  }
  const float scale = row.offset >= 0 ? job.scale(source) : 1.0f;
  for (int k = 0; k < static_cast<int>(kGroups); ++k) {
    const std::int64_t to_offset = team.from(row.offset, k);
    const int table = team.from(row.table, k);
    const std::uint32_t at = team.from(begin, k), n = team.from(length, k);
    const std::uint32_t head = team.from(source, k);
    const float head_scale = team.from(scale, k);
    if (to_offset < 0) continue;  // a long group, a refused id, or none at all
    float* const to = job.places.at(to_offset);
    const std::int64_t slots = job.places.slot_offset(table);
    R rule;
    rule.load(team, to, slots);
    Row<S> sum;
    sum.load_once(team, job.gradient(head));
    sum.scale(head_scale);
    if (n > 1) add_gradients(team, job, at + 1, at + n, sum);
    if constexpr (!J::Places::kOneRate) rates = job.places.rates(table);
    rule.update(team, to, slots, sum, rates);
  }
}

template <typename S, typename J>
__device__ void sum_chunk(const Team<S>& team, const J& job, std::uint32_t number) {
  const Chunk chunk = job.groups.chunks[number];
  Row<S> sum;
  sum.clear();
  add_gradients(team, job, chunk.begin, chunk.end, sum);
  sum.store(team, job.groups.partials + static_cast<std::int64_t>(number) * job.dim);
}

template <typename S, typename R, typename Key, typename J>
__global__ void __launch_bounds__(kThreads) update_rows(const __grid_constant__ J job) {
  const Team<S> team(job.dim);
  const Rates rates = job.places.rates(0);
  Counts* const counts = job.groups.counts;
  const std::uint32_t chunks = counts->chunks;
  const std::uint32_t tickets = chunks + (counts->groups + kGroups - 1) / kGroups;
  std::uint32_t ticket = team.take(&counts->ticket);
  while (ticket < tickets) {
    const std::uint32_t next = team.take(&counts->ticket);  // its answer comes while we work
    if (ticket < chunks)
      sum_chunk(team, job, ticket);
    else
      update_short<S, R, Key>(team, job, (ticket - chunks) * kGroups, rates);
    ticket = next;
  }
}

// One block per long group at a time.
template <typename S, typename R, typename Key, typename J>
__global__ void __launch_bounds__(kThreads) combine_chunks(const __grid_constant__ J job) {
  constexpr int kTeams = kThreads / S::kLanes;
  __shared__ alignas(16) float sums[kTeams][S::kLanes * S::kVectors * 4];
  const Team<S> team(job.dim);
  const int number = static_cast<int>(threadIdx.x) / S::kLanes;
  Rates rates = job.places.rates(0);
  const std::uint32_t longs = job.groups.counts->longs;
  if (blockIdx.x == 0 && threadIdx.x == 0) job.groups.counts->ticket = 0;
  for (std::uint32_t i = blockIdx.x; i < longs; i += gridDim.x) {
    const LongGroup group = job.groups.longs[i];
    const FoundRow row = job.template row<Key>(group.begin);
    if (row.offset < 0) continue;  // the same for the whole block
    float* const to = job.places.at(row.offset);
    const std::int64_t slots = job.places.slot_offset(row.table);
    if constexpr (!J::Places::kOneRate) rates = job.places.rates(row.table);
    const std::uint32_t run = (group.chunks + kTeams - 1) / kTeams;
    const std::uint32_t begin = min(static_cast<std::uint32_t>(number) * run, group.chunks);
    const std::uint32_t end = min(begin + run, group.chunks);
    const float* partials =
        job.groups.partials + static_cast<std::int64_t>(group.first_chunk) * job.dim;
    R rule;
    if (number == 0) rule.load(team, to, slots);
    Row<S> sum;
    sum.clear();
    for (std::uint32_t from = begin; from < end; from += S::kFlight) {
      Row<S> rows[S::kFlight];
#pragma unroll
      for (int k = 0; k < S::kFlight; ++k) {
        rows[k].clear();
        if (from + k < end)
          rows[k].load(team, partials + static_cast<std::int64_t>(from + k) * job.dim);
      }
#pragma unroll
      for (int k = 0; k < S::kFlight; ++k)
        if (from + k < end) sum.add(rows[k]);
    }
    sum.store(team, sums[number]);
    __syncthreads();
    if (number == 0) {
      for (int t = 1; t < kTeams && static_cast<std::uint32_t>(t) * run < group.chunks; ++t) {
        Row<S> other;
        other.load(team, sums[t]);
        sum.add(other);
      }
      rule.update(team, to, slots, sum, rates);
    }
    __syncthreads();  // before `sums` is written again
  }
}

// As many blocks as the device runs at once: they share out the work among themselves.
template <typename Kernel>
unsigned blocks_at_once(Kernel kernel, unsigned blocks_max) {
  int blocks = 0;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kThreads, 0),
             "asking how many blocks fit");
  return std::min(blocks_max, processors() * static_cast<unsigned>(std::max(blocks, 1)));
}

void verify(int dim, int tables, const RowGroups::Memory& groups) {
  if (tables == groups.tables && dim == groups.dim) return;
  throw InvalidArgumentError(str("lookups grouped for ", groups.tables, " tables of dimension ",
                                 groups.dim, " do not update ", tables, " of dimension ", dim));
}

void verify_layout(Rule rule, std::int64_t row_stride, std::int64_t slot_offset) {
  if (row_stride % 4 != 0 || slot_offset % 4 != 0)
    throw InvalidArgumentError("rows and slots of embedding tables must be aligned to 16 bytes");
  if (rule != Rule::kSgd && slot_offset == 0)
    throw InvalidArgumentError("the embedding tables have no slots for this rule");
}

template <typename J>
void launch(Rule rule, const J& job, bool wide, Stream stream) {
  const std::uint32_t occurrences = job.groups.occurrences;
  if (occurrences == 0) return;
  with_warps(job.dim, [&](auto shape) {
    using S = decltype(shape);
    with_rule<S>(rule, [&](auto one) {
      using R = decltype(one);
      with_key_type(wide, [&](auto zero) {
        using Key = decltype(zero);
        const unsigned teams_a_block = kThreads / S::kLanes;
        const auto update_blocks =
            blocks_at_once(update_rows<S, R, Key, J>, occurrences / teams_a_block + 1);
        update_rows<S, R, Key, J><<<update_blocks, kThreads, 0, stream>>>(job);
        check_cuda(cudaGetLastError(), "launching the update of embedding rows");
        const auto combine_blocks =
            blocks_at_once(combine_chunks<S, R, Key, J>, occurrences / kChunk + 1);
        combine_chunks<S, R, Key, J><<<combine_blocks, kThreads, 0, stream>>>(job);
        check_cuda(cudaGetLastError(), "launching the update of frequent embedding rows");
      });
    });
  });
}

}  // namespace

void apply(Rule rule, const Tables& tables, const RowGroups& groups, const float* gradients,
           const Rates* rates, Stream stream) {
  const RowGroups::Memory& memory = groups.memory();
  verify(tables.dim, tables.count, memory);
  verify_layout(rule, tables.row_stride, tables.slot_offset);
  const Job<ListedPlaces> job{
      {tables.rows, tables.row_stride, tables.slot_offset, tables.first_row, rates},
      gradients,
      memory.view,
      tables.dim};
  launch(rule, job, memory.wide, stream);
}

void apply(Rule rule, const ScatteredTables& tables, const RowGroups& groups, Stream stream) {
  const RowGroups::Memory& memory = groups.memory();
  verify(tables.dim, tables.count, memory);
  for (int t = 0; t < tables.count; ++t)
    verify_layout(rule, tables.tables[t].row_stride, tables.tables[t].slot_offset);
  const Job<ScatteredPlaces> job{{tables}, tables.gradients, memory.view, tables.dim};
  launch(rule, job, memory.wide, stream);
}

}  // namespace cairn::cuda
