// How fast text of Adult's format becomes typed batches, on one core: cairn-bench-csv [MB]
// [adult.data.gz] Prints the median of five passes in MB of text a second of processor time (so
// that a busy machine matters less), for raw columns and for ids through hashes and through
// vocabularies.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/program.h"
#include "data/dataset/dataset_iterator.h"
#include "data/file/byte_source.h"
#include "data/stage/fit.h"
#include "testing/adult_schema.h"

namespace cairn {
namespace {

std::string write_copies(const std::string& source, std::size_t megabytes) {
  std::string text(8 << 20, '\0');
  auto bytes = open_bytes(source);
  std::size_t size = 0;
  for (std::size_t got; (got = bytes->read(text.data() + size, text.size() - size)) > 0;)
    size += got;
  text.resize(size);
  std::string path =
      (std::filesystem::temp_directory_path() / ("cairn_bench_csv_" + std::to_string(::getpid())))
          .string();
  std::ofstream out(path, std::ios::binary);
  for (std::size_t written = 0; written < megabytes << 20; written += size) out << text;
  return path;
}

void measure(const char* what, const Dataset& dataset, const std::string& path) {
  std::vector<double> rates;
  std::int64_t rows = 0;
  for (int pass = 0; pass < 5; ++pass) {
    std::clock_t begin = std::clock();
    rows = 0;
    auto iterator = open(dataset);
    while (auto batch = iterator->next()) rows += batch->back().shape()[0];
    double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    rates.push_back(static_cast<double>(std::filesystem::file_size(path)) / 1e6 / seconds);
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%-44s %8.0f MB/s  (%.0f to %.0f, %lld rows)\n", what, rates[2], rates.front(),
              rates.back(), static_cast<long long>(rows));
}

int bench(int argc, char** argv) {
  std::size_t megabytes = argc > 1 ? std::stoul(argv[1]) : 100;
  std::string source = argc > 2 ? argv[2] : testing::kAdultTrain;
  std::string path = write_copies(source, megabytes);
  Dataset csv = Dataset::csv(path, testing::adult_schema());
  std::vector<FeatureColumn> vocabularies = {testing::adult_features().front()};
  Fit found =
      fit(Dataset::csv(source, testing::adult_schema()), {.vocabularies = testing::kAdultText});
  for (std::size_t i = 0; i < testing::kAdultText.size(); ++i)
    vocabularies.push_back(
        FeatureColumn::vocabulary(testing::kAdultText[i], found.vocabularies[i]));

  CsvSchema numbers = testing::adult_schema();
  for (auto& column : numbers.columns)
    column.skip = column.dtype == DType::kString && column.name != "income";
  measure("numbers and label, text skipped", Dataset::csv(path, numbers).batch(256), path);
  measure("8 vocabularies, 5 numbers, label; batch 256", csv.features(vocabularies).batch(256),
          path);
  measure("the same, shuffled over 10,000",
          csv.features(vocabularies).shuffle(10'000, 1).batch(256), path);
  measure("8 hashes, bucket, cross, 5 numbers; batch 256",
          csv.features(testing::adult_features()).batch(256), path);
  measure("all 15 columns as they are, text as strings", csv.batch(256), path);
  std::filesystem::remove(path);
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-csv", [&] { return cairn::bench(argc, argv); });
}
