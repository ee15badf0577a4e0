// cairn-bench: whole-system benchmarks on real processes of this machine. bench/README.md says how
// to read them.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>

#include "bench/benches.h"
#include "bench/cluster.h"
#include "bench/trace.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/program.h"
#include "core/disk/trace.h"

namespace cairn::bench {
namespace {

struct Benchmark {
  const char* name;
  void (*run)(const Options&, Limits&, Report&);
};
constexpr Benchmark kBenchmarks[] = {{"limits", bench_limits},
                                     {"echo", bench_echo},
                                     {"closures", bench_closures},
                                     {"latency", bench_latency},
                                     {"scheduling", bench_scheduling},
                                     {"wide-deep", bench_wide_deep},
                                     {"dlrm", bench_dlrm},
                                     {"hybrid", bench_hybrid},
                                     {"ps-step", bench_ps_step},
                                     {"dense", bench_dense},
                                     {"collective", bench_collective},
                                     {"growth", bench_growth},
                                     {"memory", bench_memory},
                                     {"storage", bench_storage},
                                     {"cold-rows", bench_cold_rows},
                                     {"turnover", bench_turnover}};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Benchmark& each : kBenchmarks) all.emplace_back(each.name);
  return all;
}

void add_flags(CLI::App& app, Options& options) {
  app.add_option("names", options.names, "Which ones; all of them if none is named")
      ->check(CLI::IsMember(names()));
  app.add_option("--json", options.records.json, "Append one JSON line a figure to this file");
  app.add_option("--trace", options.records.trace,
                 "Write the newest steps of all processes to this file, in Chrome's trace format");
  app.add_option("--commit", options.records.commit, "With --json: what was built");
  app.add_option("--windows", options.windows, "Measurements of each figure")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "Of a window, about")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  app.add_option("--ps", options.ps, "Parameter servers")->capture_default_str();
  app.add_option("--workers", options.workers, "Workers")->capture_default_str();
  app.add_option("--shards", options.shards, "Threads of a ps; 0: auto")->capture_default_str();
  app.add_option("--lanes", options.lanes, "Closures that a worker computes at once; 0: auto")
      ->capture_default_str();
  app.add_option("--transport", options.transports, "auto, tcp, unix; several are measured in turn")
      ->capture_default_str();
  app.add_flag("--bf16-wire", options.bfloat16.wire, "Rows and gradients travel as bfloat16");
  app.add_flag("--bf16-arithmetic", options.bfloat16.products, "Matrix products in bfloat16");
  app.add_option("--depth", options.depths, "Pipeline depths")->capture_default_str();
  app.add_option("--steps", options.steps, "wide-deep, dlrm: steps of a closure")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--prefetch", options.prefetch, "wide-deep, dlrm: batches read ahead; 0: none")
      ->capture_default_str();
  app.add_option("--batch", options.batch, "wide-deep, dlrm: examples of a step; 0: 256 and 2048")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--memory-limit", options.storage.memory_limit, "cold-rows: of the ps")
      ->capture_default_str();
  app.add_flag("--only-limited", options.storage.only_limited,
               "cold-rows: not the runs to compare with");
  app.add_flag("--only-restore", options.storage.only_restore,
               "storage: restoring on demand alone");
  app.add_option(
         "--table-rows", options.storage.table_rows,
         "storage: rows of each of its five tables; cold-rows: the keys of its one; turnover: new "
         "ids")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--of", options.growth, "growth: of what")
      ->check(CLI::IsMember({"workers", "rows", "batch"}))
      ->capture_default_str();
  app.add_option("--data", options.data,
                 "wide-deep or dlrm: its records; by default a file made for the run")
      ->check(CLI::ExistingFile);
  app.add_option("--one-device", options.one_device, "wide-deep, dlrm: measure one process as well")
      ->capture_default_str();
  app.add_flag("--check-replicas", options.check_replicas,
               "hybrid: compare the workers' copies after each step, which costs time");
  app.add_option("--seed", options.seed, "Of data and initial values")->capture_default_str();
}

void run(const Options& options) {
  Report report(options.records.json, options.records.commit);
  Limits limits(options, report);  // forks: before there are threads
  set_log_level(LogLevel::kWarning);
  report.say(str("machine: ", machine()));
  if (int nice = ::getpriority(PRIO_PROCESS, 0); nice > 0)
    report.say(str(
        "this runs at nice ", nice,
        ": the figures are of what others leave over, and our own load is not told from theirs"));
  for (const auto& name : options.names)
    for (const Benchmark& each : kBenchmarks)
      if (name == each.name) each.run(options, limits, report);
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench", [&] {
    CLI::App app("Whole-system benchmarks on processes of this machine", "cairn-bench");
    cairn::bench::Options options;
    cairn::bench::add_flags(app, options);
    CLI11_PARSE(app, argc, argv);
    if (options.names.empty()) options.names = cairn::bench::names();
    std::optional<cairn::bench::TemporaryFolder> traces;
    if (!options.records.trace.empty()) cairn::start_trace(traces.emplace().path());
    cairn::bench::run(options);
    if (!traces) return 0;
    cairn::write_trace();
    cairn::bench::join_traces(traces->path(), options.records.trace);
    std::printf("the newest steps of all processes: %s, for ui.perfetto.dev\n",
                options.records.trace.c_str());
    return 0;
  });
}
