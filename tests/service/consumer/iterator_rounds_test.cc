// Consumers that read in rounds: whatever is lost, all of a group are given the same ones.
#include <gmock/gmock.h>

#include <set>

#include "core/base/random.h"
#include "service/consumer/distribute.h"
#include "tests/service/simulated_service.h"

namespace cairn::service {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

using Readings = std::vector<std::shared_ptr<Reading>>;

DataServiceOptions member(std::uint32_t consumers, std::uint32_t index, ProcessingMode mode) {
  DataServiceOptions options;
  options.job_name = "group";
  options.mode = mode;
  options.buffer_elements = 6;
  options.num_consumers = consumers;
  options.consumer_index = index;
  return options;
}

// A group of consumers, each on a host of its own and at a pace of its own.
Readings read_in_rounds(SimulatedService& service, const Dataset& dataset, std::uint32_t consumers,
                        ProcessingMode mode) {
  Readings group;
  for (std::uint32_t i = 0; i < consumers; ++i)
    group.push_back(service.read(
        service.consumer(dataset, member(consumers, i, mode), str("consumer", i)), i * 1ms));
  return group;
}

std::int64_t value(const Reading& reading, std::size_t round) {
  return reading.elements.at(round).at(0);
}

// Elements hold a number each, and a worker's pipeline counts up: a round is n numbers in a row.
// `at_least`: those that all must have been given.
void expect_rounds(const Readings& group, std::size_t at_least) {
  const auto n = static_cast<std::int64_t>(group.size());
  for (const auto& reading : group) {
    ASSERT_GE(reading->elements.size(), at_least) << reading->error;
    for (std::size_t round = 0;
         round < std::min(reading->elements.size(), group[0]->elements.size()); ++round) {
      const std::int64_t index = &reading - group.data();
      EXPECT_EQ(value(*group[0], round) % n, 0) << "round " << round;
      ASSERT_EQ(value(*reading, round), value(*group[0], round) + index) << "round " << round;
    }
  }
}

void expect_the_same_end(const Readings& group) {
  for (const auto& reading : group) {
    EXPECT_EQ(reading->error, "");
    EXPECT_EQ(reading->elements.size(), group[0]->elements.size());
  }
  expect_rounds(group, group[0]->elements.size());
}

std::set<std::int64_t> all_values(const Readings& group) {
  std::set<std::int64_t> all;
  for (const auto& reading : group)
    for (const std::int64_t one : reading->values()) all.insert(one);
  return all;
}

TEST(Coordinated, EachIsGivenItsElementOfTheSameRoundAndAllOfThemAreGivenAll) {
  for (const std::uint32_t n : {2u, 3u})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(str(n, " consumers, seed ", seed));
      SimulatedService service({.workers = 2, .seed = seed});
      const auto group =
          read_in_rounds(service, Dataset::range(120).batch(1), n, ProcessingMode::kDynamic);
      ASSERT_TRUE(service.finish(group));
      expect_the_same_end(group);
      EXPECT_EQ(group[0]->elements.size(), 120 / n);
      EXPECT_EQ(all_values(group).size(), 120u);
      EXPECT_EQ(group.back()->statistics.job_elements, 120u);
      EXPECT_EQ(group.back()->statistics.duplicates(), 0u);
    }
}

TEST(Coordinated, InModeOffEveryWorkerGivesRoundsOfItsOwnInTurn) {
  SimulatedService service({.workers = 2});
  const auto group =
      read_in_rounds(service, Dataset::range(30).repeat().batch(1), 3, ProcessingMode::kOff);
  ASSERT_TRUE(service.run_until([&] {
    return std::ranges::all_of(group, [](const auto& one) { return one->elements.size() > 100; });
  }));
  expect_rounds(group, 100);
  std::map<std::int64_t, int> times;
  for (std::size_t round = 0; round < 20; ++round) ++times[value(*group[0], round)];
  EXPECT_EQ(times.size(), 10u) << "of two workers, which count alike, the same rounds come twice";
}

TEST(Coordinated, ARoundThatIsIncompleteIsDroppedAndAllEndBeforeIt) {
  SimulatedService service({.workers = 1});
  const auto group = read_in_rounds(service, Dataset::range(8).batch(1), 3, ProcessingMode::kOff);
  ASSERT_TRUE(service.finish(group));
  expect_the_same_end(group);
  EXPECT_EQ(group[0]->elements.size(), 2u);
  const auto late = service.read(
      service.consumer(Dataset::range(8).batch(1), member(3, 0, ProcessingMode::kOff)));
  ASSERT_TRUE(service.finish({late}));
  EXPECT_TRUE(late->elements.empty()) << "the job has ended";
}

