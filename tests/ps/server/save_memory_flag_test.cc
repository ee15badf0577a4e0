#include "ps/server/save_memory.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace cairn::ps {
namespace {

TEST(SaveMemoryFlag, IsAShareOrBytes) {
  EXPECT_EQ(parse_save_memory("10%").share, 0.1);
  EXPECT_EQ(parse_save_memory("0.5").share, 0.5);
  EXPECT_EQ(parse_save_memory("0.5").bytes, 0u);
  EXPECT_EQ(parse_save_memory("2 GB").bytes, 2'000'000'000u);
  EXPECT_EQ(parse_save_memory("auto").share, SaveMemory().share);
  for (const char* wrong : {"", "25", "-1 GB", "120%"})
    EXPECT_THROW(parse_save_memory(wrong), InvalidArgumentError) << wrong;
}

}  // namespace
}  // namespace cairn::ps
