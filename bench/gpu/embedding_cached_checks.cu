// Checks tables behind a cache against the same tables in the device's memory. The same kernels
// look both up and update both, so the rows must be equal to the bit. That those kernels are right,
// the other checks show.
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "bench/gpu/embedding_cached.h"
#include "bench/gpu/embedding_checks.h"
#include "bench/gpu/embedding_host.h"

namespace cairn::bench {
namespace {

using cuda::Buffer;

struct Case {
  cuda::Rule rule = cuda::Rule::kSgd;
  int dim = 128, lookahead = 4;
  double room = 1.0;  // of what the batches in flight need at most
};

constexpr int kSteps = 24;
const std::vector<std::int64_t> kRows = {6000, 0, 3, 2500}, kLookups = {700, 0, 40, 500};

// Some rows are frequent.
std::vector<std::int64_t> draw_ids(std::mt19937_64& random) {
  std::vector<std::int64_t> ids;
  std::uniform_real_distribution<double> uniform(0, 1);
  for (std::size_t t = 0; t < kRows.size(); ++t)
    for (std::int64_t i = 0; i < kLookups[t]; ++i)
      ids.push_back(
          static_cast<std::int64_t>(static_cast<double>(kRows[t]) * std::pow(uniform(random), 3)));
  return ids;
}

bool same_bits(const std::string& what, const std::vector<float>& got,
               const std::vector<float>& want) {
  for (std::size_t i = 0; i < want.size(); ++i)
    if (got[i] != want[i])
      return failed(what + ": value " + std::to_string(i) + " is " + std::to_string(got[i]) +
                    " instead of " + std::to_string(want[i]));
  return true;
}

bool run(const Case& one, std::uint64_t seed) {
  const std::string name = "cached tables, dimension " + std::to_string(one.dim) + ", lookahead " +
                           std::to_string(one.lookahead) + ", seed " + std::to_string(seed);
  std::mt19937_64 random(seed);
  const std::int64_t count = running_sum(kLookups).back();
  const auto places =
      static_cast<std::int64_t>(static_cast<double>(count * (one.lookahead + 1)) * one.room);
  CachedTables cached(kRows, one.dim, one.rule, {places, count, one.lookahead});
  const std::int64_t floats = cached.first_row().back() * cached.stride();
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (std::int64_t i = 0; i < floats; ++i)
    cached.home()[i] = i % cached.stride() < one.dim ? uniform(random) : 0.1f;
  Buffer<float> whole = to_device(std::vector<float>(cached.home(), cached.home() + floats));
  std::vector<float> gradients(static_cast<std::size_t>(count * one.dim));
  for (float& g : gradients) g = uniform(random);
  const Buffer<float> g = to_device(gradients);
  const Buffer<std::int64_t> first_row = to_device(cached.first_row()),
                             first_lookup = to_device(running_sum(kLookups));
  const Buffer<cuda::Rates> rates = to_device(std::vector<cuda::Rates>{
      {.rate = 0.1f, .share_1 = 0.1f, .share_2 = 0.01f, .epsilon = 1e-3f}});
  std::vector<Buffer<std::int64_t>> ids;
  for (int i = 0; i < kSteps; ++i) ids.push_back(to_device(draw_ids(random)));
  const auto lookups = [&](int step) {
    return cuda::Lookups{ids[static_cast<std::size_t>(step)].get(), cuda::IdType::kInt64,
                         first_lookup.get(), count};
  };

  const Buffer<float> out(kSteps * count * one.dim), want(kSteps * count * one.dim);
  for (int step = -one.lookahead; step < kSteps; ++step) {
    if (step + one.lookahead < kSteps)
      cached.cache().prepare(lookups(step + one.lookahead), cuda::RowCache::Access::kChanges);
    if (step < 0) continue;
    cached.step(cached.cache().use(), out.get() + step * count * one.dim, g.get(), rates.get());
    cached.cache().release();
  }
  cached.cache().flush();

  const cuda::Tables tables{whole.get(),
                            cached.stride(),
                            one.rule == cuda::Rule::kSgd ? 0 : one.dim,
                            one.dim,
                            static_cast<int>(kRows.size()),
                            first_row.get(),
                            kRows[0]};
  cuda::RowGroups groups(tables, count);
  for (int step = 0; step < kSteps; ++step) {
    cuda::gather(tables, lookups(step), want.get() + step * count * one.dim, nullptr);
    groups.find(lookups(step), nullptr, nullptr);
    cuda::apply(one.rule, tables, groups, g.get(), rates.get(), nullptr);
  }
  return same_bits(name + ": forward", to_host(out), to_host(want)) &&
         same_bits(name + ": tables", std::vector<float>(cached.home(), cached.home() + floats),
                   to_host(whole));
}

}  // namespace

int check_cached_tables() {
  std::vector<Case> all;
  for (const cuda::Rule rule : {cuda::Rule::kSgd, cuda::Rule::kAdam, cuda::Rule::kRowwiseAdagrad})
    for (const int dim : {4, 32, 128, 200})
      for (const int lookahead : {0, 1, 4})
        for (const double room : {1.0, 3.0}) all.push_back({rule, dim, lookahead, room});
  int wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!run(all[i], 3000 + i)) ++wrong;
  std::printf("checks: tables behind a cache: %zu cases, %d wrong\n", all.size(), wrong);
  return wrong;
}

}  // namespace cairn::bench
