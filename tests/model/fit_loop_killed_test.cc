// fit() with random callbacks, killed and started again: it ends as if nothing had happened.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/model/random_fit.h"
#include "tests/tools/end_in_time.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"

namespace cairn {
namespace {

using testing::Death;
using testing::Killed;
using testing::RandomFit;

Death random_death(Random& random) {
  return {.at = static_cast<Death::At>(random.below(4)),
          .epoch = static_cast<std::int64_t>(random.below(10)),
          .step = static_cast<std::int64_t>(random.below(5)),
          .die = [] { throw Killed(); }};
}

std::string undisturbed(std::uint64_t seed) {
  const tools::TempFolder folder;
  return RandomFit(seed, folder.path(), {}).run();
}

class KilledFit : public ::testing::TestWithParam<int> {};

TEST_P(KilledFit, EndsAsAnUndisturbedOneWhateverItsCallbacksRemember) {
  constexpr int kPrograms = 4;
  for (int i = 0; i < kPrograms; ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * kPrograms + i);
    SCOPED_TRACE(str("seed ", seed));
    const tools::TempFolder folder;
    Random random(seed + 1'000'000);
    std::string died;
    std::string ended;
    for (std::uint64_t kills = 1 + random.below(5); ended.empty(); --kills) {
      const Death death = kills > 0 ? random_death(random) : Death{};
      died += str(" at ", int(death.at), " in epoch ", death.epoch, " step ", death.step, ";");
      try {
        ended = RandomFit(seed, folder.path(), death).run();
      } catch (const Killed&) {
      }
      if (kills == 0) break;
    }
    SCOPED_TRACE(died);
    ASSERT_EQ(ended, undisturbed(seed));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, KilledFit, ::testing::Range(0, 6));

// By SIGKILL, which leaves what is on the disk and nothing else.
TEST(KilledProcess, EndsAsAnUndisturbedOne) {
  for (const int seed : {3, 17}) {
    SCOPED_TRACE(str("seed ", seed));
    const tools::TempFolder folder;
    const std::string files = folder.path() + "/files";
    std::filesystem::create_directory(files);
    const auto run = [&](int at, int epoch, int step) {
      tools::ChildProcess child(
          {.arguments = {CAIRN_KILLED_FIT, std::to_string(seed), files, std::to_string(at),
                         std::to_string(epoch), std::to_string(step)},
           .output_file = folder.path() + "/output"});
      return tools::end_in_time(child, 60'000, folder.read("output"));
    };
    run(int(Death::At::kBatchEnd), 1, 2);
    EXPECT_FALSE(std::filesystem::exists(files + "/ended"));
    run(int(Death::At::kEpochEnd), 2, 0);
    run(-1, 0, 0);
    EXPECT_EQ(folder.read("files/ended"), undisturbed(static_cast<std::uint64_t>(seed)));
  }
}

}  // namespace
}  // namespace cairn
