#include "tools/job/run/progress_line.h"

#include <gmock/gmock.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>

#include "core/base/error.h"

namespace cairn::tools {
namespace {
using testing::HasSubstr;
using testing::Not;

Progress progress() {
  return {.step = 12345,
          .steps = 1234567,
          .examples_per_s = 1234567,
          .loss = 0.3141,
          .metric = "auc",
          .metric_value = 0.9142,
          .staleness = 12.3,
          .workers_up = 16,
          .workers = 16,
          .ps_up = 8,
          .ps = 8,
          .seconds_left = 4321};
}

TEST(ProgressText, FitsWhateverWidthATerminalHas) {
  for (std::size_t columns = 1; columns < 150; ++columns)
    EXPECT_LE(progress_text(progress(), columns).size(), columns);
}

TEST(ProgressText, LeavesOutFirstWhatMattersLeast) {
  EXPECT_THAT(progress_text(progress()),
              HasSubstr("staleness 12.3  workers 16/16  ps 8/8  72:01 left"));
  const std::string narrow = progress_text(progress(), 79);
  EXPECT_THAT(narrow, HasSubstr("step 12345/1234567  1234567 examples/s  loss 0.3141"));
  EXPECT_THAT(narrow, HasSubstr("72:01 left"));
  EXPECT_THAT(narrow, Not(HasSubstr("staleness")));
  EXPECT_EQ(progress_text(progress(), 20), "step 12345/1234567");
  EXPECT_EQ(progress_text(progress(), 6), "step 1");
}

// The output of `work` on a terminal.
std::string on_a_terminal(const std::function<void()>& work) {
  int ours = -1, theirs = -1;
  CAIRN_CHECK(::openpty(&ours, &theirs, nullptr, nullptr, nullptr) == 0,
              "there is a terminal to be had");
  std::fflush(stdout);  // earlier output goes where it was to go
  const int before = ::dup(STDOUT_FILENO);
  ::dup2(theirs, STDOUT_FILENO);
  work();
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  ::close(theirs);
  // A terminal hands its bytes on piece by piece; they end when its other side has been closed.
  std::string seen;
  std::array<char, 4096> text;
  for (ssize_t size; (size = ::read(ours, text.data(), text.size())) > 0;)
    seen.append(text.data(), static_cast<std::size_t>(size));
  ::close(ours);
  return seen;
}

TEST(ProgressLine, WhatIsPrintedAfterItsEndBeginsOnAFreshLine) {
  const std::string seen = on_a_terminal([] {
    ProgressLine line;
    line.say("it begins");
    line.show(progress());
    line.end();
    std::printf("done\n");
    std::fflush(stdout);
  });
  EXPECT_THAT(seen, testing::StartsWith("it begins\r\n"));
  EXPECT_THAT(seen, testing::HasSubstr("\x1b[Kstep 12345"));
  EXPECT_THAT(seen, testing::EndsWith("left\r\ndone\r\n"));
}

}  // namespace
}  // namespace cairn::tools
