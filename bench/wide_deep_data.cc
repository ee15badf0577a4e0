#include "bench/wide_deep_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <vector>

#include "core/base/random.h"

namespace cairn::bench {
namespace {

// of the Adult census columns
constexpr std::array<std::uint64_t, kDeepColumns> kCategories = {9, 16, 7, 15, 6, 5, 2, 42};
constexpr std::int32_t kCrossRows = 10'000;

struct Record {
  float label;
  float numeric[kNumbers];
  std::int32_t deep[kDeepColumns];
  std::int32_t wide[kWideColumns];
};
static_assert(sizeof(Record) == 27 * 4);

std::int32_t hashed(std::uint64_t value, std::uint64_t salt, std::int32_t buckets) {
  return static_cast<std::int32_t>(random_key(value, salt) % static_cast<std::uint64_t>(buckets));
}

// Low numbers come often.
std::uint64_t skewed(Random& random, std::uint64_t categories) {
  const double u = random.uniform();
  return std::min(static_cast<std::uint64_t>(u * u * static_cast<double>(categories)),
                  categories - 1);
}

Record make_record(Random& random) {
  Record record{};
  std::array<std::uint64_t, kDeepColumns> categories{};
  double logit = -1;
  for (int i = 0; i < kNumbers; ++i) {
    record.numeric[i] = static_cast<float>(2 * random.uniform() - 1);
    logit += (i % 2 == 0 ? 0.8 : -0.6) * record.numeric[i];
  }
  for (std::size_t i = 0; i < categories.size(); ++i) {
    categories[i] = skewed(random, kCategories[i]);
    record.deep[i] = hashed(categories[i], 1000 * (i + 1), kDeepRows);
    record.wide[i] =
        record.deep[i] + static_cast<std::int32_t>(i) * static_cast<std::int32_t>(kDeepRows);
    logit += record.deep[i] % 7 < 3 ? 0.3 : -0.3;
  }
  const auto crosses = static_cast<std::int32_t>(kDeepColumns * kDeepRows);
  record.wide[8] = crosses + hashed(categories[1] * 100 + categories[3], 77, kCrossRows);
  record.wide[9] =
      crosses + kCrossRows + hashed(categories[0] * 100 + categories[7], 78, kCrossRows);
  record.label = random.uniform() < 1 / (1 + std::exp(-logit)) ? 1.0f : 0.0f;
  return record;
}

}  // namespace

void write_wide_deep_records(const std::string& file, std::uint64_t seed) {
  Random random(seed);
  std::vector<Record> records;
  for (std::int64_t i = 0; i < kWideDeepExamples; ++i) records.push_back(make_record(random));
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(records.data()),
            static_cast<std::streamsize>(records.size() * sizeof(Record)));
  if (!out.flush()) throw UnavailableError(str("could not write ", file));
}

Dataset wide_deep_batches(const std::string& file, std::int64_t prefetch, std::int64_t batch) {
  RecordSchema schema{{{"label", DType::kFloat32},
                       {"numeric", DType::kFloat32, kNumbers},
                       {"deep_id", DType::kInt32, kDeepColumns},
                       {"wide_id", DType::kInt32, kWideColumns}},
                      "label"};
  Dataset batches = Dataset::records(file, schema).repeat().batch(batch);
  return prefetch > 0 ? batches.prefetch(prefetch) : batches;
}

}  // namespace cairn::bench
