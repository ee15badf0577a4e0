// Coordinators that go on with one session on a ps, one after another.
#include <gmock/gmock.h>

#include "tests/ps/server/server_fixture.h"

namespace cairn::ps {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ShardTerms : public testing::Test {
 protected:
  ~ShardTerms() noexcept override {}

  // Connects as the coordinator of the session in term 2.
  std::unique_ptr<rpc::Connection> successor(std::uint32_t endpoint) {
    rpc::Hello hello = coordinator_hello_to(endpoint);
    hello.term = 2;
    return ps.reactor.wait(
        ps.network.host("chief2").connect(ps.reactor, ps.server.address(), hello, kPatience));
  }
  template <typename Request>
  std::string refusal(Request request) {
    try {
      ps.reactor.wait(request.send().ignoreResult());
    } catch (const FailedPreconditionError& error) {
      return error.what();
    }
    return "it was not refused so";
  }

  SimulatedPs ps;
};

TEST_F(ShardTerms, AnEarlierCoordinatorHasNoSayOnceItsSuccessorHasJoinedAndLanesGoOn) {
  ShardClient first = ps.open_client({whole_table(0, variable("w", {2, 2}), sgd())});
  const auto control = successor(rpc::kControlEndpoint);
  auto join = control->bootstrap<wire::TaskControl>().joinRequest();
  join.initClaim().setSession(ShardHarness::kSession);
  ps.reactor.wait(join.send().ignoreResult());

  for (const std::string& said :
       {refusal(first.ruled.openRequest()), refusal(first.ruled.markRequest())})
    EXPECT_THAT(said, AllOf(HasSubstr("Shard."), HasSubstr("of term 0 of session 7"),
                            HasSubstr("in term 2")));
  EXPECT_FALSE(first.push(1, 0, {1, 1, 1, 1}));  // as a worker
  const auto shard = successor(1);
  ps.reactor.wait(shard->bootstrap<wire::Shard>().openRequest().send().ignoreResult());
}

}  // namespace
}  // namespace cairn::ps
