// A table that is larger than the memory of its ps: steps on ids of a power law while all rows are
// in memory, and while most lie on the disk.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "bench/benches.h"
#include "bench/cluster.h"
#include "core/base/json.h"
#include "core/base/machine.h"
#include "core/base/random.h"
#include "core/graph/ops.h"
#include "nn/nn.h"

namespace cairn::bench {
namespace {

constexpr std::int64_t kColdDim = 16, kColdBatch = 1024, kColdColumns = 8;
constexpr std::int64_t kColdNumbers = 1 << 20;  // that ids are made from
constexpr double kColdMega = 1e6;

// Ids of a power law, 1.05, from numbers of [0, 1) that a step shifts by its own: its cumulative
// distribution, taken as continuous, turned round.
Array ids_of(const Array& uniform, const Array& shift, std::int64_t keys) {
  constexpr double kExponent = 0.05;
  const auto tail = static_cast<float>(1 - std::pow(static_cast<double>(keys), -kExponent));
  const Array shifted = uniform + shift;
  const Array at = (shifted - floor(shifted)) * tail;
  const Array rank = exp(log(1.0f - at) * static_cast<float>(-1 / kExponent));
  return minimum(cast(rank, DType::kInt64), Array(Tensor::scalar(keys))) -
         Array(Tensor::scalar(std::int64_t{1}));
}

class ColdJob {
 public:
  ColdJob(const Options& options, const std::string& memory_limit)
      : keys_(options.storage.table_rows),
        cluster_(options, {.transport = options.transports.front(),
                           .depth = options.depths.front(),
                           .memory_limit = memory_limit}),
        scope_(cluster_.strategy().scope()),
        table_({.name = "table", .rows = std::int64_t{1} << 40, .dim = kColdDim, .hashed = true}) {
    ClusterCoordinator& coordinator = cluster_.coordinator();
    ids_ = coordinator.create_per_worker_dataset([options](const InputContext&) {
      Random random(options.seed);
      std::vector<float> numbers(kColdNumbers * kColdColumns);
      for (float& number : numbers) number = random.uniform();
      return Dataset::from_tensor_slices(
                 {{"uniform", Tensor::of<float>({kColdNumbers, kColdColumns}, numbers)}})
          .batch(kColdBatch)
          .repeat()
          .prefetch(2);
    });
    all_ = coordinator.create_per_worker_dataset([this](const InputContext&) {
      return Dataset::range(keys_).batch(kColdBatch * kColdColumns).repeat().prefetch(2);
    });
    step_ = cluster_.strategy().function(
        [this](const Array& shift, Iterator input) {
          learn(ids_of(reshape(input.get_next().features["uniform"], {-1}), shift, keys_));
        },
        "step");
    touch_ = cluster_.strategy().function(
        [this](Iterator input) { learn(input.get_next().features["value"]); }, "touch");
  }

  void touch_all() { touch(keys_); }
  // Examples a second.
  double train(double seconds) {
    return train_while([seconds](double passed) { return passed < seconds; });
  }
  // The same while a checkpoint is written, and how long that took.
  std::pair<double, double> train_beside_a_save() {
    const TemporaryFolder folder;
    std::atomic<bool> saved = false;
    double seconds = 0;
    std::thread saving([&] {
      const auto begin = Stopwatch::now();
      cluster_.coordinator().save({.folder = folder.path(), .keep_last = 1});
      seconds = seconds_since(begin);
      saved = true;
    });
    const double rate = train_while([&](double) { return !saved; });
    saving.join();
    return {rate, seconds};
  }
  // The bytes and the time of a delta after a hundredth of the rows has changed, of those of the
  // full checkpoint before it.
  std::pair<double, double> delta_of_a_hundredth() {
    const TemporaryFolder folder;
    const auto save = [&] {
      const auto begin = Stopwatch::now();
      const std::string made =
          cluster_.coordinator().save({.folder = folder.path(), .keep_last = 2, .full_every = 10});
      return std::pair(own_bytes(made), seconds_since(begin));
    };
    const auto [full_bytes, full_seconds] = save();
    touch(keys_ / 100);
    const auto [bytes, seconds] = save();
    return {bytes / full_bytes, seconds / full_seconds};
  }
  std::int64_t examples() const { return examples_; }  // trained on
  double ps_megabytes() const {
    double most = 0;
    for (const auto& [name, pid] : cluster_.processes())
      if (name.starts_with("ps"))
        most = std::max(most, static_cast<double>(private_memory_bytes(pid)) / kColdMega);
    return most;
  }
  double ps_megabytes_at_most() const {
    double most = 0;
    for (const auto& [name, pid] : cluster_.processes()) {
      if (!name.starts_with("ps")) continue;
      std::ifstream status(str("/proc/", pid, "/status"));
      for (std::string word; status >> word;)
        if (double kilobytes = 0; word == "VmHWM:" && status >> kilobytes)
          most = std::max(most, kilobytes * 1024 / kColdMega);
    }
    return most;
  }
  // The sum of a counter over all shards, once the status has been polled anew.
  double counted(const char* name) {
    train(1.5);
    double sum = 0;
    const Json status = Json::parse(cluster_.coordinator().status_json());
    for (const Json& ps : status.at("ps"))
      for (const Json& shard : ps.at("details").at("shards")) sum += shard.at(name).get<double>();
    return sum;
  }

