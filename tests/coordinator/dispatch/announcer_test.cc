#include "coordinator/dispatch/announcer.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cairn
