#include "core/base/look_up.h"

#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>
#include <vector>

namespace cairn {
namespace {

struct GivenUp : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Waits that take no time, and what each was allowed.
struct Waits {
  std::vector<Duration> allowed;
  std::size_t come_at = 1000;  // the wait in which it comes
  bool operator()(Duration some) {
    allowed.push_back(some);
    return allowed.size() > come_at;
  }
};

TEST(LookUp, AWaitOfAThreadThatDoesNotLookUpIsOneWait) {
  Waits waits;
  EXPECT_FALSE(wait_looking_up(std::chrono::hours(1), waits));
  EXPECT_EQ(waits.allowed, std::vector<Duration>{std::chrono::hours(1)});
}

TEST(LookUp, AWaitIsInPiecesThatAddUpToItsLimit) {
  const LookUp here([] {});
  Waits waits;
  EXPECT_FALSE(wait_looking_up(std::chrono::milliseconds(250), waits));
  const std::vector<Duration> pieces{kLookUpEvery, kLookUpEvery, std::chrono::milliseconds(50)};
  EXPECT_EQ(waits.allowed, pieces);
}

TEST(LookUp, WhatComesEndsTheWait) {
  const LookUp here([] {});
  Waits waits{.allowed = {}, .come_at = 1};
  EXPECT_TRUE(wait_looking_up(std::chrono::hours(1), waits));
  EXPECT_EQ(waits.allowed.size(), 2);
}

TEST(LookUp, WhatIsThrownGivesTheWaitUpWithTheLockHeldAsBefore) {
  const LookUp here([] { throw GivenUp("Ctrl-C"); });
  std::mutex mutex;
  std::unique_lock hold(mutex);
  Waits waits;
  EXPECT_THROW(wait_looking_up(hold, std::chrono::hours(1), waits), GivenUp);
  EXPECT_TRUE(hold.owns_lock());
  EXPECT_EQ(waits.allowed.size(), 1);
}

TEST(LookUp, ThatWasJustDoneIsNotDoneAgain) {
  int looks = 0;
  const LookUp here([&] { ++looks; });
  for (int i = 0; i < 1000; ++i) look_up();
  EXPECT_GE(looks, 1);
  EXPECT_LT(looks, 100);
}

TEST(LookUp, TheInnermostIsCalled) {
  int outer = 0, inner = 0;
  const LookUp a([&] { ++outer; });
  {
    const LookUp b([&] { ++inner; });
    look_up();
  }
  EXPECT_EQ(inner, 1);
  EXPECT_EQ(outer, 0);
  EXPECT_TRUE(looks_up());
  look_up();
  EXPECT_EQ(outer, 1);
}

}  // namespace
}  // namespace cairn