TEST(Coordinated, FewerElementsThanConsumersAreNoRound) {
  SimulatedService service({.workers = 2});
  const auto group =
      read_in_rounds(service, Dataset::range(2).batch(1), 3, ProcessingMode::kDynamic);
  ASSERT_TRUE(service.finish(group));
  expect_the_same_end(group);
  EXPECT_TRUE(group[0]->elements.empty());
}

TEST(Coordinated, MoreConsumersThanAWorkerKeepsElementsReadAll) {
  SimulatedService service({.workers = 1, .job = {.elements_max = 2}});
  const auto group =
      read_in_rounds(service, Dataset::range(40).batch(1), 4, ProcessingMode::kDynamic);
  ASSERT_TRUE(service.finish(group));
  expect_the_same_end(group);
  EXPECT_EQ(group[0]->elements.size(), 10u);
}

// Some of it is handed out, and then `strike` happens.
void strike_after(SimulatedService& service, const Readings& group, std::size_t rounds,
                  const std::function<void()>& strike) {
  ASSERT_TRUE(service.run_until([&] { return group[0]->elements.size() >= rounds; }));
  strike();
}

TEST(Coordinated, RoundsOfADataWorkerThatIsLostComeFromTheOthersForAllAlike) {
  for (const std::uint32_t n : {2u, 3u})
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE(str(n, " consumers, seed ", seed));
      SimulatedService service({.workers = 3, .seed = seed});
      Random random(seed);
      const auto group =
          read_in_rounds(service, Dataset::range(360).batch(1), n, ProcessingMode::kDynamic);
      strike_after(service, group, 1 + random.below(40), [&] { service.kill_worker(1); });
      ASSERT_TRUE(service.finish(group));
      expect_the_same_end(group);
      EXPECT_EQ(all_values(group).size(), 360u) << "every element, at least once";
    }
}

TEST(Coordinated, AWorkerAndTheDispatcherComeBackAndNobodyNotices) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    SimulatedService service({.workers = 2, .seed = seed});
    Random random(seed);
    const auto group =
        read_in_rounds(service, Dataset::range(300).batch(1), 2, ProcessingMode::kDynamic);
    strike_after(service, group, 1 + random.below(40), [&] {
      service.kill_dispatcher();
      service.reactor.advance(std::chrono::milliseconds(random.below(3000)));
      service.start_dispatcher();
    });
    strike_after(service, group, 50 + random.below(40), [&] {
      service.kill_worker(0);
      service.reactor.advance(std::chrono::milliseconds(random.below(9000)));
      service.start_worker(0);
    });
    ASSERT_TRUE(service.finish(group));
    expect_the_same_end(group);
    EXPECT_EQ(all_values(group).size(), 300u);
  }
}

TEST(Coordinated, ConnectionsThatBreakCostNobodyARound) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    SimulatedService service({.workers = 2, .seed = seed});
    Random random(seed);
    const auto group =
        read_in_rounds(service, Dataset::range(300).batch(1), 3, ProcessingMode::kDynamic);
    for (std::size_t rounds = 10; rounds <= 80; rounds += 10)
      strike_after(service, group, rounds, [&] {
        const std::string consumer = str("consumer", random.below(3));
        const std::string other =
            random.below(3) == 0 ? "dispatcher" : str("worker", random.below(2));
        service.network.cut(consumer, other);
        service.reactor.advance(std::chrono::milliseconds(random.below(9000)));
        service.network.heal(consumer, other);
      });
    ASSERT_TRUE(service.finish(group));
    expect_the_same_end(group);
    EXPECT_EQ(all_values(group).size(), 300u);
    EXPECT_EQ(group[0]->elements.size(), 100u) << "and none comes twice";
  }
}

TEST(Coordinated, AWorkerThatIsTakenForLostAndComesBackLeavesNoGap) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    SimulatedService service({.workers = 2, .seed = seed});
    Random random(seed);
    const auto group =
        read_in_rounds(service, Dataset::range(300).batch(1), 2, ProcessingMode::kDynamic);
    strike_after(service, group, 1 + random.below(40), [&] {
      service.network.partition_both("worker0", "dispatcher");
      if (random.below(2) == 0) service.network.partition("worker0", "consumer1");
      service.reactor.advance(std::chrono::milliseconds(4000 + random.below(6000)));
      service.network.heal_all();
    });
    ASSERT_TRUE(service.finish(group));
    expect_the_same_end(group);
    EXPECT_EQ(all_values(group).size(), 300u);
  }
}

