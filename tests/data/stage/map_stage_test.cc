// map(): a traced function of an element, inside the description.
#include <gmock/gmock.h>

#include <deque>
#include <functional>
#include <numeric>
#include <optional>

#include "core/graph/ops.h"
#include "data/stage/dataset_wire.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Dataset numbers() {
  return Dataset::from_tensor_slices({{"x", Tensor::of<float>({3}, std::vector<float>{1, 2, 3})},
                                      {"y", Tensor::of<float>({3}, std::vector<float>{0, 1, 0})}},
                                     "y");
}

TEST(Map, RunsOnEachBatchAndPassesTheLabelOn) {
  Dataset dataset = numbers().batch(2).map([](const cairn::Features& features) {
    return Outputs{{"square", features["x"] * features["x"]}};
  });
  EXPECT_EQ(dataset.element_spec().label, "y");
  auto iterator = open(dataset);
  EXPECT_THAT((*iterator->next())[0].values<float>(), ElementsAre(1, 4));
  Element last = *iterator->next();
  EXPECT_THAT(last[dataset.element_spec().find("square")].values<float>(), ElementsAre(9));
  EXPECT_THAT(last[dataset.element_spec().find("y")].values<float>(), ElementsAre(0));
  EXPECT_FALSE(iterator->next());
}

TEST(Map, MayReplaceTheLabelAndTravels) {
  Dataset dataset = numbers().batch(3).map([](const cairn::Features& features, const Array& label) {
    return Outputs{{"x", features["x"]}, {"y", label * Array(2.0f)}};
  });
  Dataset arrived = parse_dataset(serialize(dataset));
  EXPECT_EQ(read_all(arrived), read_all(dataset));
  EXPECT_THAT((*open(arrived)->next())[1].values<float>(), ElementsAre(0, 2, 0));
}

TEST(Map, NamesItsOutputs) {
  auto same = [](const cairn::Features& features) { return Outputs{{"", features["x"]}}; };
  EXPECT_THAT(error_of([&] { numbers().batch(2).map(same); }), HasSubstr("an output has no name"));
}

// ---- Several calls at once ----

// 1, 2, ..., of which the function refuses those that `none` names, if any.
Dataset logs(std::int64_t n, MapOptions options, std::int64_t none = -1) {
  std::vector<float> x(static_cast<std::size_t>(n));
  std::iota(x.begin(), x.end(), 1.0f);
  if (none >= 0) x[static_cast<std::size_t>(none)] = 0;
  return Dataset::from_tensor_slices({{"x", Tensor::of<float>({n}, x)}})
      .map(
          [](const cairn::Features& features) {
            return Outputs{{"log", check_numerics(log(features["x"]), "log")}};
          },
          options);
}

// Jobs that a busy machine has not begun.
struct BusyOffload final : Offload {
  void submit(std::size_t lane, std::function<void()> work) override {
    lanes.push_back(lane);
    jobs.push_back(std::move(work));
  }
  std::vector<std::size_t> lanes;
  std::deque<std::function<void()>> jobs;
};

std::vector<std::string> read_on(const Dataset& dataset, Offload* offload) {
  return rest_of(*open(dataset, {}, {.offload = offload}));
}

TEST(ParallelMap, YieldsWhatOneCallAfterAnotherDoesInTheSameOrder) {
  auto one = make_thread_offload(1), four = make_thread_offload(4), inside = make_inline_offload();
  const auto on_top = [](const Dataset& mapped) {
    return std::vector<Dataset>{
        mapped,           mapped.batch(7),   mapped.batch(40).prefetch(2), mapped.shard(3, 1),
        mapped.repeat(3), mapped.shuffle(50)};
  };
  const std::vector<Dataset> wanted = on_top(logs(100, {}));
  for (const std::int64_t calls : {std::int64_t{2}, std::int64_t{5}, kAutotune}) {
    const std::vector<Dataset> got = on_top(logs(100, {.num_parallel_calls = calls}));
    for (std::size_t i = 0; i < got.size(); ++i)
      for (Offload* offload :
           std::initializer_list<Offload*>{nullptr, one.get(), four.get(), inside.get()})
        EXPECT_EQ(read_on(got[i], offload), read_all(wanted[i])) << calls << " calls, case " << i;
  }
}

