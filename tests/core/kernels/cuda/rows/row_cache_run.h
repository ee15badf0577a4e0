// The same tables twice, behind a RowCache and whole in the device's memory, and the same steps on
// both. Everything that a step needs is in the device's memory before the first one, and results
// are fetched after the last one: in between nothing makes the host wait, which would hide races.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "core/kernels/cuda/ops/row_kernels.h"
#include "core/kernels/cuda/rows/row_cache.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"

namespace cairn::testing {

struct RowCacheJob {
  UpdateRule rule{RuleKind::kSgd, {}};
  std::int64_t places = 64, lookups = 40, dim = 4;
  int lookahead = 2, steps = 20;
  bool skewed = true;
  std::vector<std::int64_t> first_row = {0, 100, 100, 103, 400};
  std::uint64_t seed = 1;
  // The id of a step's lookup; empty: random.
  std::function<std::int64_t(int step, std::int64_t lookup)> id = {};
};

// Thread: one.
class RowCacheRun {
 public:
  explicit RowCacheRun(const RowCacheJob& job) : job_(job), random_(job.seed) {
    const std::int64_t slots = std::ssize(rule_slots(job.rule));
    stride_ = job.dim * (1 + slots);
    const std::size_t bytes = static_cast<std::size_t>(rows() * stride_) * sizeof(float);
    pinned_ = driver.allocate_pinned(bytes);
    for (std::int64_t i = 0; i < rows() * stride_; ++i)
      home()[i] = i % stride_ < job.dim ? uniform() : 0.0f;
    whole_ = sent(std::vector<float>(home(), home() + rows() * stride_));
    cache.emplace(queue, block_at(pinned_), job.first_row,
                  cuda::RowCacheOptions{job.places, job.lookups, job.lookahead});
    driver.watch_rows(cache->block().base, static_cast<std::size_t>(stride_) * sizeof(float));
    rates_ = sent(std::vector<RuleRates>{fold_rates(job.rule, {0.1f, 1})});
    first_lookup_ = sent(first_lookups());
    for (int step = 0; step < job.steps; ++step) draw_step(step);
    queue.wait();
    prepare_kernels();
  }
  ~RowCacheRun() {
    cache.reset();
    driver.release_pinned(pinned_);
  }

  void prepare(int step, cuda::RowCache::Access access = cuda::RowCache::Access::kChanges) {
    cache->prepare({ids_[static_cast<std::size_t>(step)]->data(), cuda::IdType::kInt64,
                    first_lookup_->as<std::int64_t>(), job_.lookups},
                   access);
  }
  void gather(int step, const std::int32_t* places) {
    announce(places, false);
    const auto at = static_cast<std::size_t>(step);
    look_up(cached_.gather, cache->block(), reinterpret_cast<const std::byte*>(places), *out_[at]);
    look_up(uncached_.gather, block_at(whole_->data()), row_ids_[at]->data(), *want_[at]);
  }
  void update(int step, const std::int32_t* places) {
    announce(places, true);
    const auto at = static_cast<std::size_t>(step);
    const auto* const rates = rates_->as<RuleRates>();
    const RowBlock cached = cache->block(), whole = block_at(whole_->data());
    const std::byte* const gradients = gradients_[at]->data();
    cached_.update(
        {cached, rates, reinterpret_cast<const std::byte*>(places), gradients, cached.dim});
    uncached_.update({whole, rates, row_ids_[at]->data(), gradients, whole.dim});
  }
  void step(int step) {
    const std::int32_t* const places = cache->use();
    gather(step, places);
    update(step, places);
    cache->release();
  }
  void run() {
    for (int t = 0; t < std::min(job_.lookahead, job_.steps); ++t) prepare(t);
    for (int t = 0; t < job_.steps; ++t) {
      if (t + job_.lookahead < job_.steps) prepare(t + job_.lookahead);
      step(t);
    }
  }

  void expect_equal_outputs() {
    for (std::size_t t = 0; t < out_.size(); ++t)
      ASSERT_EQ(fetched(out_[t]->as<float>(), job_.lookups * job_.dim),
                fetched(want_[t]->as<float>(), job_.lookups * job_.dim))
          << "step " << t;
  }
  void expect_equal_tables() {
    EXPECT_EQ(std::vector<float>(home(), home() + rows() * stride_),
              fetched(whole_->as<float>(), rows() * stride_));
  }
  // A step's distinct rows.
  std::set<std::int64_t> rows_of(int step) const {
    const auto& ids = host_ids_[static_cast<std::size_t>(step)];
    return {ids.begin(), ids.end()};
  }

