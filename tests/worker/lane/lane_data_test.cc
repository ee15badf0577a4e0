// Which elements of a dataset a closure takes, on whichever lane it runs.
#include <gmock/gmock.h>

#include "tests/worker/lane/lane_fixture.h"
#include "worker/lane/lane.h"

namespace cairn::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::pair<std::string, Shape>> kReadTable{{"w", {10, 2}}};

Dataset numbers() { return Dataset::range(100).batch(4); }

void add_reader(LaneHarness& harness, PipelineId pipeline, const Dataset& dataset,
                FunctionId id = 3) {
  harness.lane.open_pipeline(pipeline, dataset);
  harness.add_function(
      id, {dataset.element_spec()}, [](const std::vector<TraceArgument>& arguments) {
        return Outputs{{"", std::get<Iterator>(arguments[0]).get_next().features["value"]}};
      });
}

std::vector<std::int64_t> taken(const ClosureResult& result) {
  const auto values = result.outputs.at(0).values<std::int64_t>();
  return {values.begin(), values.end()};
}

TEST(LaneData, ClosuresTakeTheElementsTheyName) {
  FakeCluster cluster(1, kReadTable);
  LaneHarness harness(cluster);
  add_reader(harness, 9, numbers());
  EXPECT_THAT(taken(harness.run(1, 3, {}, {{9, 0, 1, 0, {}}})), ElementsAre(0, 1, 2, 3));
  const auto result = harness.run(2, 3, {}, {{9, 1, 1, 0, {}}});
  EXPECT_THAT(taken(result), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(result.positions.at(0).ordinal, 2u);
}

TEST(LaneData, ClosuresThatComeTogetherReadInTheirOrderWithOneIterator) {
  FakeCluster cluster(1, kReadTable);
  LaneHarness harness(cluster, 4);
  add_reader(harness, 9, numbers());
  std::vector<std::shared_ptr<Started>> together;
  for (std::uint64_t i = 0; i < 5; ++i)
    together.push_back(harness.start(1 + i, 3, {}, {{9, i, 1, 0, {}}}));
  ASSERT_TRUE(harness.finish(together));
  EXPECT_THAT(taken(together.back()->result), ElementsAre(16, 17, 18, 19));
  EXPECT_EQ(harness.lane.stats().iterators_opened, 1u);
}

TEST(LaneData, ARetriedClosureOnAnotherLaneTakesTheSameElements) {
  FakeCluster cluster(1, kReadTable);
  LaneHarness first(cluster), second(cluster);
  add_reader(first, 9, numbers());
  add_reader(second, 9, numbers());
  const auto before = first.run(1, 3, {}, {{9, 0, 1, 0, {}}});
  const auto lost = first.run(2, 3, {}, {{9, 1, 1, 0, {}}});
  const auto& state = before.positions.at(0);
  EXPECT_EQ(taken(second.run(2, 3, {}, {{9, 1, 1, state.ordinal, state.state}})), taken(lost));
  // from further back, too
  EXPECT_EQ(taken(second.run(2, 3, {}, {{9, 1, 1, 0, {}}})), taken(lost));
}

TEST(LaneData, ARetryDoesNotCostALaneThePlaceInItsOwnPipeline) {
  FakeCluster cluster(1, kReadTable);
  LaneHarness harness(cluster);
  add_reader(harness, 1, numbers());
  harness.lane.open_pipeline(2, Dataset::range(50).batch(4));
  auto own = harness.run(1, 3, {}, {{1, 0, 1, 0, {}}});
  harness.run(2, 3, {}, {{2, 5, 1, 0, {}}});
  const std::vector<std::byte> damaged(3, std::byte{0xff});  // would be refused if it were opened
  EXPECT_THAT(taken(harness.run(3, 3, {}, {{1, 1, 1, 1, damaged}})), ElementsAre(4, 5, 6, 7));
}

TEST(LaneData, LanesThatTakeTurnsAtOnePipelineEachGoOnWithTheirIterator) {
  FakeCluster cluster(1, kReadTable);
  LaneHarness harness(cluster);
  add_reader(harness, 1, numbers());
  harness.run(1, 3, {}, {{1, 0, 1, 0, {}}});
  const std::vector<std::byte> damaged(3, std::byte{0xff});  // would be refused if it were opened
  EXPECT_THAT(taken(harness.run(2, 3, {}, {{1, 2, 1, 2, damaged}})), ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(taken(harness.run(3, 3, {}, {{1, 4, 1, 4, damaged}})), ElementsAre(16, 17, 18, 19));
}

TEST(LaneData, AnIteratorThatIsFarBehindGivesWayToOneThatIsOpenedAtTheState) {
  FakeCluster cluster(1, kReadTable);
  LaneHarness harness(cluster);
  add_reader(harness, 1, Dataset::range(1000).batch(4));
  harness.run(1, 3, {}, {{1, 0, 1, 0, {}}});
  const std::vector<std::byte> damaged(3, std::byte{0xff});
  EXPECT_THAT(harness.error_of(2, 3, {}, {{1, 200, 1, 200, damaged}}), HasSubstr("pipeline 1"));
}

TEST(LaneData, TheEndOfTheDataIsOutOfRangeWithPipelineAndPosition) {
  FakeCluster cluster(1, kReadTable);
  LaneHarness harness(cluster);
  add_reader(harness, 9, numbers());
  EXPECT_THAT(harness.error_of(1, 3, {}, {{9, 25, 1, 0, {}}}),
              testing::AllOf(HasSubstr("OutOfRange: "), HasSubstr("pipeline 9"), HasSubstr("25")));
  EXPECT_THAT(taken(harness.run(2, 3, {}, {{9, 24, 1, 0, {}}})), ElementsAre(96, 97, 98, 99));
}

TEST(LaneData, ADatasetsOwnErrorKeepsItsCodeAndNamesTheElements) {
  FakeCluster cluster(1, kReadTable);
  LaneHarness harness(cluster);
  const Dataset missing =
      Dataset::csv("no-such-file.csv",
                   CsvSchema{.columns = {{.name = "value", .dtype = DType::kInt64}}})
          .batch(2);
  add_reader(harness, 9, missing);
  EXPECT_THAT(harness.error_of(1, 3, {}, {{9, 0, 1, 0, {}}}),
              testing::AllOf(HasSubstr("NotFound: "), HasSubstr("no-such-file.csv"),
                             HasSubstr("elements [0, 1) of pipeline 9")));
}

}  // namespace
}  // namespace cairn::worker