TEST(Coordinated, AConsumerThatIsNotThereIsNamed) {
  SimulatedService service({.workers = 1});
  const Dataset dataset = Dataset::range(30).batch(1);
  const auto reading = service.read(service.consumer(dataset, member(3, 0, ProcessingMode::kOff)));
  const auto other = service.read(service.consumer(dataset, member(3, 2, ProcessingMode::kOff)));
  ASSERT_TRUE(service.finish({reading, other}, 2min));
  EXPECT_THAT(reading->error, AllOf(HasSubstr("Unavailable: job \"group\" is read in rounds"),
                                    HasSubstr("consumer 1 of 3 has not been there for 60 s")));
}

TEST(Coordinated, AConsumerWhoseProgramTakesNothingIsNamed) {
  SimulatedService service({.workers = 1});
  const Dataset dataset = Dataset::range(3000).batch(1);
  DataServiceOptions options = member(2, 0, ProcessingMode::kOff);
  options.next_deadline = 90s;
  const auto idle = service.consumer(dataset, member(2, 1, ProcessingMode::kOff), "consumer1");
  const auto reading = service.read(service.consumer(dataset, options));
  ASSERT_TRUE(service.finish({reading}, 60min));
  EXPECT_GT(reading->elements.size(), 0u);
  EXPECT_THAT(reading->error, AllOf(HasSubstr("DeadlineExceeded: job \"group\" gave no round"),
                                    HasSubstr("consumer 1 of 2")));
}

TEST(Coordinated, AfterAPauseOfAllTheyReadOn) {
  SimulatedService service({.workers = 2});
  const Dataset dataset = Dataset::range(400).batch(1);
  Readings group;
  for (const std::uint32_t i : {0u, 1u})
    group.push_back(service.read(
        service.consumer(dataset, member(2, i, ProcessingMode::kDynamic), str("consumer", i)),
        i == 0 ? Duration(1ms) : Duration(7s)));
  ASSERT_TRUE(service.finish(group, 60min));
  expect_the_same_end(group);
  EXPECT_EQ(group[0]->elements.size(), 200u);
  EXPECT_EQ(all_values(group).size(), 400u);
}

TEST(Coordinated, WhoIsStartedAgainEndsTheOthersAndAGroupThatBeganAnewReadsOn) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    SimulatedService service({.workers = 2, .seed = seed});
    const Dataset dataset = Dataset::range(400).batch(1);
    const auto group = read_in_rounds(service, dataset, 2, ProcessingMode::kDynamic);
    Readings anew;
    strike_after(service, group, 20 + seed, [&] {
      anew.push_back(service.read(
          service.consumer(dataset, member(2, 0, ProcessingMode::kDynamic), "consumer2")));
      ASSERT_TRUE(service.finish(group));
      anew.push_back(service.read(
          service.consumer(dataset, member(2, 1, ProcessingMode::kDynamic), "consumer3")));
    });
    EXPECT_THAT(group[1]->error, HasSubstr("FailedPrecondition: consumer 1: its group has begun "
                                           "anew"));
    ASSERT_TRUE(service.finish(anew));
    expect_the_same_end(anew);
    EXPECT_GT(anew[0]->elements.size(), 100u);
  }
}

TEST(Coordinated, WhatDoesNotFitIsRefused) {
  SimulatedService service({.workers = 1});
  const Dataset dataset = Dataset::range(30).batch(1);
  const auto answer = [&](DataServiceOptions options) {
    const auto reading = service.read(service.consumer(dataset, options));
    EXPECT_TRUE(service.finish({reading}));
    return reading->error;
  };
  DataServiceOptions nameless = member(2, 0, ProcessingMode::kOff);
  nameless.job_name.clear();
  EXPECT_THAT(answer(nameless), HasSubstr("InvalidArgument: num_consumers is 2"));
  EXPECT_THAT(answer(member(2, 2, ProcessingMode::kOff)), HasSubstr("consumer_index is 2"));
  const auto first = service.consumer(dataset, member(2, 0, ProcessingMode::kOff));
  service.reactor.advance(1s);
  EXPECT_THAT(answer(member(3, 0, ProcessingMode::kOff)),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr("group of 2 consumers")));
  EXPECT_THROW(distribute(dataset, {.dispatcher = "host:1", .num_consumers = 2}),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::service
