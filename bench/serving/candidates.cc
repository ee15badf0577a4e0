// The best 100 of 200,000 candidates of 32 numbers, beside one matrix product of that size, on one
// thread: a line of JSON for each number of queries that are looked up together.
//
//   cairn-bench-candidates [--hnsw]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "core/base/program.h"
#include "core/kernels/cpu/gemm.h"
#include "serving/retrieval/candidate_index.h"

namespace cairn::serving {
namespace {

constexpr std::int64_t kCandidates = 200'000, kWidth = 32, kBest = 100;

double median_seconds(const std::function<void()>& pass) {
  std::vector<double> all;
  pass();
  for (int i = 0; i < 9; ++i) {
    const auto began = std::chrono::steady_clock::now();
    pass();
    all.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  std::ranges::sort(all);
  return all[4];
}

Tensor normal_matrix(std::int64_t rows, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> draw;
  Tensor made(DType::kFloat32, {rows, kWidth});
  for (float& value : made.mutable_values<float>()) value = draw(random);
  return made;
}

void measure(const CandidateIndex& index, const Tensor& vectors, std::int64_t count) {
  const Tensor queries = normal_matrix(count, 2);
  std::vector<float> products(static_cast<std::size_t>(count * kCandidates));
  const Gemm shape{.m = count, .n = kCandidates, .k = kWidth, .transpose_b = true};
  const Product product = plan_product(shape, Arithmetic::kFloat32);
  const double one = median_seconds([&] {
    product(queries.values<float>().data(), vectors.values<float>().data(), products.data());
  });
  const double best = median_seconds([&] { index.top(queries, kBest); });
  const auto queries_per_s = [count](double seconds) {
    return static_cast<double>(count) / seconds;
  };
  std::printf("{\"queries\": %lld, \"product\": %.1f, \"best\": %.1f, \"recall\": %.3f}\n",
              static_cast<long long>(count), queries_per_s(one), queries_per_s(best),
              index.recall());
}

int run(IndexKind kind) {
  const Tensor vectors = normal_matrix(kCandidates, 1);
  Tensor ids(DType::kInt64, {kCandidates});
  const auto numbers = ids.mutable_values<std::int64_t>();
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  const CandidateIndex index({.ids = ids, .vectors = vectors, .queries = normal_matrix(200, 3)},
                             {.kind = kind});
  for (const std::int64_t count : {1, 4, 16, 64}) measure(index, vectors, count);
  return 0;
}

}  // namespace
}  // namespace cairn::serving

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-candidates", [&] {
    using cairn::serving::IndexKind;
    const bool hnsw = argc > 1 && std::strcmp(argv[1], "--hnsw") == 0;
    return cairn::serving::run(hnsw ? IndexKind::kHnsw : IndexKind::kExact);
  });
}
