#include "data/format/criteo_like.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"

namespace cairn {
namespace {

// The numbers of distinct values of the 26 categorical columns of the Kaggle display advertising
// challenge.
constexpr std::int64_t kKaggleRows[kCriteoIds] = {
    1460, 583,   10131227, 2202608, 305,  24,   12517, 633,     3,  93145, 5683,   8351593, 3194,
    27,   14992, 5461306,  10,      5652, 2173, 4,     7046547, 18, 15,    286181, 105,     142572};
// How much of the logit's deviation comes from the counts, from the ids one by one, and from pairs
// of ids. Pairs have the largest part, so that a model which learns interactions beats
// one that does not.
constexpr float kCountWeight = 0.15f, kIdEffect = 0.25f, kPairEffect = 0.6f;
constexpr float kBias = -1.3f;
constexpr std::size_t kPairDim = 2;

// The logarithm of a count is about exponentially distributed, so that log(1 + count) is well
// behaved: most counts are small, a few are in the thousands.
std::int32_t draw_count(Random& random) {
  return static_cast<std::int32_t>(
      std::min(1e6, std::floor(1 / std::max(1e-9, random.uniform()) - 1)));
}

// A factor that has no divisor in common with n, so that rank -> rank * factor + offset modulo n is
// one to one.
std::uint64_t factor_for(std::uint64_t n, std::uint64_t key) {
  std::uint64_t factor = n <= 2 ? 1 : key % n;
  while (std::gcd(factor, n) != 1) factor = (factor + 1) % n;
  return n == 1 ? 0 : factor;
}

}  // namespace

std::vector<std::int64_t> criteo_table_rows(std::int64_t rows_max) {
  std::vector<std::int64_t> rows(std::begin(kKaggleRows), std::end(kKaggleRows));
  for (std::int64_t& each : rows) each = std::min(each, rows_max);
  return rows;
}

CriteoLike::CriteoLike(CriteoLikeOptions options) : options_(std::move(options)) {
  if (options_.table_rows.size() != kCriteoIds)
    throw InvalidArgumentError(str("click logs have ", kCriteoIds, " columns of ids; ",
                                   options_.table_rows.size(), " table sizes are given"));
  for (std::size_t i = 0; i < kCriteoIds; ++i) {
    const std::int64_t rows = options_.table_rows[i];
    if (rows < 1 || rows > std::numeric_limits<std::int32_t>::max())
      throw InvalidArgumentError(str("table ", i + 1, " of the click logs has ", rows,
                                     " rows; 1 to 2^31 - 1 are possible"));
    const std::uint64_t key = random_key(options_.seed, str("table ", i));
    const auto n = static_cast<std::uint64_t>(rows);
    tables_.push_back({ZipfDistribution(rows, options_.exponent),
                       factor_for(n, random_key(key, "factor")), random_key(key, "offset") % n,
                       random_key(key, "effects")});
  }
  for (std::size_t i = 0; i < kCriteoCounts; ++i)
    count_weights_[i] =
        kCountWeight * standard_normal(philox(random_key(options_.seed, "counts"), i, 0));
}

CriteoExample CriteoLike::example(std::int64_t row) const {
  Random random(random_key(random_key(options_.seed, "rows"), static_cast<std::uint64_t>(row)));
  CriteoExample made;
  for (std::int32_t& count : made.counts) count = draw_count(random);
  for (std::size_t i = 0; i < kCriteoIds; ++i) made.ids[i] = draw_id(tables_[i], random);
  made.logit = hidden_logit(made);
  made.label =
      random.uniform() < 1 / (1 + std::exp(-static_cast<double>(made.logit))) ? 1.0f : 0.0f;
  return made;
}

std::int32_t CriteoLike::draw_id(const Table& table, Random& random) const {
  const auto n = static_cast<unsigned __int128>(table.ranks.size());
  const auto rank = static_cast<unsigned __int128>(table.ranks(random) - 1);
  return static_cast<std::int32_t>((rank * table.factor + table.offset) % n);
}

float CriteoLike::hidden_logit(const CriteoExample& example) const {
  float logit = kBias;
  for (std::size_t i = 0; i < kCriteoCounts; ++i)
    logit += count_weights_[i] * (std::log1p(static_cast<float>(example.counts[i])) - 1);
  std::array<float, kPairDim> sum{}, squares{};
  for (std::size_t i = 0; i < kCriteoIds; ++i) {
    const auto id = static_cast<std::uint64_t>(example.ids[i]);
    logit += kIdEffect * standard_normal(philox(tables_[i].effects, id, 0));
    for (std::size_t d = 0; d < kPairDim; ++d) {
      const float factor = standard_normal(philox(tables_[i].effects, id, d + 1));
      sum[d] += factor;
      squares[d] += factor * factor;
    }
  }
  // All pairs' dot products at once, as factorization machines do it (Rendle, ICDM 2010, lemma
  // 3.1), at deviation 1.
  const float scale = std::sqrt(2.0f / (kPairDim * kCriteoIds * (kCriteoIds - 1)));
  for (std::size_t d = 0; d < kPairDim; ++d)
    logit += kPairEffect * scale * (sum[d] * sum[d] - squares[d]) / 2;
  return logit;
}

}  // namespace cairn
