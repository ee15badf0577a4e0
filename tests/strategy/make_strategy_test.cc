#include "strategy/make_strategy.h"

#include <gmock/gmock.h>

#include "core/base/error.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& name, const StrategyOptions& options = {}) {
  try {
    make_strategy(name, options);
    return "made";
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
}

TEST(MakeStrategy, HasAsManyReplicasAsItIsGivenDevices) {
  EXPECT_EQ(make_strategy("one_device")->num_replicas_in_sync(), 1);
  EXPECT_EQ(make_strategy("mirrored")->num_replicas_in_sync(), 2);
  EXPECT_EQ(make_strategy("central_storage", {.devices = {"cpu:0", "cpu:1", "cpu:2"}})
                ->num_replicas_in_sync(),
            3);
}

TEST(MakeStrategy, SaysWhatItWasAskedForAndDoesNotHave) {
  EXPECT_THAT(refusal("mirored"), HasSubstr("did you mean \"mirrored\"?"));
  EXPECT_THAT(refusal("horovod"), HasSubstr("they are one_device, mirrored, central_storage, "));
  EXPECT_THAT(refusal("mirrored", {.consistency = Consistency::bounded(2)}),
              HasSubstr("that is parameter_server's"));
  EXPECT_THAT(refusal("mirrored", {.replicas = 2}),
              AllOf(HasSubstr("mirrored has no ps"), HasSubstr("2 replicas"),
                    HasSubstr("parameter_server's and hybrid's")));
  EXPECT_THAT(refusal("one_device", {.devices = {"cpu:0", "cpu:1"}}),
              HasSubstr("has one replica in a process, not 2"));
}

}  // namespace
}  // namespace cairn