TEST(ParallelMap, RaisesAnErrorAtItsPlaceEachTimeAndSkipsWithoutCallingTheFunction) {
  auto threads = make_thread_offload(3);
  const Dataset dataset = logs(20, {.num_parallel_calls = 3}, 9);
  const std::vector<std::string> good = read_all(logs(20, {}));
  auto iterator = open(dataset, {}, {.offload = threads.get()});
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(to_text(*iterator->next()), good[i]);
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(error_of([&] { iterator->next(); }), HasSubstr("InvalidArgument"));
  EXPECT_EQ(iterator->ordinal(), 9);
  iterator->skip_to(10);
  EXPECT_EQ(rest_of(*iterator), std::vector(good.begin() + 10, good.end()));
  iterator->skip_to(4);  // the elements near it were read ahead already
  EXPECT_EQ(to_text(*iterator->next()), good[4]);
  iterator->skip_to(12);
  EXPECT_EQ(to_text(*iterator->next()), good[12]);
}

TEST(ParallelMap, GivesAllElementsBeforeALineThatDoesNotFit) {
  TempFolder folder;
  auto threads = make_thread_offload(2);
  const std::string path = folder.write("a.csv", "1\n2\n3\n4\n5\nx\n7\n");
  const auto same = [](const cairn::Features& features) { return Outputs{{"n", features["n"]}}; };
  for (const bool deep : {false, true}) {
    Dataset dataset = Dataset::csv(path, {.columns = {{"n", DType::kInt64}}})
                          .map(same, {.num_parallel_calls = 2});
    if (deep) dataset = dataset.map(same, {.num_parallel_calls = 3});
    auto iterator = open(dataset, {}, {.offload = threads.get()});
    for (std::int64_t i = 1; i <= 5; ++i) EXPECT_EQ((*iterator->next())[0].item<std::int64_t>(), i);
    for (int i = 0; i < 2; ++i)
      EXPECT_THAT(error_of([&] { iterator->next(); }), HasSubstr("a.csv:6:1"));
  }
}

TEST(ParallelMap, WaitsForNoJobThatHasNotBegun) {
  BusyOffload busy;
  auto iterator = open(logs(20, {.num_parallel_calls = 3}), {}, {.offload = &busy, .lane = 4});
  EXPECT_EQ(rest_of(*iterator), read_all(logs(20, {})));
  EXPECT_THAT(busy.lanes, ElementsAre(5, 6));  // one job per lane, however much there is to do
  iterator.reset();
  for (const auto& job : busy.jobs) job();  // which finds nothing to do
}

TEST(ParallelMap, ReadsAheadNoMoreThanTwoElementsPerCall) {
  std::int64_t drawn = 0;
  const auto begin = [&drawn] {
    return [&drawn]() -> std::optional<Element> {
      return Element{Tensor::of<std::int64_t>({}, std::vector<std::int64_t>{drawn++})};
    };
  };
  const auto twice = [](const cairn::Features& features) {
    return Outputs{{"y", features["n"] + features["n"]}};
  };
  const Dataset endless = Dataset::from_generator(begin, {{{"n", {DType::kInt64, {}}}}, ""})
                              .map(twice, {.num_parallel_calls = 3});
  auto at_once = make_inline_offload();
  auto iterator = open(endless, {}, {.offload = at_once.get()});
  for (std::int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ((*iterator->next())[0].item<std::int64_t>(), 2 * i);
    EXPECT_LE(drawn, i + 6);
  }
}

TEST(ParallelMap, IsPartOfTheDescriptionAndItsNumberIsBounded) {
  const Dataset dataset = logs(9, {.num_parallel_calls = 4});
  EXPECT_EQ(serialize(parse_dataset(serialize(dataset))), serialize(dataset));
  EXPECT_NE(serialize(dataset), serialize(logs(9, {})));
  EXPECT_THAT(error_of([] { logs(9, {.num_parallel_calls = 0}); }),
              HasSubstr("map: num_parallel_calls is 0, it must be at least 1"));
  EXPECT_THAT(error_of([] { logs(9, {.num_parallel_calls = 257}); }),
              HasSubstr("at most 256 are possible"));
}

}  // namespace
}  // namespace cairn::testing
