// Made-up click logs: the shape that they claim to have.
#include "data/format/criteo_like.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/error.h"
#include "tests/data/testing.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using testing::TempFolder;

// The share that rank k should have of draws from n ranks.
double zipf_share(std::int64_t n, double exponent, std::int64_t k) {
  double all = 0;
  for (std::int64_t i = 1; i <= n; ++i) all += std::pow(static_cast<double>(i), -exponent);
  return std::pow(static_cast<double>(k), -exponent) / all;
}

class Zipf : public ::testing::TestWithParam<double> {};

TEST_P(Zipf, RanksComeAsOftenAsThePowerLawSays) {
  constexpr int kDraws = 200'000;
  const ZipfDistribution ranks(1000, GetParam());
  Random random(1);
  std::map<std::int64_t, int> counts;
  for (int i = 0; i < kDraws; ++i) ++counts[ranks(random)];
  EXPECT_GE(counts.begin()->first, 1);
  EXPECT_LE(counts.rbegin()->first, 1000);
  for (std::int64_t k : {1, 2, 3, 10, 100}) {
    const double expected = kDraws * zipf_share(1000, GetParam(), k);
    EXPECT_NEAR(counts[k], expected, 5 * std::sqrt(expected)) << "rank " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Exponents, Zipf, ::testing::Values(0.0, 0.5, 1.0, 1.05, 2.0));

TEST(CriteoLike, AnExampleIsAFunctionOfSeedAndRow) {
  const CriteoLike clicks({.seed = 3}), same({.seed = 3}), other({.seed = 4});
  for (std::int64_t row : {0, 1, 1'000'000'000}) {
    EXPECT_EQ(clicks.example(row).ids, same.example(row).ids);
    EXPECT_EQ(clicks.example(row).logit, same.example(row).logit);
    EXPECT_NE(clicks.example(row).ids, other.example(row).ids);
  }
}

TEST(CriteoLike, IdsAreRowsOfTheirTablesAndTheFrequentOnesAreNoNeighbours) {
  const CriteoLike clicks({});
  std::map<std::int32_t, int> third;
  for (std::int64_t row = 0; row < 20'000; ++row) {
    const CriteoExample example = clicks.example(row);
    for (std::size_t i = 0; i < kCriteoIds; ++i) {
      ASSERT_GE(example.ids[i], 0);
      ASSERT_LT(example.ids[i], clicks.options().table_rows[i]);
    }
    ++third[example.ids[2]];
  }
  auto often = std::max_element(third.begin(), third.end(),
                                [](auto& a, auto& b) { return a.second < b.second; });
  EXPECT_NEAR(often->second, 20'000 * zipf_share(2'000'000, 1, 1), 200);
  EXPECT_LT(third[often->first + 1] + third[often->first - 1], often->second / 4);
}

TEST(CriteoLike, TheHiddenModelForetellsItsLabelsButNotSurely) {
  const TempFolder folder;
  const CriteoSummary summary =
      write_criteo_records(CriteoLike({}), 0, 20'000, folder.path("clicks.bin"));
  EXPECT_EQ(summary.rows, 20'000);
  EXPECT_GT(summary.auc, 0.75);
  EXPECT_LT(summary.auc, 0.9);
  EXPECT_GT(summary.positives, 0.15);
  EXPECT_LT(summary.positives, 0.45);
  EXPECT_GT(summary.log_loss, 0.35);
  EXPECT_LT(summary.log_loss, 0.6);
}

TEST(CriteoLike, RecordsAndLinesHoldTheSameExamples) {
  const TempFolder folder;
  const CriteoLike clicks({.table_rows = criteo_table_rows(1000)});
  write_criteo_records(clicks, 5, 105, folder.path("clicks.bin"));
  write_criteo_tsv(clicks, 5, 105, folder.path("clicks.tsv"));
  EXPECT_EQ(std::filesystem::file_size(folder.path("clicks.bin")), 100u * 160);

  auto records =
      open(Dataset::records(folder.path("clicks.bin"), criteo_record_schema()).batch(100));
  auto lines = open(Dataset::csv(folder.path("clicks.tsv"), criteo_tsv_schema()).batch(100));
  const Element binary = *records->next(), text = *lines->next();
  auto field = [&](const std::string& name) {
    return binary.at(records->element_spec().find(name));
  };
  auto column = [&](const std::string& name) { return text.at(lines->element_spec().find(name)); };
  for (std::int64_t row = 0; row < 100; ++row) {
    const CriteoExample example = clicks.example(5 + row);
    const auto at = static_cast<std::size_t>(row);
    EXPECT_EQ(field("label").values<float>()[at], example.label);
    EXPECT_EQ(column("label").values<float>()[at], example.label);
    for (std::size_t i = 0; i < kCriteoCounts; ++i) {
      EXPECT_EQ(field("dense").values<float>()[at * kCriteoCounts + i],
                std::log1p(static_cast<float>(example.counts[i])));
      EXPECT_EQ(column(str("I", i + 1)).values<std::int32_t>()[at], example.counts[i]);
    }
    for (std::size_t i = 0; i < kCriteoIds; ++i)
      EXPECT_EQ(field("ids").values<std::int32_t>()[at * kCriteoIds + i], example.ids[i]);
  }
}

TEST(CriteoLike, AFileThatCannotBeWrittenIsNamedAndLeavesNothing) {
  const TempFolder folder;
  const std::string path = folder.path("missing/clicks.bin");
  try {
    write_criteo_records(CriteoLike({}), 0, 1, path);
    FAIL() << "no error";
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
}

TEST(CriteoLike, TablesAndExponentsThatCannotBeAreRefused) {
  EXPECT_THROW(CriteoLike({.table_rows = {1, 2}}), InvalidArgumentError);
  EXPECT_THROW(CriteoLike({.table_rows = criteo_table_rows(0)}), InvalidArgumentError);
  EXPECT_THROW(CriteoLike({.exponent = -1}), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn
