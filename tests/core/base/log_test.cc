#include "core/base/log.h"

#include <gmock/gmock.h>

namespace cairn {
namespace {
using ::testing::HasSubstr;

TEST(Log, AFullDiskIsToldOnceOnStandardError) {
  ::testing::internal::CaptureStderr();
  log_to("/dev/full", "test");
  for (int i = 0; i < 5; ++i) log_info("a line that is lost");
  log_to("", "test");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("the log /dev/full cannot be written"));
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
}

}  // namespace
}  // namespace cairn
