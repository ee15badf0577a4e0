// Which rows stay in memory: hit rates of W-TinyLFU and LRU on made-up traces of ids, and what a
// look costs: cairn-bench-hot-rows [IDS [USES]].
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/program.h"
#include "core/base/random.h"
#include "core/rows/tiny_lfu.h"
#include "testing/zipf_ids.h"

namespace cairn {
namespace {

using Trace = std::vector<std::uint32_t>;

struct Outcome {
  double hit_rate, nanoseconds;
};
Outcome replay(const Trace& trace, std::size_t ids, std::uint32_t slots, double window_share) {
  constexpr std::uint32_t kAbsent = ~std::uint32_t{0};
  TinyLfu cache(slots, window_share);
  std::vector<std::uint32_t> slot_of(ids, kAbsent), id_of(slots + 1), free;
  for (std::uint32_t slot = slots + 1; slot-- > 0;) free.push_back(slot);
  std::size_t hits = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (const std::uint32_t id : trace) {
    const std::uint64_t hash = mix_bits(std::uint64_t{id} + 1);
    if (slot_of[id] != kAbsent) {
      ++hits;
      cache.use(slot_of[id], hash);
      continue;
    }
    const std::uint32_t slot = free.back();
    free.pop_back();
    cache.enter(slot, hash);
    id_of[slot] = id;
    slot_of[id] = slot;
    if (!free.empty()) continue;
    const std::uint32_t leaves = *cache.choose();
    cache.remove(leaves);
    slot_of[id_of[leaves]] = kAbsent;
    free.push_back(leaves);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto uses = static_cast<double>(trace.size());
  return {static_cast<double>(hits) / uses, seconds / uses * 1e9};
}

// Ranks become ids by a bijection, so that frequent ids do not lie together.
std::uint32_t id_of_rank(std::uint64_t rank, std::size_t ids, std::uint64_t shift) {
  return static_cast<std::uint32_t>((rank * 2'654'435'761ull + shift) % ids);
}
Trace power_law(std::size_t ids, std::size_t uses) {
  testing::ZipfIds zipf(ids, 1.05, 1);
  Trace trace;
  for (std::size_t i = 0; i < uses; ++i) trace.push_back(id_of_rank(zipf.next(), ids, 0));
  return trace;
}
// A third of the uses goes through all ids in order, as an evaluation or an export does.
Trace with_scans(std::size_t ids, std::size_t uses) {
  testing::ZipfIds zipf(ids, 1.05, 2);
  Trace trace;
  std::uint32_t scan = 0;
  while (trace.size() < uses) {
    for (int i = 0; i < 20'000; ++i) trace.push_back(id_of_rank(zipf.next(), ids, 0));
    for (int i = 0; i < 10'000; ++i) trace.push_back(scan++ % static_cast<std::uint32_t>(ids));
  }
  return trace;
}
// The frequent ids change one after the other: each rank has a new id three times in the trace, at
// a moment of its own.
Trace shifting(std::size_t ids, std::size_t uses) {
  testing::ZipfIds zipf(ids, 1.05, 3);
  Trace trace;
  for (std::size_t i = 0; i < uses; ++i) {
    const std::uint64_t rank = zipf.next();
    const std::uint64_t moment = scaled_below(mix_bits(rank + 1), uses);
    const std::uint64_t times = (3 * i + moment) / uses;
    trace.push_back(id_of_rank(rank, ids, times * 7919));
  }
  return trace;
}

void compare(const std::string& name, const Trace& trace, std::size_t ids) {
  for (const std::size_t share : {100, 20, 5}) {
    const auto slots = static_cast<std::uint32_t>(ids / share);
    std::printf("%-12s %5.1f %% of the rows:", name.c_str(), 100.0 / static_cast<double>(share));
    for (const double window : {1.0, 0.01, 0.05, 0.2}) {
      const Outcome outcome = replay(trace, ids, slots, window);
      const std::string way = window == 1 ? "LRU" : "window " + std::to_string(window).substr(0, 4);
      std::printf("  %s %.4f (%.0f ns)", way.c_str(), outcome.hit_rate, outcome.nanoseconds);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-hot-rows", [&] {
    const std::size_t ids = argc > 1 ? std::stoul(argv[1]) : 1'000'000;
    const std::size_t uses = argc > 2 ? std::stoul(argv[2]) : 10'000'000;
    cairn::compare("power law", cairn::power_law(ids, uses), ids);
    cairn::compare("with scans", cairn::with_scans(ids, uses), ids);
    cairn::compare("shifting", cairn::shifting(ids, uses), ids);
    return 0;
  });
}
