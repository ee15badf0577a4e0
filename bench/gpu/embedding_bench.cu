// Measures lookups and updates of embedding tables on one GPU, after it has compared the kernels
// with plain loops.
//
//   cairn-bench-gpu-embedding [--check-only] [--quick] [--json FILE]
//                             [--cached [--share F] [--lookahead N]]
//
//   --cached  the tables lie in the host's memory, of which Adam's take 26 GB, and a share of F
//             (0.1) of their rows in the device's; rows are moved N (4) steps ahead.
//   Exit  0; 1 if a check fails or CUDA refuses a call, and then nothing is measured.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "bench/gpu/embedding_checks.h"
#include "bench/gpu/embedding_job.h"
#include "core/kernels/cuda/embedding/launch.h"

namespace cairn::bench {
namespace {

struct Arguments {
  bool check_only = false, quick = false, cached = false;
  CachedSize cache;
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
    else if (word == "--cached")
      arguments.cached = true;
    else if (word == "--share" && i + 1 < argc)
      arguments.cache.share = std::stod(argv[++i]);
    else if (word == "--lookahead" && i + 1 < argc)
      arguments.cache.lookahead = std::stoi(argv[++i]);
    else if (word == "--json" && i + 1 < argc)
      arguments.json = argv[++i];
    else
      throw InvalidArgumentError(str("unknown argument '", word,
                                     "'; known are --check-only, --quick, --json FILE, --cached, "
                                     "--share F and --lookahead N"));
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

// `content`: what stands between the braces.
void write_json(const Arguments& arguments, const std::string& content) {
  if (arguments.json.empty()) return;
  std::ofstream file(arguments.json);
  file << "{" << content << "}\n";
  file.close();
  if (!file) throw UnknownError(str("cannot write ", arguments.json));
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
  write_json(arguments,
             str("\"device\": \"", device, "\", \"copy_bytes_per_s\": ", bandwidth,
                 ", \"distinct_rows\": ", distinct, ", \"measured\": [\n  ", measured, "]"));
}

void measure_cached(const Arguments& arguments, const std::string& device) {
  JobSize size;
  size.id_sets = 96;  // as many as steps, so that none is repeated while the steps are measured
  size.replays = arguments.quick ? 16 : 48;
  const double bus = bus_bandwidth();
  std::printf("bus: %.1f GB/s each way at the same time\n", bus / 1e9);
  const auto ids = power_law_ids(size);
  std::string measured;
  for (const cuda::Rule rule : {cuda::Rule::kSgd, cuda::Rule::kAdam}) {
    const CachedResult result = run_cached_job(size, arguments.cache, rule, ids);
    if (!result.right) throw InternalError("the measured job computes something else");
    const double in = result.read * result.row_bytes, out = result.written * result.row_bytes;
    std::printf(
        "cache of %.3g of the rows, lookahead %d; rows per step: %.0f found, %.0f read, "
        "%.0f written; %.0f MB in, %.0f MB out, %.2f ms of the bus\n",
        arguments.cache.share, arguments.cache.lookahead, result.found, result.read, result.written,
        in / 1e6, out / 1e6, std::max(in, out) / bus * 1e3);
    for (const Measured& one : result.measured) {
      print(one, 0);
      measured += (measured.empty() ? "" : ",\n  ") + json(one);
    }
    measured +=
        str(",\n  {\"name\": \"rows\", \"found\": ", result.found, ", \"read\": ", result.read,
            ", \"written\": ", result.written, ", \"row_bytes\": ", result.row_bytes, "}");
  }
  write_json(arguments, str("\"device\": \"", device, "\", \"bus_bytes_per_s\": ", bus,
                            ", \"share\": ", arguments.cache.share, ", \"lookahead\": ",
                            arguments.cache.lookahead, ", \"measured\": [\n  ", measured, "]"));
}

int run(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  cudaDeviceProp device{};
  cuda::check_cuda(cudaGetDeviceProperties(&device, 0), "asking for the device");
  std::printf("%s, %d multiprocessors, %.0f GB\n", device.name, device.multiProcessorCount,
              static_cast<double>(device.totalGlobalMem) / 1e9);
  const int wrong = check_embedding_tables() + check_hashed_tables() + check_cached_tables();
  if (wrong > 0) throw InternalError(str(wrong, " checks failed"));
  if (arguments.check_only) return 0;
  arguments.cached ? measure_cached(arguments, device.name) : measure(arguments, device.name);
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
