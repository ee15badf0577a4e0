// Measures lookups and updates of embedding tables that live on one GPU, after it has compared the
// kernels with plain loops.
//
//   cairn-bench-gpu-embedding [--check-only] [--quick] [--json FILE]
//
//   Exit  0; 1 if a check fails or CUDA refuses a call, and then nothing is measured.
#include <cstdio>
#include <fstream>
#include <string>

#include "bench/gpu/embedding_checks.h"
#include "bench/gpu/embedding_job.h"
#include "core/kernels/cuda/embedding/launch.h"

namespace cairn::bench {
namespace {

struct Arguments {
  bool check_only = false, quick = false;
  std::string json;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--check-only")
      arguments.check_only = true;
    else if (word == "--quick")
      arguments.quick = true;
    else if (word == "--json" && i + 1 < argc)
      arguments.json = argv[++i];
    else
      throw InvalidArgumentError(
          str("unknown argument '", word, "'; known are --check-only, --quick and --json FILE"));
  }
  return arguments;
}

void print(const Measured& one, double bandwidth) {
  std::printf("%-32s %8.3f %8.3f %8.3f", one.name.c_str(), one.median_ms, one.min_ms, one.max_ms);
  if (one.bytes > 0) {
    const double rate = one.bytes / (one.median_ms * 1e-3);
    std::printf(" %9.0f %7.0f%%", one.bytes / 1e6, 100 * rate / bandwidth);
  }
  std::printf("\n");
  std::fflush(stdout);
}

std::string json(const Measured& one) {
  return str("{\"name\": \"", one.name.substr(one.name.find_first_not_of(' ')),
             "\", \"median_ms\": ", one.median_ms, ", \"min_ms\": ", one.min_ms,
             ", \"max_ms\": ", one.max_ms, ", \"bytes\": ", one.bytes, "}");
}

void measure(const Arguments& arguments, const std::string& device) {
  JobSize size;
  if (arguments.quick) size.replays = 20;
  const double bandwidth = copy_bandwidth();
  std::printf("device copy: %.0f GB/s, read and written\n", bandwidth / 1e9);
  const auto ids = power_law_ids(size);
  std::string measured;
  double distinct = 0;
  for (const cuda::Rule rule : {cuda::Rule::kSgd, cuda::Rule::kAdam}) {
    const JobResult result = run_job(size, rule, ids);
    if (!result.right) throw InternalError("the measured job computes something else");
    if (rule == cuda::Rule::kSgd)
      std::printf(
          "%d tables x %lld rows x %d, %lld lookups, %.0f distinct, %d replays\n%-32s %8s"
          " %8s %8s %9s %8s\n",
          size.tables, static_cast<long long>(size.rows), size.dim,
          static_cast<long long>(size.lookups * size.tables), result.distinct, size.replays, "",
          "median", "min", "max ms", "MB", "of copy");
    for (const Measured& one : result.measured) {
      print(one, bandwidth);
      measured += (measured.empty() ? "" : ",\n  ") + json(one);
    }
    distinct = result.distinct;
  }
  if (arguments.json.empty()) return;
  std::ofstream file(arguments.json);
  file << "{\"device\": \"" << device << "\", \"copy_bytes_per_s\": " << bandwidth
       << ", \"distinct_rows\": " << distinct << ", \"measured\": [\n  " << measured << "]}\n";
  file.close();
  if (!file) throw UnknownError(str("cannot write ", arguments.json));
}

int run(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  cudaDeviceProp device{};
  cuda::check_cuda(cudaGetDeviceProperties(&device, 0), "asking for the device");
  std::printf("%s, %d multiprocessors, %.0f GB\n", device.name, device.multiProcessorCount,
              static_cast<double>(device.totalGlobalMem) / 1e9);
  const int wrong = check_embedding_tables() + check_hashed_tables();
  if (wrong > 0) throw InternalError(str(wrong, " checks failed"));
  if (!arguments.check_only) measure(arguments, device.name);
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  try {
    return cairn::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cairn-bench-gpu-embedding: %s\n", error.what());
    return 1;
  }
}
