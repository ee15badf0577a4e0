// The job with its tables in the host's memory, checked on a few rows before it is timed.
#include <algorithm>
#include <map>

#include "bench/gpu/embedding_cached.h"
#include "bench/gpu/embedding_job.h"
#include "bench/gpu/embedding_values.cuh"

namespace cairn::bench {
namespace {

using cuda::Buffer;

cuda::RowCacheOptions options_of(const JobSize& size, const CachedSize& cached) {
  return {static_cast<std::int64_t>(static_cast<double>(size.rows * size.tables) * cached.share),
          size.lookups * size.tables, cached.lookahead};
}

class CachedJob {
 public:
  enum class Work { kStep, kNone };

  CachedJob(const JobSize& size, const CachedSize& cached, cuda::Rule rule,
            const std::vector<std::vector<std::int64_t>>& ids)
      : size_(size),
        rule_(rule),
        lookahead_(cached.lookahead),
        host_ids_(ids),
        count_(size.lookups * size.tables),
        tables_(std::vector<std::int64_t>(static_cast<std::size_t>(size.tables), size.rows),
                size.dim, rule, options_of(size, cached)),
        out_(count_ * size.dim),
        gradients_(count_ * size.dim),
        first_lookup_(to_device(running_sum(
            std::vector<std::int64_t>(static_cast<std::size_t>(size.tables), size.lookups)))),
        rates_(to_device(std::vector<cuda::Rates>{kRates})) {
    for (const auto& one : ids) ids_.push_back(to_device(one));
    fill<<<4096, 256>>>(tables_.home(), size.rows * size.tables, tables_.stride(), size.dim,
                        cuda::UniformInitial{kInitial});
    fill<<<4096, 256>>>(gradients_.get(), count_, size.dim, size.dim,
                        cuda::UniformInitial{kGradients});
    cuda::check_cuda(cudaGetLastError(), "filling tables");
    cuda::check_cuda(cudaDeviceSynchronize(), "filling tables");
  }

  // The first step, whose kernels are loaded then, and what it leaves in the host's memory.
  bool first_step_is_right() {
    for (int i = 0; i < lookahead_; ++i) prepare();
    prepare();
    tables_.step(tables_.cache().use(), out_.get(), gradients_.get(), rates_.get());
    tables_.cache().release();
    tables_.cache().flush();
    for (const std::int64_t lookup : probes(size_)) {
      const std::int64_t row = row_of(size_, host_ids_[0], lookup);
      const std::string what = "the cached job's row " + std::to_string(row);
      const cuda::UniformInitial initial{kInitial};
      std::vector<double> before;
      for (int j = 0; j < size_.dim; ++j) before.push_back(initial(0, row, j));
      const float* const after = tables_.home() + row * tables_.stride();
      if (!same(what + ", looked up", to_host(out_.get() + lookup * size_.dim, size_.dim), before,
                1e-6) ||
          !same(what + " after a step", std::vector<float>(after, after + size_.dim),
                row_after_a_step(size_, rule_, host_ids_[0], lookup), tolerance(rule_)))
        return false;
    }
    return true;
  }

  // Steps from one's end to the next one's.
  Measured time_steps(const std::string& name, Work work, int warm_up) {
    std::vector<Event> ends;
    for (int i = 0; i <= size_.replays; ++i) ends.emplace_back(Event::Use::kTime);
    for (int i = -warm_up; i <= size_.replays; ++i) {
      prepare();
      const std::int32_t* const places = tables_.cache().use();
      if (work == Work::kStep) graph(places).launch(tables_.stream());
      tables_.cache().release();
      if (i >= 0) ends[static_cast<std::size_t>(i)].record(tables_.stream());
      if (i == -1) before_ = tables_.cache().counts();
    }
    tables_.queue().wait();
    after_ = tables_.cache().counts();
    std::vector<double> times;
    for (std::size_t i = 1; i < ends.size(); ++i) times.push_back(ends[i].ms_since(ends[i - 1]));
    std::sort(times.begin(), times.end());
    return {name, times[times.size() / 2], times.front(), times.back(), 0};
  }
  // Fills in the rows found, read and written per step of the last time_steps().
  void count(CachedResult& result) const {
    const double steps = size_.replays + 1;
    result.found = static_cast<double>(after_.found - before_.found) / steps;
    result.read = static_cast<double>(after_.read - before_.read) / steps;
    result.written = static_cast<double>(after_.written - before_.written) / steps;
    result.row_bytes = 4.0 * static_cast<double>(tables_.stride());
  }

 private:
  void prepare() {
    const std::size_t set = prepared_++ % ids_.size();
    tables_.cache().prepare({ids_[set].get(), cuda::IdType::kInt64, first_lookup_.get(), count_},
                            cuda::RowCache::Access::kChanges);
  }
  // Places lie where those of the batch lookahead + 1 before lay, so a few graphs serve all steps.
  const Graph& graph(const std::int32_t* places) {
    const auto found = graphs_.find(places);
    if (found != graphs_.end()) return found->second;
    return graphs_
        .emplace(places,
                 Graph(tables_.stream(),
                       [&] { tables_.step(places, out_.get(), gradients_.get(), rates_.get()); }))
        .first->second;
  }

  JobSize size_;
  cuda::Rule rule_;
  int lookahead_;
  const std::vector<std::vector<std::int64_t>>& host_ids_;
  std::int64_t count_;
  CachedTables tables_;
  Buffer<float> out_, gradients_;
  Buffer<std::int64_t> first_lookup_;
  Buffer<cuda::Rates> rates_;
  std::vector<Buffer<std::int64_t>> ids_;
  std::size_t prepared_ = 0;
  std::map<const std::int32_t*, Graph> graphs_;
  cuda::RowCache::Counts before_, after_;
};

}  // namespace

CachedResult run_cached_job(const JobSize& size, const CachedSize& cached, cuda::Rule rule,
                            const std::vector<std::vector<std::int64_t>>& ids) {
  const std::string of = rule == cuda::Rule::kSgd ? " sgd" : " adam";
  CachedResult result;
  CachedJob job(size, cached, rule, ids);
  result.right = job.first_step_is_right();
  result.measured.push_back(
      job.time_steps("cached step" + of, CachedJob::Work::kStep, cached.warm_up));
  job.count(result);
  result.measured.push_back(
      job.time_steps("  rows in and out alone" + of, CachedJob::Work::kNone, cached.lookahead));
  return result;
}

double bus_bandwidth() {
  constexpr std::int64_t kBytes = std::int64_t{1} << 30;
  cuda::CudaDriver driver(0);
  Buffer<std::byte> device(2 * kBytes);
  std::byte* const pinned = driver.allocate_pinned(2 * kBytes);
  OwnStream main, side;
  const Event fork(Event::Use::kOrder), join(Event::Use::kOrder);
  std::vector<Graph> copies;
  copies.emplace_back(main.get(), [&] {
    fork.record(main.get());
    fork.wait(side.get());
    cuda::check_cuda(
        cudaMemcpyAsync(device.get(), pinned, kBytes, cudaMemcpyHostToDevice, main.get()),
        "copying to the device");
    cuda::check_cuda(cudaMemcpyAsync(pinned + kBytes, device.get() + kBytes, kBytes,
                                     cudaMemcpyDeviceToHost, side.get()),
                     "copying from the device");
    join.record(side.get());
    join.wait(main.get());
  });
  const Measured both = time_graphs("bus", copies, {}, 10, main.get());
  driver.release_pinned(pinned);
  return static_cast<double>(kBytes) / (both.median_ms * 1e-3);
}

}  // namespace cairn::bench
