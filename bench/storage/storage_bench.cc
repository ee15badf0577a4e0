// Checkpoints of a DLRM under Adagrad, five tables of which every row was touched: how fast they
// are written while nothing trains and while training goes on, what that does to the steps, and how
// the memory of the ps goes up and down.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "bench/benches.h"
#include "bench/cluster.h"
#include "bench/storage/sst_writer.h"
#include "core/base/machine.h"
#include "core/base/random.h"
#include "nn/nn.h"

namespace cairn::bench {
namespace {

constexpr std::int64_t kSavedTables = 5, kSavedDim = 32, kSavedBatch = 2048, kClickNumbers = 13;
constexpr double kGigabyte = 1e9, kMega = 1 << 20;

class SavedJob {
 public:
  SavedJob(Cluster& cluster, const Options& options)
      : coordinator_(cluster.coordinator()),
        rows_(options.storage.table_rows),
        random_(options.seed) {
    nn::ClickModelOptions model{.dim = kSavedDim, .bottom = {64}, .top = {256, 64}};
    for (std::int64_t i = 0; i < kSavedTables; ++i)
      model.tables.push_back({str("table", i), rows_});
    model_ = std::make_unique<nn::ClickModel>(model);
    step_ = cluster.strategy().function(
        [this](const Array& numbers, const Array& ids, const Array& labels) {
          std::vector<Array> columns = split(ids, kSavedTables, 1);
          std::vector<nn::Ids> each;
          for (Array& column : columns) each.push_back({reshape(column, {-1})});
          adagrad_.minimize(mean(nn::sigmoid_cross_entropy((*model_)(numbers, each), labels)));
        },
        "step");
  }
  // Every row once.
  void touch_all() {
    for (std::int64_t begin = 0; begin < rows_; begin += kSavedBatch) {
      schedule([&](std::size_t i) {
        return std::min(rows_ - 1, begin + static_cast<std::int64_t>(i) / kSavedTables);
      });
      if (begin % (64 * kSavedBatch) == 0) coordinator_.join();
    }
    coordinator_.join();
  }
  // Steps of random rows as long as `goes_on`; steps a second.
  template <typename GoesOn>
  double train(GoesOn goes_on) {
    const auto begin = Stopwatch::now();
    int steps = 0;
    for (; goes_on(seconds_since(begin)); steps += kAtOnce) train_steps(kAtOnce);
    return steps / seconds_since(begin);
  }
  void train_steps(std::int64_t steps) {
    for (; steps > 0; --steps)
      schedule([&](std::size_t) {
        return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(rows_)));
      });
    coordinator_.join();
  }

 private:
  static constexpr int kAtOnce = 8;

  template <typename IdOf>
  void schedule(IdOf id_of) {
    std::vector<std::int64_t> ids(kSavedBatch * kSavedTables);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = id_of(i);
    coordinator_.schedule(
        step_, {numbers_, Tensor::of<std::int64_t>({kSavedBatch, kSavedTables}, ids), labels_});
  }

  ClusterCoordinator& coordinator_;
  std::int64_t rows_;
  Random random_;
  std::unique_ptr<nn::ClickModel> model_;
  nn::Adagrad adagrad_{{.learning_rate = 0.01f}};
  Function step_;
  const Tensor numbers_ = Tensor::of<float>({kSavedBatch, kClickNumbers},
                                            std::vector<float>(kSavedBatch* kClickNumbers, 0.5f));
  const Tensor labels_ = Tensor::of<float>({kSavedBatch, 1}, std::vector<float>(kSavedBatch, 1.0f));
};

// Bytes that the process has read from disks: /proc/PID/io.
double bytes_read_from_disk(pid_t pid) {
  std::ifstream io(str("/proc/", pid, "/io"));
  double bytes = 0;
  for (std::string name; io >> name >> bytes;)
    if (name == "read_bytes:") return bytes;
  return 0;
}

pid_t ps_of(const Cluster& cluster) {
  for (const auto& [name, pid] : cluster.processes())
    if (name.starts_with("ps")) return pid;
  return 0;
}

