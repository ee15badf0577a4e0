// cairn-bench: whole-system benchmarks on real processes of this machine. bench/README.md says how to read them.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "bench/benches.h"
#include "core/error.h"
#include "core/log.h"

namespace cairn::bench {
namespace {

const std::vector<std::string> kNames = {"echo", "closures", "latency", "scheduling", "wide-deep", "dlrm", "ps-step"};

void add_flags(CLI::App& app, Options& options) {
  app.add_option("names", options.names, "Which ones; all of them if none is named")->check(CLI::IsMember(kNames));
  app.add_option("--json", options.json, "Append one JSON line a figure to this file");
  app.add_option("--windows", options.windows, "Measurements of each figure")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--seconds", options.seconds, "Of a window, about")->check(CLI::Range(0.01, 600.0))->capture_default_str();
  app.add_option("--ps", options.ps, "Parameter servers")->capture_default_str();
  app.add_option("--workers", options.workers, "Workers")->capture_default_str();
  app.add_option("--shards", options.shards, "Threads of a ps; 0: it chooses")->capture_default_str();
  app.add_option("--lanes", options.lanes, "Closures that a worker computes at once; 0: it chooses")->capture_default_str();
  app.add_option("--transport", options.transports, "auto, tcp, unix; several are measured in turn")->capture_default_str();
  app.add_option("--depth", options.depths, "Pipeline depths")->capture_default_str();
  app.add_option("--steps", options.steps, "wide-deep, dlrm: steps of a closure")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--prefetch", options.prefetch, "wide-deep, dlrm: batches read ahead; 0: none")->capture_default_str();
  app.add_option("--data", options.data, "wide-deep or dlrm: its records; by default a file made for the run")->check(CLI::ExistingFile);
  app.add_option("--one-device", options.one_device, "wide-deep, dlrm: measure one process as well")->capture_default_str();
  app.add_option("--seed", options.seed, "Of data and initial values")->capture_default_str();
}

void run(const Options& options, RawEcho& echo) {
  Report report(options.json);
  report.say(str("machine: ", machine()));
  if (int nice = ::getpriority(PRIO_PROCESS, 0); nice > 0)
    report.say(str("this runs at nice ", nice, ": the figures are of what others leave over, and our own load is not told from theirs"));
  for (const auto& name : options.names) {
    if (name == "echo") bench_echo(options, echo, report);
    if (name == "closures") bench_closures(options, report);
    if (name == "latency") bench_latency(options, echo, report);
    if (name == "scheduling") bench_scheduling(options, report);
    if (name == "wide-deep") bench_wide_deep(options, report);
    if (name == "dlrm") bench_dlrm(options, report);
    if (name == "ps-step") bench_ps_step(options, report);
  }
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  CLI::App app("Whole-system benchmarks on processes of this machine", "cairn-bench");
  cairn::bench::Options options;
  cairn::bench::add_flags(app, options);
  CLI11_PARSE(app, argc, argv);
  if (options.names.empty()) options.names = cairn::bench::kNames;
  try {
    cairn::bench::RawEcho echo;  // forks: before there are threads
    cairn::set_log_level(cairn::LogLevel::kWarning);
    cairn::bench::run(options, echo);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cairn-bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
