// cairn-bench-limited-model FOLDER LIMIT [SECONDS [EXPONENT]]: what a server makes of the large
// model in FOLDER (large_model.cc) with LIMIT of memory ("350 MB"; "none": all of it is in memory),
// on one thread, in batches of 64 whose ids follow a power law: the k-th most frequent row of a
// table comes k^-EXPONENT (1.2) times as often as the first. Prints a line of JSON: examples a
// second, and of the thread's own time; the share of ids that needed no disk, and that of distinct
// ids of a batch, each of which is read once; MB of memory at the top and of the caches.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "core/base/memory_limit.h"
#include "core/base/program.h"
#include "serving/model/served_model.h"

namespace cairn::serving {
namespace {

constexpr std::int64_t kTables = 26, kExamples = 64, kNumbers = 13;

// Ids of one table. Frequent rows lie anywhere in it.
class PowerLaw {
 public:
  PowerLaw(std::int64_t rows, double exponent) : sums_(static_cast<std::size_t>(rows)) {
    double sum = 0;
    for (std::size_t i = 0; i < sums_.size(); ++i)
      sums_[i] = sum += std::pow(static_cast<double>(i + 1), -exponent);
    while (std::gcd(step_, rows) != 1) step_ += 2;
  }
  std::int64_t draw(std::mt19937_64& random, std::int64_t table) const {
    const double at = std::uniform_real_distribution<double>(0, sums_.back())(random);
    const auto rank = std::lower_bound(sums_.begin(), sums_.end(), at) - sums_.begin();
    return (rank + table) * step_ % static_cast<std::int64_t>(sums_.size());
  }

 private:
  std::vector<double> sums_;
  std::int64_t step_ = 100'003;
};

std::vector<Element> batches(std::size_t count, const PowerLaw& law, std::mt19937_64& random) {
  std::vector<Element> all;
  for (std::size_t i = 0; i < count; ++i) {
    Tensor dense = Tensor::zeros(DType::kFloat32, {kExamples, kNumbers});
    Tensor ids(DType::kInt64, {kExamples, kTables});
    std::int64_t at = 0;
    for (std::int64_t& id : ids.mutable_values<std::int64_t>())
      id = law.draw(random, at++ % kTables);
    all.push_back({dense, ids});
  }
  return all;
}

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void measure(const std::string& folder, std::size_t limit, double seconds, double exponent) {
  using Clock = std::chrono::steady_clock;
  const auto memory = limit > 0 ? MemoryBudget::make(limit) : nullptr;
  const auto counters = std::make_shared<ReadCounters>();
  const auto model =
      ServedModel::load(folder, {.threads = 1, .memory = memory, .counters = counters});
  const std::int64_t rows = model->about().variables.front().rows();
  const PowerLaw law(rows, exponent);
  std::mt19937_64 random(1);
  // Until the cache is full and has seen what is frequent.
  for (int i = 0; i < 600; ++i)
    for (const Element& batch : batches(100, law, random)) model->predict(batch, 0);
  counters->cache_hits = counters->cache_misses = 0;
  std::int64_t examples = 0;
  double took = 0, worked = 0;
  while (took < seconds) {
    const std::vector<Element> next = batches(100, law, random);
    const auto began = Clock::now();
    const double began_work = thread_seconds();
    for (const Element& batch : next) model->predict(batch, 0);
    took += std::chrono::duration<double>(Clock::now() - began).count();
    worked += thread_seconds() - began_work;
    examples += 100 * kExamples;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto hits = static_cast<double>(counters->cache_hits.load());
  const auto misses = static_cast<double>(counters->cache_misses.load());
  const auto count = static_cast<double>(examples);
  std::printf(
      "{\"examples_per_s\": %.0f, \"examples_per_own_s\": %.0f, \"hit_rate\": %.4f, "
      "\"distinct_hit_rate\": %.4f, \"top_mb\": %.0f, \"cache_mb\": %.0f}\n",
      count / took, count / worked, 1 - misses / (count * kTables),
      hits + misses > 0 ? hits / (hits + misses) : 1.0,
      static_cast<double>(usage.ru_maxrss) * 1024 / 1e6,
      memory == nullptr ? 0.0 : static_cast<double>(memory->cache_bytes()) / 1e6);
}

}  // namespace
}  // namespace cairn::serving

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-limited-model", [&] {
    if (argc < 3) throw cairn::InvalidArgumentError("FOLDER LIMIT [SECONDS [EXPONENT]] is wanted");
    cairn::serving::measure(argv[1], cairn::parse_memory_limit(argv[2]),
                            argc > 3 ? std::atof(argv[3]) : 5, argc > 4 ? std::atof(argv[4]) : 1.2);
    return 0;
  });
}
