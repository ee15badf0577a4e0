#include "service/dispatcher/job_book.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "data/dataset/dataset.h"

namespace cairn::service {
namespace {

using Numbers = std::vector<std::uint64_t>;

const DataWorkerPlace kFirst{"sim://a", 1}, kSecond{"sim://b", 2};

TimePoint at(int seconds) { return TimePoint(std::chrono::seconds(seconds)); }

JobRequest dynamic_job(std::int64_t elements, std::int64_t each, const std::string& key = "job") {
  return {.key = key,
          .mode = ProcessingMode::kDynamic,
          .dataset = 7,
          .plan = {.size = elements, .each = each}};
}

TEST(JobBook, SplitsAreDealtInOrderToWhoeverAsks) {
  JobBook book({});
  book.report(kFirst, {}, at(0));
  book.report(kSecond, {}, at(0));
  const std::uint64_t job = book.open(dynamic_job(5, 2), at(0)).id;
  EXPECT_EQ(book.next_task(job, 1, {})->piece.begin, 0);
  EXPECT_EQ(book.next_task(job, 2, {})->piece.begin, 2);
  EXPECT_EQ(book.next_task(job, 1, {0})->piece.end, 5);
  EXPECT_FALSE(book.next_task(job, 2, {1}).has_value());
}

TEST(JobBook, AJobHasFinishedWhenAllOfItsSplitsAreDone) {
  JobBook book({});
  book.report(kFirst, {}, at(0));
  const std::uint64_t job = book.open(dynamic_job(4, 2), at(0)).id;
  book.next_task(job, 1, {});
  EXPECT_TRUE(book.finish(job, 0, 2));
  EXPECT_FALSE(book.job(job).finished());
  book.next_task(job, 1, {});
  EXPECT_TRUE(book.finish(job, 1, 2));
  EXPECT_FALSE(book.finish(job, 1, 2)) << "the same again";
  EXPECT_TRUE(book.job(job).finished());
  EXPECT_EQ(book.job(job).elements, 4u);
}

TEST(JobBook, WhatAWorkerWasDealtAndDoesNotHaveIsDealtToItAgain) {
  JobBook book({});
  book.report(kFirst, {}, at(0));
  const std::uint64_t job = book.open(dynamic_job(4, 2), at(0)).id;
  book.next_task(job, 1, {});  // the answer is lost
  EXPECT_EQ(book.next_task(job, 1, {})->number, 0u);
  EXPECT_EQ(book.next_task(job, 1, {0})->number, 1u);
}

TEST(JobBook, SplitsOfAWorkerThatIsSilentAreDealtAgain) {
  JobBook book({});
  book.report(kFirst, {}, at(0));
  book.report(kSecond, {}, at(8));
  const std::uint64_t job = book.open(dynamic_job(4, 2), at(0)).id;
  book.next_task(job, 1, {});
  EXPECT_EQ(book.lose_silent(at(5)), std::vector{kFirst});
  EXPECT_EQ(book.next_task(job, 2, {})->number, 0u);
}

TEST(JobBook, AWorkerThatComesBackKeepsItsSplitsUnlessAnotherHasThem) {
  JobBook book({});
  book.report(kFirst, {}, at(0));
  book.report(kSecond, {}, at(0));
  const std::uint64_t job = book.open(dynamic_job(4, 2), at(0)).id;
  book.next_task(job, 1, {});
  book.next_task(job, 1, {0});
  book.report(kSecond, {}, at(9));
  book.lose_silent(at(5));
  book.next_task(job, 2, {});  // takes split 0
  const auto drop = book.report(kFirst, {{job, 0}, {job, 1}}, at(10));
  EXPECT_EQ(drop, (std::vector<TaskRef>{{job, 0}}));
  EXPECT_EQ(book.job(job).dealt.at(1), kFirst);
}

TEST(JobBook, AWorkerThatWasStartedAgainHasLostItsSplits) {
  JobBook book({});
  book.report(kFirst, {}, at(0));
  const std::uint64_t job = book.open(dynamic_job(4, 2), at(0)).id;
  book.next_task(job, 1, {});
  book.report({kFirst.address, 3}, {}, at(1));
  EXPECT_EQ(book.next_task(job, 3, {})->number, 0u);
  EXPECT_THROW(book.next_task(job, 1, {}), FailedPreconditionError);
}

TEST(JobBook, InModeOffEveryWorkerGivesAllOfItAndALaterOneToo) {
  JobBook book({});
  book.report(kFirst, {}, at(0));
  const std::uint64_t job =
      book.open({.key = "job", .mode = ProcessingMode::kOff, .dataset = 7}, at(0)).id;
  EXPECT_EQ(book.next_task(job, 1, {})->piece.of, Piece::Of::kAll);
  EXPECT_FALSE(book.next_task(job, 1, {0}).has_value());
  book.report(kSecond, {}, at(1));
  EXPECT_EQ(book.next_task(job, 2, {})->number, 1u);
  book.finish(job, 0, 4);
  EXPECT_FALSE(book.job(job).finished());
  book.lose_silent(at(5));  // both; what was left of the second one's goes with it
  EXPECT_TRUE(book.job(job).finished());
}

TEST(JobBook, ModesThatDealByTheListGiveEachWorkerItsOwnPart) {
  JobBook book({kFirst.address, kSecond.address});
  book.report(kSecond, {}, at(0));
  const std::uint64_t job =
      book.open({.key = "job", .mode = ProcessingMode::kData, .dataset = 7}, at(0)).id;
  const Piece piece = book.next_task(job, 2, {})->piece;
  EXPECT_EQ(piece.workers, 2);
  EXPECT_EQ(piece.worker, 1);
  book.finish(job, 1, 4);
  EXPECT_FALSE(book.job(job).finished()) << "the first worker's part is missing";
}

TEST(JobBook, ANamedJobIsJoinedOnlyWithItsOwnDatasetAndMode) {
  JobBook book({});
  const std::uint64_t job = book.open(dynamic_job(4, 2), at(0)).id;
  EXPECT_EQ(book.open(dynamic_job(4, 2), at(0)).id, job);
  EXPECT_NE(book.open(dynamic_job(4, 2, "other"), at(0)).id, job);
  JobRequest wrong = dynamic_job(4, 2);
  wrong.dataset = 8;
  EXPECT_THROW(book.open(wrong, at(0)), FailedPreconditionError);
  wrong = dynamic_job(4, 2);
  wrong.mode = ProcessingMode::kOff;
  EXPECT_THROW(book.open(wrong, at(0)), FailedPreconditionError);
}

TEST(JobBook, AJobThatNobodyAsksAboutIsForgotten) {
  JobBook book({});
  const std::uint64_t job = book.open(dynamic_job(4, 2), at(0)).id;
  book.heard(job, 1, {.handed = 2}, at(10));
  EXPECT_TRUE(book.forget(at(5), at(99)).empty());
  EXPECT_EQ(book.forget(at(11), at(99)).size(), 1u);
  EXPECT_THROW(book.job(job), NotFoundError);
}

TEST(JobBook, AJobWithoutANameIsForgottenSoonerWhenItsConsumerHasLeft) {
  JobBook book({});
  const std::uint64_t job = book.open(dynamic_job(4, 2, "#1"), at(0)).id;
  book.heard(job, 1, {.handed = 2}, at(10));
  EXPECT_TRUE(book.forget(at(5), at(11)).empty()) << "it is being read";
  book.heard(job, 1, {.handed = 2, .left = true}, at(10));
  EXPECT_EQ(book.forget(at(5), at(11)).size(), 1u);
}

TEST(JobBook, ItsJournalGivesTheSameBook) {
  JobBook book({});
  book.report(kFirst, {}, at(0));
  book.report(kSecond, {}, at(0));
  const std::uint64_t job = book.open(dynamic_job(9, 2), at(0)).id;
  for (std::uint64_t i = 0; i < 3; ++i) book.next_task(job, 1, {0, 1, 2});
  book.finish(job, 1, 2);
  book.heard(job, 77, {.handed = 2, .left = true}, at(0));
  JobBook again({});
  again.load(parse_json(json_text(book.json()), "the journal"), at(100));
  EXPECT_EQ(json_text(again.json()), json_text(book.json()));
  EXPECT_EQ(again.next_task(job, 1, {0, 2})->number, 3u);
  EXPECT_EQ(again.lose_silent(at(101)), std::vector{kFirst}) << "it does not report";
}

TEST(JobBook, ADamagedJournalIsDataLoss) {
  JobBook book({});
  EXPECT_THROW(book.load(parse_json(R"({"format": 1, "jobs": 3})", "it"), at(0)), DataLossError);
  EXPECT_THROW(book.load(parse_json(R"({"format": 9})", "it"), at(0)), DataLossError);
}

TEST(JobBook, AJournalOfAnotherListOfWorkersIsRefused) {
  JobBook book({kFirst.address});
  book.open({.key = "job", .mode = ProcessingMode::kFile, .dataset = 7}, at(0));
  JobBook other({kSecond.address});
  EXPECT_THROW(other.load(book.json(), at(0)), FailedPreconditionError);
}

}  // namespace
}  // namespace cairn::service
