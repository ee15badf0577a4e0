#include "tools/job/run/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace cairn::tools {
namespace {

TEST(Interrupts, TheFirstSignalIsNotedAndNothingElse) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const Interrupts interrupts;
    EXPECT_EQ(Interrupts::signal(), 0);
    std::raise(number);
    EXPECT_EQ(Interrupts::signal(), number);
  }
}

TEST(InterruptsDeathTest, TheNextEndsTheProcessAtOnce) {
  EXPECT_EXIT(
      {
        const Interrupts interrupts;
        for (;;) std::raise(SIGINT);  // echoes first, then the second one
      },
      testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(
      {
        const Interrupts interrupts;
        std::raise(SIGHUP);
        for (;;) std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

// The alarm is raised here, so that the test does not wait for it.
TEST(InterruptsDeathTest, WhatTheFirstBeginsHasALimitAfterWhichTheProcessEndsWithItsStatus) {
  EXPECT_EXIT(
      {
        const Interrupts interrupts;
        std::raise(SIGTERM);
        if (::alarm(1000) == 0) ::_exit(1);  // none was set
        std::raise(SIGALRM);
      },
      testing::ExitedWithCode(128 + SIGTERM), "could not be saved");
}

TEST(Interrupts, ASaveThatTookLongHasTwiceThatTime) {
  {
    const Interrupts interrupts;
    EXPECT_EQ(Interrupts::allow_for(2), 30u);
    EXPECT_EQ(Interrupts::allow_for(250), 500u);
    EXPECT_EQ(::alarm(0), 0u) << "there was no signal";
    std::raise(SIGINT);
    EXPECT_GT(::alarm(500), 400u);
  }
  EXPECT_EQ(::alarm(0), 0u) << "it goes with the object";
}

TEST(Interrupts, ATerminalThatClosesIsNoSecondWish) {
  const Interrupts interrupts;
  std::raise(SIGINT);
  for (int i = 0; i < 3; ++i) std::raise(SIGHUP);
  EXPECT_EQ(Interrupts::signal(), SIGINT);
}

TEST(Interrupts, AHangupThatIsIgnoredStaysSo) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const Interrupts interrupts;
    std::raise(SIGHUP);
    EXPECT_EQ(Interrupts::signal(), 0);
  }
  std::signal(SIGHUP, before);
}

TEST(Interrupts, APipeThatNobodyReadsIsAnErrorOfTheWrite) {
  const Interrupts interrupts;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  ::close(ends[1]);
}

}  // namespace
}  // namespace cairn::tools
