#include "tools/progress_line.h"

#include <gmock/gmock.h>

namespace cairn::tools {
namespace {
using testing::HasSubstr;
using testing::Not;

Progress progress() {
  return {.step = 12345, .steps = 1234567, .examples_per_s = 1234567, .loss = 0.3141, .auc = 0.9142, .staleness = 12.3,
          .workers_up = 16, .workers = 16, .ps_up = 8, .ps = 8, .seconds_left = 4321};
}

TEST(ProgressText, FitsWhateverWidthATerminalHas) {
  for (std::size_t columns = 1; columns < 150; ++columns) EXPECT_LE(progress_text(progress(), columns).size(), columns);
}

TEST(ProgressText, LeavesOutFirstWhatMattersLeast) {
  EXPECT_THAT(progress_text(progress()), HasSubstr("staleness 12.3  workers 16/16  ps 8/8  72:01 left"));
  const std::string narrow = progress_text(progress(), 79);
  EXPECT_THAT(narrow, HasSubstr("step 12345/1234567  1234567 examples/s  loss 0.3141"));
  EXPECT_THAT(narrow, HasSubstr("72:01 left"));
  EXPECT_THAT(narrow, Not(HasSubstr("staleness")));
  EXPECT_EQ(progress_text(progress(), 20), "step 12345/1234567");
  EXPECT_EQ(progress_text(progress(), 6), "step 1");
}

}  // namespace
}  // namespace cairn::tools
