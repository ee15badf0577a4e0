// Cold rows from a disk: the row log, fio's io_uring on the same files, and RocksDB's MultiGet over
// 16 threads on the same rows, in turns:
//   cairn-bench-row-log FOLDER [--rows N] [--seconds S] [--updates X] [--no-rocksdb] ...
// The folder should lie on the disk that is meant; what is made there is removed at the end.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "bench/parts/rocks_multiget.h"
#include "core/base/error.h"
#include "core/base/program.h"
#include "core/base/random.h"
#include "storage/row_log/row_log.h"

namespace cairn::bench {
namespace {

namespace fs = std::filesystem;
using storage::IoQueue;
using storage::Place;
using storage::RowLog;

struct Options {
  std::string folder;
  std::uint64_t rows = 20'000'000;
  std::size_t row_bytes = 128, batch = 1024, depth = 128, alignment = 0;
  int windows = 3, threads = 16, in_flight = 1;
  double seconds = 4;
  double updates = 0;
  bool use_threads = false, no_rocksdb = false, no_fio = false;
};

// User and system seconds of this process; those of the kernel's threads that work for it count.
double cpu_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Batches of one way to read, of one window after the other.
struct Figures {
  std::vector<double> rates, cores, batch_ms;

  // The time of a batch is from when it is begun; `in_flight` are begun at once.
  template <typename ReadBatches>
  void window(double seconds, std::size_t batch_rows, ReadBatches read_batches) {
    const auto begin = Stopwatch::now();
    const double cpu = cpu_seconds();
    const std::size_t first = batch_ms.size();
    read_batches([&] { return seconds_since(begin) < seconds; }, batch_ms);
    const double wall = seconds_since(begin);
    rates.push_back(static_cast<double>((batch_ms.size() - first) * batch_rows) / wall);
    cores.push_back((cpu_seconds() - cpu) / wall);
  }
  double rate() { return percentile(rates, 0.5); }
  double used_cores() { return percentile(cores, 0.5); }
  void print(const std::string& name) {
    std::printf("%-44s %8.0f rows/s  batch p50 %6.2f p99 %6.2f ms  %.2f cores  (", name.c_str(),
                rate(), percentile(batch_ms, 0.5), percentile(batch_ms, 0.99), used_cores());
    for (const double each : rates) std::printf(" %.0f", each);
    std::printf(" )\n");
    std::fflush(stdout);
  }
};

// The row log, and an owner that finds the place of a key in a list.
class LogRows {
 public:
  explicit LogRows(const Options& options)
      : options_(options),
        io_({.road =
                 options.use_threads ? storage::IoRoad::kThreads : storage::IoRoad::kUringOrThreads,
             .depth = options.depth}),
        log_(io_, log_options(options),
             [this](auto moves) {
               for (const storage::Move& each : moves) places_[each.key] = each.to;
             }),
        places_(options.rows),
        random_(7) {}

  static std::string folder(const Options& options) { return options.folder + "/log"; }
  std::string road() const { return std::string(io_.road()); }
  const RowLog& log() const { return log_; }

  void fill() {
    const auto begin = Stopwatch::now();
    std::vector<std::uint64_t> keys;
    for (std::uint64_t first = 0; first < options_.rows; first += options_.batch) {
      keys.clear();
      for (std::uint64_t key = first; key < std::min(options_.rows, first + options_.batch); ++key)
        keys.push_back(key);
      append(keys);
    }
    idle();
    const double seconds = seconds_since(begin);
    std::printf("appended %.1f M rows: %.2f M rows/s, %.2f GB/s\n", millions(options_.rows),
                millions(options_.rows) / seconds,
                static_cast<double>(log_.counters().disk_bytes) / seconds * 1e-9);
  }

