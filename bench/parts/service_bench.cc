// The cost of the data service: the wide & deep job's CSV pipeline read in this process, and
// through a dispatcher and data workers in processes of their own, in turns.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "core/base/error.h"
#include "core/base/program.h"
#include "data/dataset/dataset_iterator.h"
#include "data/file/byte_source.h"
#include "service/consumer/data_service_reader.h"
#include "testing/adult_schema.h"
#include "tools/launch/child_process.h"

namespace cairn::bench {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::size_t megabytes = 64;
  int files = 16, workers = 2, windows = 7;
  std::int64_t batch = 256;
  std::string source = testing::kAdultTrain;
  std::string compression = "off";
};

std::string read_all(const std::string& path) {
  std::string text(8 << 20, '\0');
  const auto bytes = open_bytes(path);
  std::size_t size = 0;
  for (std::size_t got; (got = bytes->read(text.data() + size, text.size() - size)) > 0;)
    size += got;
  text.resize(size);
  return text;
}

// The files of the data, and the processes of the service; both go with it.
class Service {
 public:
  explicit Service(const Options& options)
      : folder_(fs::temp_directory_path() / ("cairn_bench_service_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    write_files(options);
    start("dispatcher", {"--role", "dispatcher", "--journal", folder_ / "journal"});
    for (int i = 0; i < options.workers; ++i)
      start("worker-" + std::to_string(i), {"--role", "worker", "--dispatcher", dispatcher()});
  }
  ~Service() {
    processes_.clear();
    fs::remove_all(folder_);
  }
  Service(const Service&) = delete;

  std::string dispatcher() const { return address("dispatcher"); }
  const std::vector<std::string>& files() const { return files_; }
  NamedProcesses processes() const {
    NamedProcesses all{{"reader", ::getpid()}};
    for (std::size_t i = 0; i < processes_.size(); ++i)
      all.emplace_back(names_[i], processes_[i].pid());
    return all;
  }

 private:
  std::string address(const std::string& name) const { return "unix:" + (folder_ / name).string(); }
  void start(const std::string& name, std::vector<std::string> flags) {
    const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "cairn-data";
    tools::Command command;
    command.arguments = {program, "--listen", address(name)};
    command.arguments.insert(command.arguments.end(), flags.begin(), flags.end());
    command.output_file = folder_ / (name + ".log");
    processes_.emplace_back(command);
    names_.push_back(name);
  }
  void write_files(const Options& options) {
    const std::string text = read_all(options.source);
    const std::size_t each = (options.megabytes << 20) / static_cast<std::size_t>(options.files);
    for (int i = 0; i < options.files; ++i) {
      files_.push_back(folder_ / ("part-" + std::to_string(i) + ".csv"));
      std::ofstream out(files_.back(), std::ios::binary);
      for (std::size_t written = 0; written < each; written += text.size()) out << text;
    }
  }

  const fs::path folder_;
  std::vector<std::string> files_, names_;
  std::vector<tools::ChildProcess> processes_;
};

// Rows a second of a pass.
template <typename Reader>
double rate_of(Reader& reader, std::size_t label) {
  const auto begin = Stopwatch::now();
  std::int64_t rows = 0;
  while (const auto batch = reader.next()) rows += (*batch)[label].shape()[0];
  return static_cast<double>(rows) / seconds_since(begin);
}

service::Compression compression_of(const std::string& name) {
  return name == "zlib" ? service::Compression::kZlib : service::Compression::kOff;
}

int bench(const Options& options) {
  const Service service(options);
  const Dataset dataset = Dataset::csv(service.files(), testing::adult_schema())
                              .features(testing::adult_features())
                              .batch(options.batch);
  const std::size_t label = dataset.element_spec().find("income");
  int job = 0;
  const auto here = [&] {
    const auto iterator = open(dataset);
    return rate_of(*iterator, label);
  };
  const auto there = [&] {
    service::DataServiceOptions reading;
    reading.dispatcher = rpc::Address::parse(service.dispatcher());
    reading.job_name = "pass " + std::to_string(job++);
    reading.mode = service::ProcessingMode::kDynamic;
    reading.compression = compression_of(options.compression);
    service::DataServiceReader reader(dataset, reading);
    return rate_of(reader, label);
  };
  here(), there();  // files come into memory, and connections stand
  const auto [local, served] =
      measure_in_turns({.bench = "service",
                        .configuration = "in this process",
                        .unit = "rows/s",
                        .processes = service.processes()},
                       here,
                       {.bench = "service",
                        .configuration = str(options.workers, " data workers, batches of ",
                                             options.batch, ", compression ", options.compression),
                        .unit = "rows/s",
                        .processes = service.processes()},
                       there, options.windows);
  Report report("", "");
  report.add(local);
  report.add(served);
  report.ratio("service: through data workers, of local", served, local);
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-service", [&] {
    cairn::bench::Options options;
    CLI::App app("A CSV pipeline here, and through the data service", "cairn-bench-service");
    app.add_option("--mb", options.megabytes, "Of CSV, in all files")->capture_default_str();
    app.add_option("--files", options.files)->check(CLI::Range(1, 1000))->capture_default_str();
    app.add_option("--workers", options.workers, "Data workers")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    app.add_option("--batch", options.batch)->capture_default_str();
    app.add_option("--windows", options.windows, "Passes of each")->capture_default_str();
    app.add_option("--compression", options.compression)
        ->check(CLI::IsMember({"off", "zlib"}))
        ->capture_default_str();
    app.add_option("--source", options.source, "A CSV file of Adult's form")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    return cairn::bench::bench(options);
  });
}
