// The job, checked on a few of its rows before it is timed.
#include "bench/gpu/embedding_job.h"

#include <cmath>
#include <random>

#include "bench/gpu/embedding_host.h"
#include "bench/gpu/embedding_timing.h"
#include "bench/gpu/embedding_values.cuh"
#include "core/kernels/cuda/embedding/hashed.h"
#include "core/kernels/cuda/embedding/hashed_lookup.cuh"

namespace cairn::bench {
namespace {

using cuda::Buffer;
using cuda::Rule;

// The 64-bit id under which a hashed table stores the given row number.
__host__ __device__ std::int64_t hashed_id(std::int64_t row) {
  return static_cast<std::int64_t>(cuda::mix(static_cast<std::uint64_t>(row) * 2 + 1));
}

__global__ void hash_ids(const std::int64_t* rows, std::int64_t count, std::int64_t modulus,
                         std::int64_t* out) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < count) out[at] = hashed_id(rows != nullptr ? rows[at] : at % modulus);
}

// The tables, what a step reads and writes, and the two streams of a step.
class Job {
 public:
  Job(const JobSize& size, Rule rule, const std::vector<std::vector<std::int64_t>>& ids)
      : size_(size),
        rule_(rule),
        host_ids_(ids),
        stride_(size.dim + cuda::slot_floats(rule, size.dim)),
        count_(size.lookups * size.tables),
        table_(size.rows * size.tables * stride_),
        out_(count_ * size.dim),
        gradients_(count_ * size.dim),
        first_row_(starts(size.rows)),
        first_lookup_(starts(size.lookups)),
        rates_(to_device(std::vector<cuda::Rates>{kRates})),
        tables_{table_.get(), stride_,     rule == Rule::kSgd ? 0 : size.dim,
                size.dim,     size.tables, first_row_.get(),
                size.rows},
        groups_(tables_, count_) {
    for (const auto& one : ids) ids_.push_back(to_device(one));
    fill<<<4096, 256>>>(table_.get(), size.rows * size.tables, stride_, size.dim,
                        cuda::UniformInitial{kInitial});
    fill<<<4096, 256>>>(gradients_.get(), count_, size.dim, size.dim,
                        cuda::UniformInitial{kGradients});
    cuda::check_cuda(cudaGetLastError(), "filling tables");
    cuda::check_cuda(cudaDeviceSynchronize(), "filling tables");
  }

  cuda::Lookups lookups(std::size_t set) const {
    return {ids_[set].get(), cuda::IdType::kInt64, first_lookup_.get(), count_};
  }
  void forward(const cuda::Lookups& lookups) {
    cuda::gather(tables_, lookups, out_.get(), main_.get());
  }
  void update() {
    cuda::apply(rule_, tables_, groups_, gradients_.get(), rates_.get(), main_.get());
  }
  // Lookups are grouped beside the forward pass, and ahead of it where both want a multiprocessor.
  void step(const cuda::Lookups& lookups) {
    fork_.record(main_.get());
    fork_.wait(side_.get());
    groups_.find(lookups, nullptr, side_.get());
    join_.record(side_.get());
    forward(lookups);
    join_.wait(main_.get());
    update();
  }

  template <typename Work>
  std::vector<Graph> graphs(const Work& work) {
    std::vector<Graph> all;
    for (std::size_t set = 0; set < ids_.size(); ++set)
      all.emplace_back(main_.get(), [&] { work(set); });
    return all;
  }

  Measured timed(const std::string& name, const std::vector<Graph>& graphs,
                 const std::vector<Graph>& before, double bytes) {
    Measured one = time_graphs(name, graphs, before, size_.replays, main_.get());
    one.bytes = bytes;
    return one;
  }

  void run_dense(JobResult& result);
  void run_hashed(JobResult& result);

 private:
  Buffer<std::int64_t> starts(std::int64_t each) const {
    return to_device(
        running_sum(std::vector<std::int64_t>(static_cast<std::size_t>(size_.tables), each)));
  }
  double forward_bytes(double distinct) const {
    return 4.0 * size_.dim * (static_cast<double>(count_) + distinct) +
           8.0 * static_cast<double>(count_);
  }
  double update_bytes(double distinct) const {
    return 4.0 * size_.dim * static_cast<double>(count_) +
           8.0 * static_cast<double>(stride_) * distinct;
  }
  double distinct() {
    double sum = 0;
    for (std::size_t set = 0; set < ids_.size(); ++set) {
      groups_.find(lookups(set), nullptr, main_.get());
      sum += static_cast<double>(groups_.distinct(main_.get()));
    }
    return sum / static_cast<double>(ids_.size());
  }
  bool forward_is_right(bool hashed) const;
  bool step_is_right();