  // Random batches until `more` says no; some are under way at once.
  template <typename More>
  void read(More more, std::vector<double>& batch_ms) {
    int under_way = 0;
    while (more() || under_way > 0) {
      while (under_way < options_.in_flight && more()) {
        draw();
        std::vector<Place> places;
        for (const std::uint64_t key : keys_) places.push_back(places_[key]);
        ++under_way;
        const auto begun = Stopwatch::now();
        log_.read(places, keys_, [&, begun](storage::ReadRows rows) {
          if (rows.error) std::rethrow_exception(rows.error);
          batch_ms.push_back(seconds_since(begun) * 1e3);
          --under_way;
        });
      }
      io_.wait();
    }
  }

  // As many random rows as `times` the table, each batch released where it lay before.
  void update(double times) {
    const auto begin = Stopwatch::now();
    const double cpu = cpu_seconds();
    const auto updates = static_cast<std::uint64_t>(times * static_cast<double>(options_.rows));
    double most = 0;
    const std::uint64_t moved = log_.counters().moved_rows;
    for (std::uint64_t done = 0; done < updates; done += options_.batch) {
      draw();
      std::sort(keys_.begin(), keys_.end());
      keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
      append(keys_);
      io_.poll();
      most = std::max(most, space());
    }
    idle();
    const double seconds = seconds_since(begin);
    std::printf(
        "%.1f x its size in random updates: %.2f M rows/s, %.2f cores; the cleaner copied %.2f "
        "rows per update; files / live rows: at most %.3f, at the end %.3f\n",
        times, millions(updates) / seconds, (cpu_seconds() - cpu) / seconds,
        static_cast<double>(log_.counters().moved_rows - moved) / static_cast<double>(updates),
        most, space());
  }

 private:
  static storage::RowLogOptions log_options(const Options& options) {
    return {.folder = folder(options),
            .row_bytes = options.row_bytes,
            .read_alignment = options.alignment};
  }
  static double millions(std::uint64_t count) { return static_cast<double>(count) * 1e-6; }
  double space() const {
    const storage::RowLogCounters counters = log_.counters();
    return static_cast<double>(counters.disk_bytes) /
           static_cast<double>(counters.live_rows * options_.row_bytes);
  }
  void draw() {
    keys_.clear();
    for (std::size_t i = 0; i < options_.batch; ++i) keys_.push_back(random_.below(options_.rows));
  }
  void idle() {
    while (io_.under_way() > 0) io_.wait();
  }
  void append(const std::vector<std::uint64_t>& keys) {
    rows_.resize(keys.size() * options_.row_bytes, std::byte{'r'});
    new_places_.resize(keys.size());
    while (log_.room() < keys.size()) io_.wait();
    log_.append(keys, rows_, new_places_);
    old_places_.clear();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] < filled_) old_places_.push_back(places_[keys[i]]);
      places_[keys[i]] = new_places_[i];
    }
    filled_ = std::max(filled_, keys.back() + 1);
    log_.release(old_places_);
  }

  Options options_;
  IoQueue io_;
  RowLog log_;
  std::vector<Place> places_, new_places_, old_places_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::byte> rows_;
  std::uint64_t filled_ = 0;
  Random random_;
};

