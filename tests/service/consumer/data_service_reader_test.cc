// The data service over sockets, on threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "service/consumer/data_service_reader.h"
#include "tests/service/over_sockets.h"

namespace cairn::service {
namespace {

TEST_F(OverSockets, TwoReadersShareAJob) {
  const Dataset dataset = Dataset::range(5000).batch(10);
  DataServiceReader first(dataset, options(ProcessingMode::kDynamic));
  DataServiceReader second(dataset, options(ProcessingMode::kDynamic));
  std::vector<std::int64_t> all;
  const auto take = [&](DataServiceReader& reader) {
    const auto element = reader.next();
    if (!element) return false;
    const auto values = element->at(0).values<std::int64_t>();
    all.insert(all.end(), values.begin(), values.end());
    return true;
  };
  for (int i = 0; i < 20; ++i) take(first), take(second);
  // A reader's end waits for what the other one has: both read on, each on a thread.
  std::thread other([&] {
    while (second.next()) {
    }
  });
  while (take(first)) {
  }
  other.join();
  EXPECT_EQ(first.statistics().handed + second.statistics().handed, 500u);
  EXPECT_EQ(first.statistics().duplicates(), 0u);
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "an element came twice";
}

TEST_F(OverSockets, CompressedElementsAreTheSame) {
  DataServiceOptions packed = options(ProcessingMode::kDynamic);
  packed.compression = Compression::kZlib;
  DataServiceReader reader(Dataset::range(1000).batch(10), packed);
  std::int64_t sum = 0;
  while (const auto element = reader.next())
    for (const std::int64_t value : element->at(0).values<std::int64_t>()) sum += value;
  EXPECT_EQ(sum, 1000 * 999 / 2);
}

TEST(Reader, ThatWaitsCanBeCancelled) {
  DataServiceOptions nobody;
  nobody.dispatcher = rpc::Address::parse("unix:" + testing::TempDir() + "/nobody-listens");
  DataServiceReader waits(Dataset::range(10).batch(10), nobody);
  std::thread other([&] { waits.cancel(); });
  EXPECT_THROW(waits.next(), CancelledError);
  other.join();
  EXPECT_THROW(waits.next(), CancelledError) << "again";
}

TEST_F(OverSockets, AReaderIsToldWhatIsWrong) {
  DataServiceReader reader(Dataset::range(10).take(3).batch(2), options(ProcessingMode::kDynamic));
  EXPECT_THROW(reader.next(), InvalidArgumentError);
  EXPECT_THROW(reader.next(), InvalidArgumentError) << "again";
}

TEST_F(OverSockets, WhatAReaderWasHandedDoesNotComeAgainWhenItGoes) {
  std::size_t handed = 0;
  for (int i = 0; i < 5; ++i) {
    DataServiceReader early(Dataset::range(20).batch(1), options(ProcessingMode::kDynamic));
    for (int j = 0; j < 2; ++j) handed += early.next().has_value() ? 1 : 0;
  }
  DataServiceReader last(Dataset::range(20).batch(1), options(ProcessingMode::kDynamic));
  while (last.next()) ++handed;
  EXPECT_EQ(handed, 20u);
}

TEST_F(OverSockets, WhatAReaderHadAheadIsForTheNextOne) {
  const Dataset dataset = Dataset::range(1000).batch(2);
  {
    DataServiceReader early(dataset, options(ProcessingMode::kDynamic));
    EXPECT_TRUE(early.next().has_value());
  }
  DataServiceReader rest(dataset, options(ProcessingMode::kDynamic));
  std::size_t others = 0;
  while (rest.next()) ++others;
  EXPECT_EQ(others, 499u);
}

}  // namespace
}  // namespace cairn::service
