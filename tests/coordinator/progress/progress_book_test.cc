#include "coordinator/progress/progress_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/cluster/restore_status.h"
#include "core/base/log.h"
#include "data/dataset/dataset_iterator.h"
#include "data/stage/dataset_wire.h"

namespace cairn {
namespace {

std::vector<std::vector<std::byte>> descriptions(std::size_t n) {
  return std::vector<std::vector<std::byte>>(n);
}
std::vector<std::byte> state_at(int n) { return {static_cast<std::byte>(n)}; }

struct Progress : ::testing::Test {
  ProgressBook book;

  std::shared_ptr<const PerWorkerDataset> add(const std::string& name, std::size_t pipelines = 1) {
    return book.add_dataset(name, descriptions(pipelines), ElementSpec{}, false);
  }
  // A closure that takes `count` elements of the dataset, sent to lane number `lane`.
  std::shared_ptr<Closure> take(const std::shared_ptr<const PerWorkerDataset>& dataset,
                                std::int64_t count, std::size_t lane = 0) {
    auto function = std::make_shared<RegisteredFunction>();
    function->elements = {count};
    auto closure = std::make_shared<Closure>();
    closure->function = function;
    closure->datasets = {dataset};
    book.take_elements(*closure, lane);
    return closure;
  }
};

TEST_F(Progress, GivesStepsInOrderAndCountsThoseThatAreCommitted) {
  EXPECT_EQ(book.give_step(1), 0);
  EXPECT_EQ(book.give_step(3), 1);
  EXPECT_EQ(book.give_step(1), 4);
  EXPECT_EQ(book.global_step(), 0);
  book.commit_steps(3);
  EXPECT_EQ(book.global_step(), 3);
}

TEST_F(Progress, IsToBeSavedEverySoManyStepsFromWhenThatWasSaid) {
  book.commit_steps(7);
  EXPECT_FALSE(book.save_due());
  book.save_every(5);
  book.commit_steps(4);
  EXPECT_FALSE(book.save_due());
  book.commit_steps(1);
  EXPECT_TRUE(book.save_due());
}

TEST_F(Progress, ASaveThatBeginsLateDoesNotPutOffTheNext) {
  book.save_every(5);
  book.commit_steps(8);  // it was due at 5, and another save was under way
  ASSERT_TRUE(book.save_due());
  book.save_begins();
  EXPECT_FALSE(book.save_due());
  book.commit_steps(2);
  EXPECT_TRUE(book.save_due());
}

TEST_F(Progress, ALaneDrawsFromItsOwnPipeline) {
  auto first = add("first", 2), second = add("second", 2);
  EXPECT_EQ(take(first, 1, 1)->takes.front().pipeline, 1u);
  EXPECT_EQ(take(second, 1, 0)->takes.front().pipeline, 2u);
  EXPECT_EQ(book.pipeline_name(2), "second/0");
  EXPECT_EQ(book.pipeline_name(77), "77");
}

TEST_F(Progress, ElementsOfACancelledClosureAreSpent) {
  auto data = add("data");
  auto closure = take(data, 2);
  book.spend_elements(*closure);
  EXPECT_THAT(book.positions().front().open, ::testing::IsEmpty());
  EXPECT_EQ(take(data, 1)->takes.front().ordinal, 2u);
}

TEST_F(Progress, CountsASkippedRowOnce) {
  add("data");
  EXPECT_EQ(book.count_skipped(0, 3), 3u);
  EXPECT_EQ(book.count_skipped(0, 3), 0u);
  EXPECT_EQ(book.count_skipped(0, 1), 0u);  // a lane that was asked before
  EXPECT_EQ(book.count_skipped(0, 5), 2u);
}

struct ProgressRestored : Progress {
  // A run that committed four elements of "data" and left two open.
  std::vector<PipelinePosition> saved;
  ProgressRestored() {
    ProgressBook before;
    std::swap(book, before);
    auto data = add("data");
    auto done = take(data, 4);
    take(data, 2);
    book.commit_elements(done->takes.front(), 4, state_at(4));
    saved = book.positions();
    std::swap(book, before);
  }
};

TEST_F(ProgressRestored, GoesOnWithWhatWasNotCommitted) {
  auto data = add("data");
  book.restore(9, saved);
  EXPECT_EQ(book.global_step(), 9);
  EXPECT_EQ(book.give_step(1), 9);
  EXPECT_EQ(take(data, 2)->takes.front().ordinal, 4u);
}

TEST_F(ProgressRestored, GivesItsPositionsToADatasetThatIsMadeLater) {
  book.restore(9, saved);
  auto data = add("data");
  EXPECT_EQ(take(data, 2)->takes.front().ordinal, 4u);
  EXPECT_EQ(take(add("other"), 1)->takes.front().ordinal, 0u);
}

TEST_F(ProgressRestored, BeginsADatasetAnewThatIsDealtOutToAnotherNumberOfPipelines) {
  std::string log;
  log_to([&log](LogLevel, const std::string& text) { log += text; });
  book.restore(9, saved);
  auto data = add("data", 2);
  log_to(nullptr);
  EXPECT_EQ(take(data, 1)->takes.front().ordinal, 0u);
  EXPECT_THAT(log, ::testing::HasSubstr("dataset data begins anew"));
}

TEST_F(ProgressRestored, LeavesDatasetsWhereTheyAreWithoutPositions) {
  auto data = add("data");
  take(data, 3);
  book.restore(9, {});
  EXPECT_EQ(take(data, 1)->takes.front().ordinal, 3u);
}

// ---- another dataset ----

// A run that stands behind the second of its batches, at the state that its iterator had there.
std::vector<PipelinePosition> position_in(const Dataset& dataset) {
  const auto iterator = open(dataset);
  iterator->next();
  iterator->next();
  return {{"data/0", 2, {}, {{2, iterator->state().bytes}}}};
}

TEST(ProgressOfOtherData, IsRefusedForADatasetThatIsThereAndForOneThatIsMadeLater) {
  const Dataset one = Dataset::range(10).batch(2), other = Dataset::range(11).batch(2);
  ProgressBook book;
  book.add_dataset("data", {serialize(one)}, one.element_spec(), true);
  EXPECT_THROW(book.verify(position_in(other)), InvalidArgumentError);
  book.verify(position_in(one));

  ProgressBook later;
  later.restore(2, position_in(other));
  try {
    later.add_dataset("data", {serialize(one)}, one.element_spec(), true);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("dataset \"data\""));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("new_data"));
  }
  EXPECT_THAT(later.positions(), ::testing::IsEmpty());
  later.add_dataset("data", {serialize(other)}, other.element_spec(), true);
  EXPECT_EQ(later.positions().front().next, 2u);
}

TEST(ProgressOfOtherData, IsLeftOutWhereTheDatasetIsNotToGoOn) {
  std::vector<PipelinePosition> positions = {{"train/0", 2, {}, {}}, {"test/0", 1, {}, {}}};
  keep_wanted(positions, {.positions_of = {"train"}});
  ASSERT_EQ(positions.size(), 1u);
  EXPECT_EQ(positions.front().name, "train/0");
  keep_wanted(positions, {.new_data = true});
  EXPECT_THAT(positions, ::testing::IsEmpty());
}

}  // namespace
}  // namespace cairn
