// How fast files of examples become batches, on one core: cairn-bench-reading [MB [BESIDE]]. Each
// line is the median of five passes in MB of the file a second of processor time, from the file's
// bytes (which the system has in memory) to batches of 256. BESIDE is a command that reads the same
// file with another system, called with the form of the file and its path:
//   cairn-bench-reading 100 "python3 bench/parts/reading_tf.py"
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "core/base/program.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"
#include "data/file/tfrecord_writer.h"
#include "data/format/criteo_like.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

// A file of the made-up click log, in some format, of at least so many bytes.
class Log {
 public:
  Log(std::size_t bytes, const std::function<std::string(const CriteoExample&)>& format)
      : path_(fs::temp_directory_path() / ("cairn_bench_reading_" + std::to_string(::getpid()))) {
    const CriteoLike clicks({.seed = 1, .table_rows = criteo_table_rows(100'000)});
    std::string text;
    // Rows repeat, since drawing them costs more than writing them.
    for (std::int64_t row = 0; row < 20'000; ++row) text += format(clicks.example(row));
    std::ofstream out(path_, std::ios::binary);
    for (std::size_t written = 0; written < bytes; written += text.size()) out << text;
  }
  ~Log() { fs::remove(path_); }
  Log(const Log&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::string beside;

void measure(const char* what, const char* form, const Dataset& dataset, const std::string& path) {
  std::vector<double> rates;
  std::int64_t rows = 0;
  for (int pass = 0; pass < 5; ++pass) {
    const std::clock_t begin = std::clock();
    rows = 0;
    const auto iterator = open(dataset.batch(256));
    const std::size_t label = iterator->element_spec().find("label");
    while (auto batch = iterator->next()) rows += (*batch)[label].shape()[0];
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    rates.push_back(static_cast<double>(fs::file_size(path)) / 1e6 / seconds);
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%-52s %6.0f MB/s  (%.0f to %.0f, %lld rows)\n", what, rates[2], rates.front(),
              rates.back(), static_cast<long long>(rows));
  std::fflush(stdout);
  const std::string other = beside + " " + form + " " + path;
  if (!beside.empty() && std::system(other.c_str()) != 0)
    std::printf("    this failed: %s\n", other.c_str());
}

std::string tsv(const CriteoExample& click) {
  std::string line = click.label > 0 ? "1" : "0";
  for (const std::int32_t count : click.counts) line += "\t" + std::to_string(count);
  char digits[16];
  for (const std::int32_t id : click.ids) {
    std::snprintf(digits, sizeof digits, "\t%08x", static_cast<unsigned>(id));
    line += digits;
  }
  return line + "\n";
}

std::string libsvm(const CriteoExample& click, bool real) {
  std::string line = click.label > 0 ? "1" : "0";
  for (std::size_t i = 0; i < kCriteoCounts; ++i) {
    char value[32];
    std::snprintf(value, sizeof value, real ? " %zu:%.6f" : " %zu:%.0f", i + 1,
                  static_cast<double>(click.counts[i]) * (real ? 0.618034 : 1));
    line += value;
  }
  for (std::size_t i = 0; i < kCriteoIds; ++i)
    line += " " + std::to_string(100 + i * 100'000 + static_cast<std::size_t>(click.ids[i])) + ":1";
  return line + "\n";
}

// Features of one value each, as Criteo's logs are mostly stored.
std::string example_of_scalars(const CriteoExample& click) {
  ExampleMessage message;
  message.floats("label", {click.label});
  for (std::size_t i = 0; i < kCriteoCounts; ++i)
    message.floats("I" + std::to_string(i + 1), {static_cast<float>(click.counts[i])});
  for (std::size_t i = 0; i < kCriteoIds; ++i)
    message.integers("C" + std::to_string(i + 1), {click.ids[i]});
  return framed(message.bytes());
}
ExampleSchema schema_of_scalars() {
  ExampleSchema schema{{{"label"}}, "label"};
  for (std::size_t i = 1; i <= kCriteoCounts; ++i)
    schema.features.push_back({"I" + std::to_string(i)});
  for (std::size_t i = 1; i <= kCriteoIds; ++i)
    schema.features.push_back({"C" + std::to_string(i), DType::kInt64});
  return schema;
}

std::string example_of_lists(const CriteoExample& click) {
  std::vector<float> dense(click.counts.begin(), click.counts.end());
  std::vector<std::int64_t> ids(click.ids.begin(), click.ids.end());
  return framed(ExampleMessage()
                    .floats("label", {click.label})
                    .floats("dense", dense)
                    .integers("ids", ids)
                    .bytes());
}

std::string example_of_image(const CriteoExample& click) {
  return framed(ExampleMessage()
                    .floats("label", {click.label})
                    .texts("image", {std::string(784, static_cast<char>(click.ids[0]))})
                    .bytes());
}

int bench(int argc, char** argv) {
  const std::size_t bytes = (argc > 1 ? std::stoul(argv[1]) : 100) << 20;
  if (argc > 2) beside = argv[2];
  {
    const Log log(bytes, tsv);
    std::vector<FeatureColumn> features;
    std::vector<NumericInput> counts;
    for (std::size_t i = 1; i <= kCriteoCounts; ++i)
      counts.push_back({.column = "I" + std::to_string(i), .log1p = true});
    features.push_back(FeatureColumn::numeric(counts));
    for (std::size_t i = 1; i <= kCriteoIds; ++i)
      features.push_back(FeatureColumn::hashed("C" + std::to_string(i), 100'000));
    measure("CSV: Criteo's lines, 26 hashes, 13 logarithms", "csv-features",
            Dataset::csv(log.path(), criteo_tsv_schema()).features(features), log.path());
    measure("CSV: Criteo's lines, text as strings", "csv-strings",
            Dataset::csv(log.path(), criteo_tsv_schema()), log.path());
  }
  {
    const Log log(bytes, [](const CriteoExample& click) { return libsvm(click, false); });
    measure("libsvm: 39 pairs, whole numbers", "libsvm", Dataset::libsvm(log.path()), log.path());
  }
  {
    const Log log(bytes, [](const CriteoExample& click) { return libsvm(click, true); });
    measure("libsvm: 39 pairs, 13 of them of six decimals", "libsvm", Dataset::libsvm(log.path()),
            log.path());
  }
  {
    const Log log(bytes, example_of_scalars);
    measure("TFRecord: Example of 40 features of one value", "scalars",
            Dataset::tfrecords(log.path(), schema_of_scalars()), log.path());
    measure("TFRecord: of the same, four features wanted", "four",
            Dataset::tfrecords(
                log.path(),
                {{{"label"}, {"I1"}, {"C1", DType::kInt64}, {"C26", DType::kInt64, {}, true}},
                 "label"}),
            log.path());
  }
  {
    const Log log(bytes, example_of_lists);
    measure(
        "TFRecord: Example of two lists and a label", "lists",
        Dataset::tfrecords(
            log.path(),
            {{{"label"}, {"dense", DType::kFloat32, {13}}, {"ids", DType::kInt64, {26}}}, "label"}),
        log.path());
  }
  {
    const Log log(bytes, example_of_image);
    measure(
        "TFRecord: Example of an image of 784 bytes", "image",
        Dataset::tfrecords(log.path(), {{{"label"}, {"image", DType::kUint8, {28, 28}}}, "label"}),
        log.path());
  }
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-reading", [&] { return cairn::bench(argc, argv); });
}
