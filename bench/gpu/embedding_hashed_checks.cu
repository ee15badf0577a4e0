// Hashed tables against std::unordered_map: which ids share a row, what rows hold, growth,
// admission and eviction.
#include <cstdio>
#include <random>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bench/gpu/embedding_checks.h"
#include "bench/gpu/embedding_host.h"
#include "core/kernels/cuda/embedding/hashed.h"
#include "core/kernels/cuda/embedding/hashed_lookup.cuh"

namespace cairn::bench {
namespace {

using cuda::Buffer;

constexpr int kDim = 32;
constexpr std::int64_t kStride = 3 * kDim;
const cuda::UniformRows kInitial{77, -1.0f, 1.0f};

// Two hashed tables with slots, and what is looked up in them.
struct Bench {
  std::vector<std::int64_t> room;
  cuda::HashedIndex index;
  Buffer<float> rows;
  Buffer<std::int64_t> first_row;
  cuda::Tables tables;
  Buffer<std::int32_t> step{1};

  Bench(std::vector<std::int64_t> row_room, const cuda::HashedOptions& options)
      : room(row_room),
        index(row_room, options),
        rows(to_device(std::vector<float>(
            static_cast<std::size_t>(running_sum(row_room).back() * kStride), NAN))),
        first_row(to_device(running_sum(row_room))),
        tables{rows.get(),
               kStride,
               kDim,
               kDim,
               2,
               first_row.get(),
               std::max(row_room[0], row_room[1])} {}

  // The rows of `ids` [table 0's, then table 1's].
  std::vector<std::int32_t> look_up(const std::vector<std::int64_t>& ids, std::int64_t of_table_0,
                                    std::int32_t at_step) {
    const auto count = static_cast<std::int64_t>(ids.size());
    const Buffer<std::int64_t> device_ids = to_device(ids);
    const Buffer<std::int64_t> first_lookup =
        to_device(std::vector<std::int64_t>{0, of_table_0, count});
    const Buffer<std::int32_t> out(count);
    copy_to(step, {at_step});
    index.find_or_add(tables, {device_ids.get(), cuda::IdType::kInt64, first_lookup.get(), count},
                      step.get(), kInitial, 0.25f, out.get(), nullptr);
    return to_host(out);
  }
};

using Known = std::unordered_map<std::int64_t, std::int32_t>;  // id -> row

// Checks that each known id got the row that `known` has for it, and each new id an unused row.
bool consistent(const std::string& name, const std::vector<std::int64_t>& ids,
                const std::vector<std::int32_t>& rows, std::int64_t of_table_0, Known (&known)[2],
                const std::vector<std::int64_t>& room) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const int table = static_cast<std::int64_t>(i) < of_table_0 ? 0 : 1;
    if (rows[i] < 0 || rows[i] >= room[static_cast<std::size_t>(table)])
      return failed(name + ": lookup " + std::to_string(i) + " got row " + std::to_string(rows[i]));
    const auto [place, added] = known[table].emplace(ids[i], rows[i]);
    if (!added && place->second != rows[i])
      return failed(name + ": id " + std::to_string(ids[i]) + " has two rows");
  }
  for (const Known& one : known) {
    std::unordered_set<std::int32_t> used;
    for (const auto& [id, row] : one)
      if (!used.insert(row).second) return failed(name + ": two ids share a row");
  }
  return true;
}

bool contents(const std::string& name, const Bench& bench, const Known (&known)[2]) {
  const std::vector<float> rows = to_host(bench.rows);
  for (std::int64_t t = 0; t < 2; ++t)
    for (const auto& [id, row] : known[t]) {
      const std::int64_t begin = ((t == 0 ? 0 : bench.room[0]) + row) * kStride;
      for (int j = 0; j < kStride; ++j) {
        const float want = j < kDim ? cuda::UniformInitial{kInitial}(t, id, j) : 0.25f;
        const float got = rows[static_cast<std::size_t>(begin + j)];
        if (!(std::fabs(got - want) < 1e-6f))
          return failed(name + ": id " + std::to_string(id) + " holds " + std::to_string(got) +
                        " instead of " + std::to_string(want));
      }
    }
  return true;
}

std::vector<std::int64_t> draw(std::mt19937_64& random, std::size_t count, std::uint64_t range) {
  std::vector<std::int64_t> ids(count);
  for (std::int64_t& id : ids) {
    id = static_cast<std::int64_t>(cuda::mix(random() % range));
    if (random() % 20 == 0) id = static_cast<std::int64_t>(random() % 4) - 2;
    if (random() % 20 == 0) id = std::numeric_limits<std::int64_t>::min();
    if (random() % 20 == 0) id = std::numeric_limits<std::int64_t>::max();
  }
  return ids;
}

