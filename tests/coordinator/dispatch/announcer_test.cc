#include "coordinator/dispatch/announcer.h"

#include <gtest/gtest.h>

#include "coordinator/journal/journal.h"
#include "tests/coordinator/cluster/simulated_session.h"

namespace cairn {
namespace {

constexpr std::uint64_t kBlock = 1 << 16;

struct Announcing : ::testing::Test {
  SimulatedSession ground;
  ClusterMembers members;
  int pumped = 0;
  Announcer announcer{ground.session, members, ground.recorder, [this] { ++pumped; }};
  ~Announcing() override { ground.session.tasks.cancel_all(); }

  void tell(Ps& ps) { ground.reactor.wait(announcer.tell(&ps, announcer.next())); }
  void finish(int closures) {
    for (int i = 0; i < closures; ++i) {
      ground.session.queue.put(std::make_shared<Closure>());
      ground.session.queue.finish(*ground.session.queue.pop(), {});
    }
  }
};

TEST_F(Announcing, AClosureMayGoOnceEveryPsKnowsOfIt) {
  Ps &first = add_ps(members), &second = add_ps(members);
  tell(first);
  EXPECT_FALSE(announcer.announced(1));
  tell(second);
  EXPECT_TRUE(announcer.announced(1));
  EXPECT_TRUE(announcer.announced(kBlock - 1));
}

TEST_F(Announcing, NumbersAreAnnouncedWhenHalfABlockIsLeft) {
  add_ps(members);
  EXPECT_TRUE(announcer.due());
  const std::uint64_t below = announcer.next().closures_below;
  EXPECT_FALSE(announcer.due());
  announcer.want(below - kBlock / 2 - 1);
  EXPECT_FALSE(announcer.due());
  announcer.want(below - kBlock / 2);
  EXPECT_TRUE(announcer.due());
}

TEST_F(Announcing, WhatHasEndedIsDueAfterAThousandClosures) {
  add_ps(members);
  const std::uint64_t settled = announcer.next().settled_below;
  finish(1023);
  EXPECT_FALSE(announcer.due());
  finish(1);
  EXPECT_TRUE(announcer.due());
  EXPECT_EQ(announcer.next().settled_below, settled + 1024);
}

TEST_F(Announcing, ALaterWordNeverSaysLess) {
  add_ps(members);
  announcer.want(100);
  const auto first = announcer.next();
  finish(3);
  const auto second = announcer.next();
  EXPECT_GE(second.closures_below, first.closures_below);
  EXPECT_GT(second.settled_below, first.settled_below);
}

TEST_F(Announcing, ComesByItselfAndPumps) {
  add_ps(members);
  ground.session.tasks.spawn("announce", announcer.run());
  ground.run_ready();
  EXPECT_TRUE(announcer.announced(1));
  EXPECT_EQ(pumped, 1);

  announcer.want(kBlock);
  announcer.hurry();
  ground.run_ready();
  EXPECT_TRUE(announcer.announced(kBlock));
  EXPECT_EQ(pumped, 2);
}

TEST_F(Announcing, APsThatIsAwayHoldsUpNewNumbers) {
  add_ps(members);
  add_ps(members).ready = false;
  ground.session.tasks.spawn("announce", announcer.run());
  ground.run_ready();
  EXPECT_FALSE(announcer.announced(1));
}

// A successor numbers its closures above all that shards may have heard of.
TEST(AnnouncingWithAJournal, ShardsHearOnlyOfNumbersThatAreRecorded) {
  MemoryDisk disk;
  const auto journal = journal::Journal::open(disk, {.folder = "/journal"}, "cairn");
  EngineOptions options;
  options.session = journal::session_of(journal, 7);
  SimulatedSession ground(std::move(options));
  ClusterMembers members;
  add_ps(members);
  ground.reactor.wait(ground.recorder.begin(1));
  std::vector<std::uint64_t> recorded;
  Announcer announcer{ground.session, members, ground.recorder,
                      [&] { recorded.push_back(journal->state().closures_below()); }};
  ground.session.tasks.spawn("announce", announcer.run());
  ground.run_for(std::chrono::milliseconds(100));
  ASSERT_TRUE(announcer.announced(kBlock - 1));
  ASSERT_FALSE(recorded.empty());
  EXPECT_GE(recorded.front(), kBlock);
  ground.session.tasks.cancel_all();
}

// A shard forgets closures that have ended. If the journal then lost their ends, a successor could
// not tell any more which of them the shard has.
TEST(AnnouncingWithAJournal, ShardsHearOfAnEndOnceItIsKept) {
  MemoryDisk disk;
  const auto journal = journal::Journal::open(
      disk, {.folder = "/journal", .sync_after = std::chrono::milliseconds(50)}, "cairn");
  EngineOptions options;
  options.session = journal::session_of(journal, 7);
  SimulatedSession ground(std::move(options));
  ClusterMembers members;
  add_ps(members);
  ground.reactor.wait(ground.recorder.begin(1));
  Announcer announcer{ground.session, members, ground.recorder, [] {}};
  for (int i = 0; i < 5; ++i) {
    ground.session.queue.put(std::make_shared<Closure>());
    ground.session.queue.finish(*ground.session.queue.pop(), {});
  }
  EXPECT_EQ(announcer.next().settled_below, 0u);
  ground.run_for(std::chrono::milliseconds(30));
  EXPECT_EQ(announcer.next().settled_below, 0u);
  ground.run_for(std::chrono::milliseconds(30));
  EXPECT_EQ(announcer.next().settled_below, 6u);
  EXPECT_EQ(journal->state().known().low_watermark, 6u);
  ground.session.tasks.cancel_all();
}

}  // namespace
}  // namespace cairn
