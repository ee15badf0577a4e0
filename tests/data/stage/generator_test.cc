// Elements that a function of the program makes, and prefetch() that finds its own depth.
#include <gmock/gmock.h>

#include "core/base/offload.h"
#include "data/stage/dataset_wire.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ElementSpec kValue{{{"value", {DType::kInt64, {}}}}, ""};

// Counts from 0 to n - 1, in each pass anew.
Dataset counting(std::int64_t n) {
  const auto begin = [n]() -> ElementGenerator {
    return [n, at = std::int64_t{0}]() mutable -> std::optional<Element> {
      if (at == n) return {};
      return Element{Tensor::scalar<std::int64_t>(at++)};
    };
  };
  return Dataset::from_generator(begin, kValue);
}

TEST(FromGenerator, GivesWhatTheFunctionMakesInEachPassAnew) {
  EXPECT_THAT(values_of(counting(3).repeat(2)), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_EQ(read_all(counting(1000).batch(300)), read_all(Dataset::range(1000).batch(300)));
  EXPECT_EQ(read_all(counting(50).shuffle(20, 7)), read_all(Dataset::range(50).shuffle(20, 7)));
  EXPECT_EQ(cardinality(counting(7).batch(2)), 4);
}

TEST(FromGenerator, IsResumedByDroppingWhatWasRead) {
  const Dataset dataset = counting(10).batch(3);
  const std::vector<std::string> all = read_all(dataset);
  auto running = open(dataset);
  running->next();
  auto resumed = open(dataset, running->state());
  EXPECT_EQ(rest_of(*resumed), std::vector<std::string>(all.begin() + 1, all.end()));
}

TEST(FromGenerator, ThatGivesLessWhenBegunAgainIsNamed) {
  auto passes = std::make_shared<int>(0);
  const auto begin = [passes]() -> ElementGenerator {
    return [left = (*passes)++ == 0 ? 5 : 1]() mutable -> std::optional<Element> {
      if (left-- <= 0) return {};
      return Element{Tensor::scalar<std::int64_t>(1)};
    };
  };
  const Dataset dataset = Dataset::from_generator(begin, kValue);
  auto running = open(dataset);
  for (int i = 0; i < 4; ++i) running->next();
  EXPECT_THAT(error_of([&] { open(dataset, running->state()); }),
              AllOf(HasSubstr("from_generator()"), HasSubstr("stands at element 4")));
}

TEST(FromGenerator, AnElementThatWasNotAnnouncedIsRefusedByColumnAndPlace) {
  const auto always = [](Element element) {
    return [element] { return ElementGenerator([element] { return element; }); };
  };
  const auto refusal = [&](Element element) {
    return error_of([&] { read_all(Dataset::from_generator(always(element), kValue)); });
  };
  EXPECT_THAT(refusal({}), HasSubstr("element 0 has 0 columns, and 1 were announced"));
  EXPECT_THAT(refusal({Tensor::scalar<float>(1)}),
              AllOf(HasSubstr("column \"value\" of element 0 is float32[]"),
                    HasSubstr("int64[] was announced")));
  EXPECT_THAT(refusal({Tensor()}), HasSubstr("without a value"));
}

TEST(FromGenerator, WhatTheFunctionThrowsReachesTheReader) {
  const auto begin = [] {
    return ElementGenerator([]() -> std::optional<Element> { throw DataLossError("torn page"); });
  };
  EXPECT_THAT(error_of([&] { read_all(Dataset::from_generator(begin, kValue)); }),
              HasSubstr("torn page"));
}

TEST(FromGenerator, DoesNotTravelAlsoWithinAnotherDataset) {
  EXPECT_THAT(error_of([] { serialize(counting(3).batch(2)); }),
              HasSubstr("from_generator() is code of this program"));
  EXPECT_THAT(error_of([] { serialize(Dataset::range(3).concatenate(counting(3))); }),
              HasSubstr("from_generator() is code of this program"));
}

TEST(Prefetch, ThatFindsItsOwnDepthReadsTheSameElements) {
  auto threads = make_thread_offload(1);
  for (const Dataset& dataset : {counting(900), Dataset::range(5000).batch(7)}) {
    const Dataset ahead = dataset.prefetch(kAutotune);
    auto iterator = open(ahead, {}, {.offload = threads.get()});
    EXPECT_EQ(rest_of(*iterator, 10'000), read_all(dataset));
    EXPECT_EQ(read_all(parse_dataset(serialize(Dataset::range(9).prefetch(kAutotune)))),
              read_all(Dataset::range(9)));
  }
  EXPECT_THAT(error_of([] { Dataset::range(3).prefetch(0); }), HasSubstr("n is 0"));
}

}  // namespace
}  // namespace cairn::testing