// Steps of many new ids, the index growing between them.
bool grows() {
  std::mt19937_64 random(5);
  cuda::HashedOptions options;
  options.index_entries = 1 << 14;
  Bench bench({60000, 50000}, options);
  Known known[2];
  for (std::int32_t step = 1; step <= 8; ++step) {
    const std::vector<std::int64_t> ids = draw(random, 20000, 3000 * static_cast<unsigned>(step));
    if (!consistent("hashed", ids, bench.look_up(ids, 12000, step), 12000, known, bench.room))
      return false;
    bench.index.grow(nullptr);
    const std::vector<cuda::IndexState> states = bench.index.states(nullptr);
    for (int t = 0; t < 2; ++t) {
      const cuda::IndexState& state = states[static_cast<std::size_t>(t)];
      if (state.ids != static_cast<std::int64_t>(known[t].size()) || state.rows != state.ids ||
          state.refused != 0 || state.load() > cuda::HashedIndex::kLoadMax)
        return failed("hashed: an index miscounts its ids");
    }
  }
  const std::vector<cuda::IndexState> states = bench.index.states(nullptr);
  if (states[0].entries <= 1 << 14) return failed("hashed: the index did not grow");
  return contents("hashed", bench, known);
}

// An index that must grow, and all lookups of one new id.
bool grows_from_little() {
  cuda::HashedOptions options;
  options.index_entries = 16;
  Bench bench({1000, 1000}, options);
  Known known[2];
  std::vector<std::int64_t> ids(5000, 42);
  if (!consistent("one id", ids, bench.look_up(ids, 4000, 1), 4000, known, bench.room))
    return false;
  for (std::int64_t next = 0; next < 600; next += 3) {
    ids = {next, next + 1, next + 2, next, next + 1};
    if (!consistent("few ids", ids, bench.look_up(ids, 3, 2), 3, known, bench.room)) return false;
    bench.index.grow(nullptr);
  }
  if (bench.index.states(nullptr)[0].entries < 1024) return failed("few ids: the index is small");
  return contents("few ids", bench, known);
}

// More ids than rows, and then than entries.
bool refuses() {
  cuda::HashedOptions options;
  options.index_entries = 256;
  Bench bench({100, 1000}, options);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 200; ++i) ids.push_back(i * 977);
  for (std::int64_t i = 0; i < 400; ++i) ids.push_back(i * 31 + 5);
  const std::vector<std::int32_t> rows = bench.look_up(ids, 200, 1);
  int got[2] = {0, 0};
  for (std::size_t i = 0; i < rows.size(); ++i) got[i < 200 ? 0 : 1] += rows[i] >= 0;
  const std::vector<cuda::IndexState> states = bench.index.states(nullptr);
  if (got[0] != 100 || states[0].refused != 100)
    return failed("refusal: " + std::to_string(got[0]) + " rows were given out of 100");
  if (got[1] != 256 || states[1].refused != 144)
    return failed("refusal: " + std::to_string(got[1]) + " entries were used out of 256");
  if (!bench.index.grow(nullptr)) return failed("refusal: a full index did not grow");
  return true;
}

bool admits_and_evicts() {
  cuda::HashedOptions options;
  options.admit_at = 3;
  options.index_entries = 1024;
  options.filter_counters = 1 << 22;
  Bench bench({400, 400}, options);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 300; ++i) ids.push_back(i);
  for (std::int32_t step = 1; step <= 2; ++step)
    for (const std::int32_t row : bench.look_up(ids, 150, step))
      if (row != cuda::HashedIndex::kNoRow) return failed("admission: an id was admitted early");
  Known known[2];
  if (!consistent("admission", ids, bench.look_up(ids, 150, 3), 150, known, bench.room))
    return false;
  // Half of table 0's ids are used again, and those of table 1 are not.
  const std::vector<std::int64_t> half(ids.begin(), ids.begin() + 75);
  if (!consistent("use", half, bench.look_up(half, 75, 9), 75, known, bench.room)) return false;
  bench.index.evict_before(9, nullptr);
  std::vector<cuda::IndexState> states = bench.index.states(nullptr);
  if (states[0].ids != 75 || states[1].ids != 0) return failed("eviction: wrong ids are left");
  // Removed ids have rows again only as new ids. Counts stay, so that one lookup is enough.
  Known left[2];
  for (const std::int64_t id : half) left[0].emplace(id, known[0].at(id));
  if (!consistent("after eviction", ids, bench.look_up(ids, 150, 10), 150, left, bench.room))
    return false;
  states = bench.index.states(nullptr);
  if (states[0].ids != 150 || states[1].ids != 150 || states[0].rows != 150)
    return failed("eviction: ids came back wrongly");
  for (const auto& one : left)
    for (const auto& [id, row] : one)
      if (row >= 150) return failed("eviction: free rows were not used first");
  return contents("after eviction", bench, left);
}

}  // namespace

int check_hashed_tables() {
  int wrong = 0;
  for (bool (*const check)() : {grows, grows_from_little, refuses, admits_and_evicts})
    if (!check()) ++wrong;
  std::printf("checks: hashed tables: 4 cases, %d wrong\n", wrong);
  return wrong;
}

}  // namespace cairn::bench