 private:
  static constexpr int kAtOnce = 32;

  template <typename GoesOn>
  double train_while(GoesOn goes_on) {
    const auto begin = Stopwatch::now();
    std::int64_t steps = 0;
    while (goes_on(seconds_since(begin))) {
      for (int i = 0; i < kAtOnce; ++i, ++steps) {
        shift_ = std::fmod(shift_ + 0.618034f, 1.0f);
        cluster_.coordinator().schedule(step_, {Tensor::scalar(shift_), ids_});
      }
      join();
    }
    examples_ += steps * kColdBatch;
    return static_cast<double>(steps * kColdBatch) / seconds_since(begin);
  }

  // The next of these keys, which begin anew behind the last one.
  void touch(std::int64_t keys) {
    constexpr std::int64_t kEach = kColdBatch * kColdColumns;
    for (std::int64_t step = 0; step < (keys + kEach - 1) / kEach; ++step)
      cluster_.coordinator().schedule(touch_, {all_});
    join();
  }
  // Without what a delta has of its base's files.
  static double own_bytes(const std::string& checkpoint) {
    double bytes = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(checkpoint))
      if (file.is_regular_file() && file.hard_link_count() == 1)
        bytes += static_cast<double>(file.file_size());
    return bytes;
  }

  void learn(const Array& ids) { adagrad_.minimize(mean(square(table_(ids) - 1.0f))); }
  void join() { cluster_.coordinator().join(); }

  std::int64_t keys_, examples_ = 0;
  float shift_ = 0;
  Cluster cluster_;
  Scope scope_;
  nn::Embedding table_;
  nn::Adagrad adagrad_{{.learning_rate = 0.01f}};
  PerWorkerDatasetHandle ids_, all_;
  Function step_, touch_;
};

}  // namespace

void bench_cold_rows(const Options& options, Limits&, Report& report) {
  const double seconds = options.seconds * options.windows;
  const auto measure = [&](const std::string& what, const std::string& limit) {
    ColdJob job(options, limit);
    const auto begin = Stopwatch::now();
    job.touch_all();
    report.figure("cold rows: " + what + ", every row once, s", seconds_since(begin));
    job.train(seconds);
    const std::int64_t examples = job.examples();
    const double fetched = job.counted("fetched_rows"), pulled = job.counted("pulled_rows");
    const double rate = job.train(seconds);
    const double misses = (job.counted("fetched_rows") - fetched) /
                          std::max(1.0, job.counted("pulled_rows") - pulled);
    report.figure(
        "cold rows: " + what + ", rows read from the disk, an example",
        (job.counted("fetched_rows") - fetched) / static_cast<double>(job.examples() - examples));
    report.figure("cold rows: " + what + ", examples/s", rate);
    report.figure("cold rows: " + what + ", rows read from the disk, of those pulled", misses);
    report.figure("cold rows: " + what + ", rows on the disk alone", job.counted("rows_on_disk"));
    const auto [beside, save_seconds] = job.train_beside_a_save();
    report.figure("cold rows: " + what + ", examples/s beside a save, of before", beside / rate);
    report.figure("cold rows: " + what + ", the save, s", save_seconds);
    const auto [bytes, time] = job.delta_of_a_hundredth();
    report.figure("cold rows: " + what + ", a delta of 1 %, its bytes, of the full one's", bytes);
    report.figure("cold rows: " + what + ", a delta of 1 %, its time, of the full one's", time);
    report.figure("cold rows: " + what + ", ps, MB", job.ps_megabytes());
    report.figure("cold rows: " + what + ", ps at its top, MB", job.ps_megabytes_at_most());
    return rate;
  };
  if (options.storage.only_limited) {
    measure("limit " + options.storage.memory_limit, options.storage.memory_limit);
    return;
  }
  const double in_memory = measure("no limit", "none");
  const double fits = measure("a limit that all fits in", "20 GB");
  const double limited =
      measure("limit " + options.storage.memory_limit, options.storage.memory_limit);
  report.figure("cold rows: with a limit that all fits in, of no limit", fits / in_memory);
  report.figure("cold rows: with the limit, of no limit", limited / in_memory);
}

}  // namespace cairn::bench
