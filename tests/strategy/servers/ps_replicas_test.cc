// How many replicas of its rows a cluster may be asked for.
#include "strategy/servers/ps_replicas.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "strategy/servers/hybrid_strategy.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Nothing listens there: a refusal comes before anything is connected to.
SimpleClusterResolver two_ps() {
  return SimpleClusterResolver(
      ClusterSpec{{"ps", {"127.0.0.1:1", "127.0.0.1:2"}}, {"worker", {"127.0.0.1:3"}}});
}

template <typename Strategy>
std::string refusal(std::uint32_t replicas) {
  ParameterServerOptions options{.replicas = replicas};
  options.engine.start.timeout = Duration::zero();
  try {
    Strategy(two_ps(), options);
    return "made";
  } catch (const InvalidArgumentError& error) {
    return error.what();
  } catch (const UnavailableError&) {
    return "tried";
  }
}

TEST(PsReplicas, AreAtMostAsManyAsThereArePsAndTheErrorNamesBothNumbersAndTheCure) {
  EXPECT_THAT(refusal<ParameterServerStrategy>(3),
              AllOf(HasSubstr("replicas is 3"), HasSubstr("the cluster has 2 ps"),
                    HasSubstr("start 3 of them, or make it 2")));
  EXPECT_THAT(refusal<HybridStrategy>(3), HasSubstr("replicas is 3"));
  EXPECT_EQ(refusal<ParameterServerStrategy>(2), "tried");
  EXPECT_EQ(refusal<HybridStrategy>(2), "tried");
}

TEST(PsReplicas, AreFromOneToEight) {
  for (const std::uint32_t wrong : {0u, 9u, ~0u})
    EXPECT_THAT(refusal<ParameterServerStrategy>(wrong),
                AllOf(HasSubstr(str("replicas is ", wrong)), HasSubstr("from 1 to 8")));
  verify_ps_replicas("replicas", 8, 8);
  EXPECT_THROW(verify_ps_replicas("replicas", -1, 8), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn
