#include "coordinator/cluster/loss_ledger.h"

#include <gmock/gmock.h>

#include "coordinator/cluster/shard_client.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;

// Two ps; closures are numbered in the order of their commits, and sent under layout 1 at first.
struct Ledger : ::testing::Test {
  LossLedger ledger{2};
  std::uint64_t next = 1;

  void commit(int closures, std::uint64_t sent_layout = 1) {
    for (int i = 0; i < closures; ++i) ledger.commit(next++, sent_layout);
  }
  LossLedger::Rebuilt from(LossLedger::Holdings holdings, std::uint64_t version) {
    const std::uint64_t covered = holdings.covers;
    return {.layout_version = version,
            .from = std::move(holdings),
            .has = std::make_shared<const AppliedClosures>(AppliedClosures{covered + 1, {}}),
            .absence = {}};
  }
};

TEST_F(Ledger, ARebuiltPsLacksWhatWasCommittedSinceItsCheckpoint) {
  commit(10);
  const auto checkpoint = ledger.holdings();
  commit(3);
  EXPECT_EQ(ledger.rebuilt(0, from(checkpoint, 2)), 3u);
  EXPECT_EQ(ledger.lost_updates(), 3u);
  EXPECT_THAT(ledger.holdings().missing, ElementsAre(3, 0));
}

TEST_F(Ledger, WithoutACheckpointItLacksAll) {
  commit(7);
  EXPECT_EQ(ledger.rebuilt(1, {.layout_version = 2}), 7u);
}

TEST_F(Ledger, TheSecondRebuildFromOneCheckpointLosesOnlyWhatCameSince) {
  commit(10);
  const auto checkpoint = ledger.holdings();
  commit(3);
  ledger.rebuilt(0, from(checkpoint, 2));
  commit(2, 2);
  EXPECT_EQ(ledger.rebuilt(0, from(checkpoint, 3)), 2u);
  EXPECT_EQ(ledger.lost_updates(), 5u);
}

TEST_F(Ledger, WhatItLackedAtTheCutIsNotLostAgain) {
  commit(10);
  ledger.rebuilt(0, {.layout_version = 2});
  const auto checkpoint = ledger.holdings();  // without ten on ps 0
  commit(1, 2);
  EXPECT_EQ(ledger.rebuilt(0, from(checkpoint, 3)), 1u);
  EXPECT_THAT(ledger.holdings().missing, ElementsAre(11, 0));
}

TEST_F(Ledger, AClosureSentBeforeTheRebuildAndCommittedAfterItIsLostUnlessTheCheckpointHasIt) {
  commit(10);
  const auto checkpoint = ledger.holdings();
  ledger.rebuilt(0, from(checkpoint, 2));
  EXPECT_FALSE(ledger.commit(10, 1));  // a late answer: the checkpoint had it
  EXPECT_TRUE(ledger.commit(11, 1));
  EXPECT_FALSE(ledger.commit(12, 2));
  EXPECT_EQ(ledger.lost_updates(), 1u);
}

TEST_F(Ledger, AReportTellsAbsenceAndCost) {
  auto absence = ledger.lost("/job:ps/task:0", "killed", 5);
  commit(4);
  ledger.rebuilt(0, {.layout_version = 2, .absence = absence});
  ledger.back(absence, 1.5);
  EXPECT_TRUE(ledger.first_push(absence, 8));
  EXPECT_FALSE(ledger.first_push(absence, 9));  // only the first
  ledger.commit(next++, 1);                     // late: it is of the same loss
  const LossReport& report = ledger.reports().at(0);
  EXPECT_EQ(report.back_after_seconds, 1.5);
  EXPECT_EQ(report.first_push_after_seconds, 3);
  EXPECT_EQ(report.lost_updates, 5u);
}

TEST_F(Ledger, ARestoreUndoesLossesOfThisSessionAndTakesOnThoseOfTheCheckpoint) {
  commit(5);
  ledger.rebuilt(0, {.layout_version = 2});
  ledger.restored(2);
  EXPECT_EQ(ledger.lost_on_the_way(), 2u);
  EXPECT_EQ(ledger.lost_updates(), 5u);
  const auto checkpoint = ledger.holdings();
  EXPECT_THAT(checkpoint.missing, ElementsAre(0, 0));
  commit(1, 2);
  EXPECT_EQ(ledger.rebuilt(0, from(checkpoint, 3)), 1u);
  EXPECT_EQ(ledger.lost_on_the_way(), 3u);
}

}  // namespace
}  // namespace cairn