std::size_t bytes_in(const std::string& folder) {
  std::size_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
    if (file.is_regular_file()) bytes += file.file_size();
  return bytes;
}

// One save on a thread of its own, watched.
struct WatchedSave {
  double seconds = 0, top_megabytes = 0, bytes = 0;

  template <typename Meanwhile>
  WatchedSave(Cluster& cluster, const std::string& folder, Meanwhile meanwhile) {
    const pid_t ps = ps_of(cluster);
    std::atomic<bool> saved = false;
    std::string checkpoint;
    std::thread saving([&] {
      const auto begin = Stopwatch::now();
      checkpoint = cluster.coordinator().save({.folder = folder, .keep_last = 1});
      seconds = seconds_since(begin);
      saved = true;
    });
    std::thread watching([&] {
      while (!saved) {
        top_megabytes =
            std::max(top_megabytes, static_cast<double>(private_memory_bytes(ps)) / kMega);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
    meanwhile([&](double) { return !saved; });
    saving.join();
    watching.join();
    bytes = static_cast<double>(bytes_in(checkpoint));
  }
};

// Bytes that the checkpoint wrote itself: the others are linked to from the one before.
std::size_t own_bytes_in(const std::string& checkpoint) {
  std::size_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(checkpoint))
    if (file.is_regular_file() && std::filesystem::hard_link_count(file) == 1)
      bytes += file.file_size();
  return bytes;
}

class Figures {
 public:
  void add(const std::string& what, double value) { all_[what].push_back(value); }
  double median(const std::string& what) { return percentile(all_.at(what), 0.5); }
  void report(Report& report) {
    for (auto& [what, values] : all_)
      report.figure("storage: " + what, percentile(values, 0.5), what.substr(what.rfind(',') + 2));
  }

 private:
  std::map<std::string, std::vector<double>> all_;
};

template <typename Work>
double seconds_of(Work work) {
  const auto begin = Stopwatch::now();
  work();
  return seconds_since(begin);
}

// A full checkpoint and ten deltas, before each of which about 1 % of the rows change; then both
// are restored, from a warm disk.
void measure_deltas(Cluster& cluster, SavedJob& job, std::int64_t table_rows, Figures& figures) {
  constexpr int kDeltas = 10;
  const TemporaryFolder folder;
  ClusterCoordinator& coordinator = cluster.coordinator();
  const auto save = [&](std::string& checkpoint) {
    return seconds_of([&] {
      checkpoint = coordinator.save(
          {.folder = folder.path(), .keep_last = kDeltas + 1, .full_every = kDeltas + 1});
    });
  };
  std::string full, last;
  const double full_seconds = save(full);
  const auto full_bytes = static_cast<double>(own_bytes_in(full));
  for (int delta = 0; delta < kDeltas; ++delta) {
    job.train_steps(std::max<std::int64_t>(1, table_rows / 100 / kSavedBatch));
    const double seconds = save(last);
    figures.add("delta after 1 % changed, seconds, of a full one, ratio", seconds / full_seconds);
    figures.add("delta after 1 % changed, bytes, of a full one, ratio",
                static_cast<double>(own_bytes_in(last)) / full_bytes);
  }
  coordinator.restore(last);  // the memory of what follows is the process's already
  const double of_full = seconds_of([&] { coordinator.restore(full); });
  const double of_deltas = seconds_of([&] { coordinator.restore(last); });
  figures.add("restored, a full one, GB/s", full_bytes / kGigabyte / of_full);
  figures.add("restored, with ten deltas, seconds, of a full one, ratio", of_deltas / of_full);
}

// Afterwards the files are read from the disk.
void forget_cache(const std::string& folder) {
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (!file.is_regular_file()) continue;
    const int fd = ::open(file.path().c_str(), O_RDONLY);
    ::fdatasync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

// How long it takes until the first step after a restore has ended: of all rows first, and on
// demand; and how many steps are taken in the time that the former takes.
void measure_on_demand(Cluster& cluster, SavedJob& job, Figures& figures) {
  const TemporaryFolder folder;
  ClusterCoordinator& coordinator = cluster.coordinator();
  const std::string saved = coordinator.save({.folder = folder.path()});
  coordinator.restore(saved);  // the memory of what follows is the process's already
  for (const std::string disk : {"warm", "cold"}) {
    const auto first_step = [&](bool on_demand) {
      if (disk == "cold") forget_cache(saved);
      return seconds_of([&] {
        coordinator.restore(saved, {.on_demand = on_demand});
        job.train_steps(1);
      });
    };
    const double whole = first_step(false), on_demand = first_step(true);
    figures.add(str("restored, first step, ", disk, " disk, s"), whole);
    figures.add(str("restored on demand, first step, ", disk, " disk, s"), on_demand);
    figures.add(str("restored on demand, first step, ", disk, " disk, of the whole, ratio"),
                on_demand / whole);
    const double rest = seconds_of([&] { coordinator.save({.folder = folder.path()}); });
    figures.add(str("restored on demand, then saved, ", disk, " disk, s"), on_demand + rest);
  }
}

}  // namespace

// A window is a save of each kind, and ten seconds of training afterwards.
void bench_storage(const Options& options, Limits&, Report& report) {
  Cluster cluster(options, {.transport = options.transports.front()});
  const Scope scope = cluster.strategy().scope();
  SavedJob job(cluster, options);
  job.touch_all();
  const TemporaryFolder folder;
  const pid_t ps = ps_of(cluster);
  const auto memory = [ps] { return static_cast<double>(private_memory_bytes(ps)) / kMega; };
  const auto for_seconds = [](double seconds) {
    return [seconds](double passed) { return passed < seconds; };
  };
  job.train(for_seconds(options.seconds));
  Figures figures;
  const int saves = options.storage.only_restore ? 0 : options.windows;
  for (int window = 0; window < saves; ++window) {
    const double read_before = bytes_read_from_disk(ps);
    const WatchedSave alone(cluster, folder.path(), [](auto goes_on) {
      while (goes_on(0)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
    figures.add("saved, nothing trains, GB/s", alone.bytes / kGigabyte / alone.seconds);
    const double before = job.train(for_seconds(2 * options.seconds)), memory_before = memory();
    double during = 0;
    const WatchedSave beside(cluster, folder.path(),
                             [&](auto goes_on) { during = job.train(goes_on); });
    figures.add("saved while training, GB/s", beside.bytes / kGigabyte / beside.seconds);
    figures.add("steps before a save, steps/s", before);
    figures.add("steps during a save, of before, ratio", during / before);
    figures.add("cut, ms", cluster.coordinator().stats().last_cut_seconds * 1e3);
    figures.add("ps before a save, MB", memory_before);
    figures.add("ps at the top of a save, of before, ratio", beside.top_megabytes / memory_before);
    job.train(for_seconds(10));
    figures.add("ps ten seconds after a save, of before, ratio", memory() / memory_before);
    figures.add("read from the disk by the ps, of what was written, ratio",
                (bytes_read_from_disk(ps) - read_before) / (alone.bytes + beside.bytes));
    const TemporaryFolder limit;
    figures.add("SstFileWriter alone, GB/s",
                alone.bytes / kGigabyte /
                    sst_writer_seconds(limit.path(), static_cast<std::size_t>(alone.bytes)));
  }
  if (!options.storage.only_restore)
    measure_deltas(cluster, job, options.storage.table_rows, figures);
  for (int window = 0; window < options.windows; ++window) measure_on_demand(cluster, job, figures);
  figures.report(report);
  if (options.storage.only_restore) return;
  const double limit = figures.median("SstFileWriter alone, GB/s");
  report.figure("storage: saved, nothing trains, of SstFileWriter alone",
                figures.median("saved, nothing trains, GB/s") / limit);
  report.figure("storage: saved while training, of SstFileWriter alone",
                figures.median("saved while training, GB/s") / limit);
}

}  // namespace cairn::bench