  template <typename T>
  std::shared_ptr<cuda::Memory> sent(const std::vector<T>& from) {
    auto made = queue.memory(from.size() * sizeof(T));
    driver.copy(queue.stream(), Device::Direction::kIn, made->data(),
                reinterpret_cast<const std::byte*>(from.data()), from.size() * sizeof(T));
    return made;
  }
  template <typename T>
  std::vector<T> fetched(const T* from, std::int64_t count) {
    std::vector<T> made(static_cast<std::size_t>(count));
    driver.copy(queue.stream(), Device::Direction::kOut, reinterpret_cast<std::byte*>(made.data()),
                reinterpret_cast<const std::byte*>(from), made.size() * sizeof(T));
    queue.wait();
    return made;
  }
  float* home() { return reinterpret_cast<float*>(pinned_); }
  std::int64_t rows() const { return job_.first_row.back(); }

  FakeDriver driver;
  cuda::Queue queue{driver, cpu_device()};
  std::optional<cuda::RowCache> cache;

 private:
  float uniform() { return std::uniform_real_distribution<float>(-1, 1)(random_); }
  RowBlock block_at(std::byte* base) const {
    return {DType::kFloat32, base, rows(), job_.dim, stride_, stride_ > job_.dim ? job_.dim : 0};
  }

  // As many lookups of each table that has rows, the last table's fewer or more.
  std::vector<std::int64_t> first_lookups() const {
    const std::int64_t tables = std::ssize(job_.first_row) - 1;
    std::vector<std::int64_t> made = {0};
    for (std::int64_t t = 0; t < tables; ++t) {
      const bool empty = job_.first_row[static_cast<std::size_t>(t)] ==
                         job_.first_row[static_cast<std::size_t>(t) + 1];
      made.push_back(t + 1 == tables ? job_.lookups
                                     : made.back() + (empty ? 0 : job_.lookups / tables));
    }
    return made;
  }
  void draw_step(int step) {
    const auto first = first_lookups();
    std::vector<std::int64_t> ids, rows;
    for (std::size_t t = 0; t + 1 < first.size(); ++t)
      for (std::int64_t i = first[t]; i < first[t + 1]; ++i) {
        const auto n = static_cast<double>(job_.first_row[t + 1] - job_.first_row[t]);
        const double u = std::uniform_real_distribution<double>(0, 1)(random_);
        ids.push_back(job_.id ? job_.id(step, i)
                              : static_cast<std::int64_t>(n * (job_.skewed ? u * u * u * u : u)));
        rows.push_back(job_.first_row[t] + ids.back());
      }
    const auto size = static_cast<std::size_t>(job_.lookups * job_.dim);
    std::vector<float> gradients(size);
    for (float& g : gradients) g = uniform();
    ids_.push_back(sent(ids));
    row_ids_.push_back(sent(rows));
    gradients_.push_back(sent(gradients));
    out_.push_back(queue.memory(size * sizeof(float)));
    want_.push_back(queue.memory(size * sizeof(float)));
    host_ids_.push_back(rows);
  }
  RowKernels::Gathers prepared(const RowKernels::GatherOf& one) {
    return kernels_->prepare_gathers({&one, 1});
  }
  static void look_up(const RowKernels::Gathers& gather, const RowBlock& block,
                      const std::byte* ids, const cuda::Memory& to) {
    const RowKernels::GatherRun run{block, ids, to.data(), block.dim};
    gather({&run, 1});
  }
  void prepare_kernels() {
    kernels_ = cuda::make_row_kernels(queue);
    const TensorType cached{DType::kFloat32, {job_.places, job_.dim}},
        whole{DType::kFloat32, {rows(), job_.dim}}, places{DType::kInt32, {job_.lookups}},
        ids{DType::kInt64, {job_.lookups}};
    cached_.gather = prepared({cached, places, cached.dtype});
    uncached_.gather = prepared({whole, ids, whole.dtype});
    cached_.update = kernels_->prepare_update(job_.rule, cached, &places);
    uncached_.update = kernels_->prepare_update(job_.rule, whole, &ids);
  }
  // Announces the accesses of the step's kernels to rows of the cache.
  void announce(const std::int32_t* places, bool writes) {
    const std::size_t bytes = static_cast<std::size_t>(stride_) * sizeof(float);
    std::vector<cuda::Range> ranges;
    for (std::int64_t i = 0; i < job_.lookups; ++i)
      if (places[i] >= 0)
        ranges.push_back(
            {cache->block().base + static_cast<std::size_t>(places[i]) * bytes, bytes});
    driver.announce(queue.stream(), ranges, writes ? ranges : std::vector<cuda::Range>{});
  }

  RowCacheJob job_;
  std::mt19937_64 random_;
  std::int64_t stride_ = 0;
  std::byte* pinned_ = nullptr;
  using Memories = std::vector<std::shared_ptr<cuda::Memory>>;
  std::shared_ptr<cuda::Memory> whole_, rates_, first_lookup_;
  Memories ids_, row_ids_, gradients_, out_, want_;
  std::vector<std::vector<std::int64_t>> host_ids_;
  std::unique_ptr<RowKernels> kernels_;
  struct OfRows {
    RowKernels::Gathers gather;
    RowKernels::Update update;
  };
  OfRows cached_, uncached_;
};

}  // namespace cairn::testing