  JobSize size_;
  Rule rule_;
  const std::vector<std::vector<std::int64_t>>& host_ids_;
  std::int64_t stride_, count_;
  Buffer<float> table_, out_, gradients_;
  Buffer<std::int64_t> first_row_, first_lookup_;
  Buffer<cuda::Rates> rates_;
  cuda::Tables tables_;
  cuda::RowGroups groups_;
  std::vector<Buffer<std::int64_t>> ids_;
  OwnStream main_, side_{OwnStream::Order::kAhead};
  Event fork_{Event::Use::kOrder}, join_{Event::Use::kOrder};
};

// Whether `out_` holds set 0's rows as they were initialised, looked at every 1009th lookup and the
// last ones.
bool Job::forward_is_right(bool hashed) const {
  for (std::int64_t at = 0; at < count_; at += at + 2000 < count_ ? 1009 : 97) {
    const std::int64_t id = host_ids_[0][static_cast<std::size_t>(at)], table = at / size_.lookups;
    const std::vector<float> got = to_host(out_.get() + at * size_.dim, size_.dim);
    std::vector<double> want;
    for (int j = 0; j < size_.dim; ++j) {
      const cuda::UniformInitial initial{kInitial};
      want.push_back(hashed ? initial(table, hashed_id(id), j)
                            : initial(0, table * size_.rows + id, j));
    }
    if (!same("the job's lookup " + std::to_string(at), got, want, 1e-6)) return false;
  }
  return true;
}

// Takes one step with set 0 and looks at rows of the last table. The rows must be as they were
// initialised.
bool Job::step_is_right() {
  step(lookups(0));
  for (const std::int64_t lookup : probes(size_)) {
    const std::int64_t row = row_of(size_, host_ids_[0], lookup);
    const std::vector<float> got = to_host(table_.get() + row * stride_, size_.dim);
    if (!same("the job's row " + std::to_string(row) + " after a step", got,
              row_after_a_step(size_, rule_, host_ids_[0], lookup), tolerance(rule_)))
      return false;
  }
  return groups_.refused(main_.get()) == 0 || failed("the job's ids are refused");
}

void Job::run_dense(JobResult& result) {
  const std::string of = rule_ == Rule::kSgd ? " sgd" : " adam";
  forward(lookups(0));
  cuda::check_cuda(cudaStreamSynchronize(main_.get()), "the first forward pass");
  result.right = forward_is_right(false) && step_is_right();  // all kernels are loaded from here on
  result.distinct = distinct();
  const auto forwards = graphs([&](std::size_t set) { forward(lookups(set)); });
  const auto finds =
      graphs([&](std::size_t set) { groups_.find(lookups(set), nullptr, main_.get()); });
  const auto updates = graphs([&](std::size_t) { update(); });
  const auto steps = graphs([&](std::size_t set) { step(lookups(set)); });
  const double read = forward_bytes(result.distinct), write = update_bytes(result.distinct);
  result.measured.push_back(timed("step" + of, steps, {}, read + write));
  if (rule_ == Rule::kSgd) {
    result.measured.push_back(timed("  forward", forwards, {}, read));
    result.measured.push_back(timed("  grouping", finds, {}, 0));
  }
  result.measured.push_back(timed("  backward and update" + of, updates, finds, write));
}

