#include "tools/launch/memory_text.h"

#include <gtest/gtest.h>

namespace cairn::tools {
namespace {

constexpr std::int64_t kMegabyte = 1 << 20;

TEST(MemoryText, SaysWhatOfAPsIsRowsAndWhatIsBuffers) {
  const Json ps = {{"memory_bytes", 1000 * kMegabyte},
                   {"buffer_bytes", 12 * kMegabyte},
                   {"shards",
                    {{{"bytes", 600 * kMegabyte}, {"staged_bytes", kMegabyte}},
                     {{"bytes", 300 * kMegabyte}, {"staged_bytes", 0}}}}};
  EXPECT_EQ(memory_text(ps), " memory 1000 MB (rows 900, waiting pieces 1, buffers 12)");
}

TEST(MemoryText, SaysWhatOfAWorkerIsShared) {
  const Json worker = {
      {"memory_bytes", 80 * kMegabyte}, {"buffer_bytes", 0}, {"shared_bytes", 56 * kMegabyte}};
  EXPECT_EQ(memory_text(worker), " memory 80 MB (buffers 0, shared with ps 56)");
}

TEST(MemoryText, IsEmptyOfATaskThatHasNotSaidYet) {
  EXPECT_EQ(memory_text(Json::object()), "");
  EXPECT_EQ(memory_text(Json()), "");
  EXPECT_EQ(memory_text({{"memory_bytes", 3 * kMegabyte}}), " memory 3 MB");
}

TEST(SaveText, SaysHowFarTheSaveOfAPsIs) {
  Json ps = {{"shards",
              {{{"save_blocks", 100}, {"saved_blocks", 40}, {"saved_bytes", 3 * kMegabyte}},
               {{"save_blocks", 100},
                {"saved_blocks", 46},
                {"saved_bytes", 4 * kMegabyte},
                {"copied_bytes", 2 * kMegabyte},
                {"copied_bytes_max", 5 * kMegabyte}}}}};
  EXPECT_EQ(save_text(ps), " saving: 43 %, 7 MB written, 2 MB of at most 5 MB copied aside");
  ps["shards"][0]["waiting"] = 2;
  EXPECT_EQ(save_text(ps),
            " saving: 43 %, 7 MB written, 2 MB of at most 5 MB copied aside, 2 pushes wait");
}

TEST(SaveText, IsEmptyOfATaskThatSavesNothing) {
  EXPECT_EQ(save_text(Json()), "");
  EXPECT_EQ(save_text({{"shards", {{{"save_blocks", 0}, {"saved_blocks", 0}}}}}), "");
}

TEST(RestoreText, SaysHowFarAPsIsThatRestoresOnDemand) {
  const Json ps = {{"shards",
                    {{{"restored_bytes", 3 * kMegabyte}, {"restoring_bytes", 5 * kMegabyte}},
                     {{"restored_bytes", 1 * kMegabyte}, {"restoring_bytes", 6 * kMegabyte}}}}};
  EXPECT_EQ(restore_text(ps), " restoring on demand: 4 of 11 MB are there");
  EXPECT_EQ(restore_text(Json()), "");
  EXPECT_EQ(restore_text({{"shards", {{{"restoring_bytes", 0}}}}}), "");
}

}  // namespace
}  // namespace cairn::tools