// Random reads of 4 KB by fio on the log's own files; nothing where fio is missing or fails.
std::optional<double> fio_iops(const Options& options, double seconds, std::vector<double>& cores) {
  std::string files;
  for (const auto& file : fs::directory_iterator(LogRows::folder(options)))
    files += (files.empty() ? "" : ":") + file.path().string();
  const std::string command =
      str("fio --name=cold --readonly --rw=randread --bs=4k --direct=1 --ioengine=io_uring "
          "--iodepth=64 --file_service_type=random --time_based --output-format=json --runtime=",
          std::max(1, static_cast<int>(seconds)), " --filename=", files, " 2>/dev/null");
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  for (char part[4096]; const std::size_t got = std::fread(part, 1, sizeof part, pipe);)
    text.append(part, got);
  if (::pclose(pipe) != 0) return std::nullopt;
  const auto json = nlohmann::json::parse(text.substr(text.find('{')), nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  const auto& job = json["jobs"][0];
  cores.push_back((job["usr_cpu"].get<double>() + job["sys_cpu"].get<double>()) / 100);
  return job["read"]["iops"].get<double>();
}

void compare(const Options& options, LogRows& log, RocksRows* rocks) {
  Figures ours, theirs;
  std::vector<double> iops, fio_cores;
  Random random(11);
  for (int window = 0; window < options.windows; ++window) {
    ours.window(options.seconds, options.batch,
                [&](auto more, std::vector<double>& batch_ms) { log.read(more, batch_ms); });
    if (!options.no_fio)
      if (const auto measured = fio_iops(options, options.seconds, fio_cores))
        iops.push_back(*measured);
    if (rocks == nullptr) continue;
    theirs.window(options.seconds, options.batch, [&](auto more, std::vector<double>& batch_ms) {
      std::vector<std::uint64_t> keys(options.batch);
      while (more()) {
        for (std::uint64_t& key : keys) key = random.below(options.rows);
        const auto begun = Stopwatch::now();
        rocks->read(keys);
        batch_ms.push_back(seconds_since(begun) * 1e3);
      }
    });
  }
  ours.print(str("row log, ", log.road(), ", ", options.in_flight, " x ", options.batch, " rows"));
  if (iops.empty()) {
    std::printf("fio is not here, or failed: no limit to compare with\n");
  } else {
    const double limit = percentile(iops, 0.5);
    std::printf("%-44s %8.0f IOPS  %.2f cores  (", "fio, io_uring, 4 KB, depth 64", limit,
                percentile(fio_cores, 0.5));
    for (const double each : iops) std::printf(" %.0f", each);
    std::printf(" )\nrow log / fio %.2f\n", ours.rate() / limit);
  }
  if (rocks == nullptr) return;
  theirs.print(str("RocksDB, MultiGet over ", options.threads, " threads"));
  std::printf("row log / RocksDB %.2f\n", ours.rate() / theirs.rate());
}

void run(const Options& options) {
  std::printf("machine: %s\n", machine().c_str());
  fs::create_directories(options.folder);
  LogRows log(options);
  log.fill();
  std::printf("reads of whole sectors of %zu bytes; O_DIRECT: %s\n", log.log().read_alignment(),
              log.log().counters().direct ? "yes" : "refused");
  const std::string folder = options.folder + "/rocksdb";
  {
    std::optional<RocksRows> rocks;
    if (!options.no_rocksdb)
      rocks.emplace(folder, options.rows, options.row_bytes, options.threads);
    compare(options, log, rocks ? &*rocks : nullptr);
  }
  fs::remove_all(folder);
  if (options.updates > 0) log.update(options.updates);
}

Options& add_flags(CLI::App& app, Options& options) {
  app.add_option("folder", options.folder, "On the disk that is meant")->required();
  app.add_option("--rows", options.rows, "Rows of the table")->capture_default_str();
  app.add_option("--row-bytes", options.row_bytes, "Bytes of a row")->capture_default_str();
  app.add_option("--batch", options.batch, "Rows of a batch")->capture_default_str();
  app.add_option("--in-flight", options.in_flight, "Batches at once")->capture_default_str();
  app.add_option("--depth", options.depth, "Reads at once")->capture_default_str();
  app.add_option("--alignment", options.alignment, "Sectors of a read; 0: the smallest")
      ->capture_default_str();
  app.add_option("--windows", options.windows, "Of each way, in turns")->capture_default_str();
  app.add_option("--seconds", options.seconds, "Of a window")->capture_default_str();
  app.add_option("--updates", options.updates, "Times its size in updates, at the end")
      ->capture_default_str();
  app.add_flag("--use-threads", options.use_threads, "Threads instead of io_uring");
  app.add_flag("--no-rocksdb", options.no_rocksdb, "Leave RocksDB out");
  app.add_flag("--no-fio", options.no_fio, "Leave fio out");
  return options;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-row-log", [&] {
    CLI::App app("Cold rows: the row log beside fio and RocksDB", "cairn-bench-row-log");
    cairn::bench::Options options;
    cairn::bench::add_flags(app, options);
    CLI11_PARSE(app, argc, argv);
    cairn::bench::run(options);
    return 0;
  });
}