// The same rows, now of hashed tables whose index knows every id.
void Job::run_hashed(JobResult& result) {
  const std::string of = rule_ == Rule::kSgd ? " sgd" : " adam";
  cuda::HashedOptions options;
  options.index_entries = size_.rows * 3 / 2;  // rounded up: at most 2/3 full
  cuda::HashedIndex index(
      std::vector<std::int64_t>(static_cast<std::size_t>(size_.tables), size_.rows), options);
  const Buffer<std::int32_t> step_now = to_device(std::vector<std::int32_t>{1});
  const std::int64_t all = size_.rows * size_.tables;
  {
    const Buffer<std::int64_t> every(all);
    const Buffer<std::int32_t> rows(all);
    hash_ids<<<cuda::blocks_for(all), cuda::kThreads, 0, main_.get()>>>(nullptr, all, size_.rows,
                                                                        every.get());
    cuda::check_cuda(cudaGetLastError(), "hashing ids");
    index.find_or_add(tables_, {every.get(), cuda::IdType::kInt64, first_row_.get(), all},
                      step_now.get(), kInitial, 0.0f, rows.get(), main_.get());
    for (const cuda::IndexState& state : index.states(main_.get()))
      if (state.ids != size_.rows || state.rows != size_.rows || state.refused != 0)
        result.right = failed("the job's hashed tables lack rows");
  }
  std::vector<Buffer<std::int64_t>> ids;
  for (std::size_t set = 0; set < ids_.size(); ++set) {
    ids.emplace_back(count_);
    hash_ids<<<cuda::blocks_for(count_), cuda::kThreads, 0, main_.get()>>>(
        ids_[set].get(), count_, size_.rows, ids.back().get());
  }
  cuda::check_cuda(cudaGetLastError(), "hashing ids");
  const Buffer<std::int32_t> rows(count_);
  const cuda::Lookups found{rows.get(), cuda::IdType::kInt32, first_lookup_.get(), count_};
  const auto look_up = [&](std::size_t set) {
    index.find_or_add(tables_, {ids[set].get(), cuda::IdType::kInt64, first_lookup_.get(), count_},
                      step_now.get(), kInitial, 0.0f, rows.get(), main_.get());
  };
  look_up(0);
  forward(found);
  cuda::check_cuda(cudaStreamSynchronize(main_.get()), "the first hashed forward pass");
  result.right = forward_is_right(true) && result.right;
  step(found);
  cuda::check_cuda(cudaStreamSynchronize(main_.get()), "the first hashed step");
  const auto finds = graphs([&](std::size_t set) { look_up(set); });
  const auto steps = graphs([&](std::size_t set) {
    look_up(set);
    step(found);
  });
  const double index_bytes = 12.0 * static_cast<double>(count_) + 32.0 * result.distinct;
  result.measured.push_back(
      timed("hashed step" + of, steps, {},
            forward_bytes(result.distinct) + update_bytes(result.distinct) + index_bytes));
  if (rule_ == Rule::kSgd)
    result.measured.push_back(timed("  lookup in the index", finds, {}, index_bytes));
}

}  // namespace

double copy_bandwidth() {
  constexpr std::int64_t kBytes = std::int64_t{1} << 31;
  Buffer<std::byte> from(kBytes), to(kBytes);
  OwnStream stream;
  cuda::check_cuda(cudaMemsetAsync(from.get(), 1, kBytes, stream.get()), "filling memory");
  std::vector<Graph> copies;
  copies.emplace_back(stream.get(), [&] {
    cuda::check_cuda(
        cudaMemcpyAsync(to.get(), from.get(), kBytes, cudaMemcpyDeviceToDevice, stream.get()),
        "copying memory");
  });
  const Measured copy = time_graphs("copy", copies, {}, 20, stream.get());
  return 2.0 * static_cast<double>(kBytes) / (copy.median_ms * 1e-3);
}

std::vector<std::vector<std::int64_t>> power_law_ids(const JobSize& size) {
  std::vector<double> shares(static_cast<std::size_t>(size.rows));
  double sum = 0;
  for (std::size_t k = 0; k < shares.size(); ++k)
    shares[k] = sum += std::pow(static_cast<double>(k + 1), -size.exponent);
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> uniform(0, sum);
  std::vector<std::vector<std::int64_t>> all(static_cast<std::size_t>(size.id_sets));
  for (auto& ids : all) {
    ids.reserve(static_cast<std::size_t>(size.lookups * size.tables));
    for (std::int64_t table = 0; table < size.tables; ++table)
      for (std::int64_t i = 0; i < size.lookups; ++i) {
        const auto rank = std::min<std::int64_t>(
            size.rows - 1,
            std::upper_bound(shares.begin(), shares.end(), uniform(random)) - shares.begin());
        // 1000003 is prime and divides no table's rows, so this is a permutation.
        ids.push_back((rank * 1000003 + table * 7919) % size.rows);
      }
  }
  return all;
}

JobResult run_job(const JobSize& size, Rule rule,
                  const std::vector<std::vector<std::int64_t>>& ids) {
  JobResult result;
  Job job(size, rule, ids);
  job.run_dense(result);
  job.run_hashed(result);
  return result;
}

}  // namespace cairn::bench
