#include "serving/server/request_line.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "serving/model/served_model.h"
#include "tests/serving/small_requests.h"

namespace cairn::serving::testing {
namespace {

struct RequestLineTest : SmallRequests {
  std::shared_ptr<const ServedModel> model = ServedModel::load(small.path);
  RequestLine line{model, TimePoint{}};
  RequestLine::Turn add(std::int64_t examples, TimePoint deadline = TimePoint::max()) {
    return line.add({model, {}, examples, deadline, [](Answer) {}});
  }
  static std::vector<std::int64_t> sizes(const std::vector<WaitingExamples>& requests) {
    std::vector<std::int64_t> all;
    for (const WaitingExamples& each : requests) all.push_back(each.examples);
    return all;
  }
};

TEST_F(RequestLineTest, TakesAsManyAsFit) {
  for (const std::int64_t examples : {3, 1, 2, 7}) add(examples);
  EXPECT_EQ(line.examples(), 13);
  EXPECT_EQ(sizes(line.take(5)), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(sizes(line.take(5)), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(sizes(line.take(5)), (std::vector<std::int64_t>{7})) << "one alone may have more";
  EXPECT_TRUE(line.empty());
  EXPECT_EQ(line.examples(), 0);
}

// Two clients that always wait have as many examples computed, whatever their requests hold.
TEST_F(RequestLineTest, ARequestWithManyExamplesWaitsForItsShareAlone) {
  add(100);
  int passed = 0;
  for (add(1); sizes(line.take(1)) == std::vector<std::int64_t>{1}; add(1)) ++passed;
  EXPECT_GE(passed, 99);
  EXPECT_LE(passed, 201);
}

// A hundred clients with 64 examples each, which ask again as soon as they are answered, and one
// that asks for one example now and then.
TEST_F(RequestLineTest, WhoAsksForLittleWaitsForOneBatchOfAFlood) {
  for (int i = 0; i < 100; ++i) add(64);
  for (int round = 0; round < 1000; ++round) {
    const auto batch = sizes(line.take(1024));
    for (const std::int64_t examples : batch) {
      if (examples == 64) add(64);
    }
    if (round % 7 == 0) {
      add(1);
    } else if (round % 7 == 1) {
      ASSERT_EQ(std::ranges::count(batch, 1), 1) << "round " << round;
    }
  }
}

TEST_F(RequestLineTest, FindsWhatIsLateWhereverItsTurnIs) {
  const TimePoint now = system_clock().now();
  add(5, now - std::chrono::seconds(1));
  add(1, now + std::chrono::seconds(1));
  add(9, now - std::chrono::seconds(2));
  EXPECT_EQ(line.first_deadline(), now - std::chrono::seconds(2));
  EXPECT_EQ(sizes(line.take_late(now)), (std::vector<std::int64_t>{9, 5}));
  EXPECT_EQ(line.examples(), 1);
}

TEST_F(RequestLineTest, TheLastInTurnIsTheLargestOrTheNewestOfItsKind) {
  add(2);
  const RequestLine::Turn large = add(3);
  EXPECT_EQ(line.last_turn(), large);
  const RequestLine::Turn newest = add(3);
  EXPECT_EQ(line.last_turn(), newest);
  EXPECT_EQ(line.take_last().examples, 3);
  EXPECT_EQ(line.last_turn(), large);
}

}  // namespace
}  // namespace cairn::serving::testing
