#include "rpc/server/control_session.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "rpc/loop/sim_reactor.h"
#include "rpc/net/sim_network.h"
#include "rpc/server/claim_wire.h"

namespace cairn::rpc {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kPatience = 20s;

// A task that was last configured for session 3, and those who connect to its control endpoint.
class ControlSessions : public ::testing::Test {
 protected:
  std::unique_ptr<Connection> connect(Role role = Role::kCoordinator, Term term = {}) {
    Hello hello;
    hello.cluster = "test";
    hello.session = 7;
    hello.term = term;
    hello.role = role;
    auto dialled = network_.host("chief").connect(reactor_, acceptor_.address(), hello, kPatience);
    return wait(kj::mv(dialled));
  }
  ClaimAnswer join(Connection& connection, const Claim& claim) {
    auto request = connection.bootstrap<wire::TaskControl>().joinRequest();
    write(request.initClaim(), claim);
    kj::Promise<capnp::Response<wire::TaskControl::JoinResults>> sent = request.send();
    return read(wait(kj::mv(sent)).getAnswer());
  }
  void ping(Connection& connection) {
    wait(connection.bootstrap<wire::TaskControl>().pingRequest().send().ignoreResult());
  }
  void shutdown(Connection& connection) {
    auto request = connection.bootstrap<wire::TaskControl>().shutdownRequest();
    request.setReason("the job is done");
    wait(request.send().ignoreResult());
  }
  template <typename T>
  T wait(kj::Promise<T> promise) {
    return reactor_.wait(reactor_.with_deadline(kj::mv(promise), kPatience, "the test's call"));
  }
  AcceptorOptions options() const {
    AcceptorOptions options;
    options.cluster = "test";
    options.role = Role::kPs;
    return options;
  }
  TaskHooks hooks() {
    return {.state =
                [] {
                  return TaskState{ProcessIncarnation{77}, 2, 3};
                },
            .status_json = [] { return std::string("{}"); },
            .shutdown = [this](const std::string& reason) { ended_for_ = reason; },
            .heard = heard_};
  }

  const std::unique_ptr<SimReactor> simulated_ = std::make_unique<SimReactor>();
  SimReactor& reactor_ = *simulated_;
  SimNetwork network_{reactor_};
  std::string ended_for_;
  const std::shared_ptr<LastHeard> heard_ = std::make_shared<LastHeard>();
  Acceptor acceptor_{network_.host("ps"),
                     Address::parse("sim://ps"),
                     options(),
                     {control_endpoint(reactor_, hooks())}};
  const Claim first_{7, "pid 4711 on host ada", 1s, false};
  const Claim successor_{7, "pid 4713 on host bob", 1s, false};
  const Claim second_{8, "pid 4712 on host bob", 1s, false};
};

TEST_F(ControlSessions, AClaimIsGrantedWhereNoCoordinatorIsAtWork) {
  const auto connection = connect();
  const ClaimAnswer answer = join(*connection, first_);
  EXPECT_TRUE(answer.granted);
  EXPECT_THAT(answer.owner, IsEmpty());
  EXPECT_EQ(answer.configured, 3u);
}

TEST_F(ControlSessions, AnotherSessionIsRefusedWhileTheOwnerShowsLife) {
  const auto owner = connect(), other = connect();
  join(*owner, first_);
  for (int i = 0; i < 5; ++i) {
    reactor_.advance(800ms);
    ping(*owner);
  }
  const ClaimAnswer answer = join(*other, second_);
  EXPECT_FALSE(answer.granted);
  EXPECT_THAT(answer.owner, AllOf(HasSubstr("session 7"), HasSubstr("pid 4711 on host ada"),
                                  HasSubstr("since ")));
  EXPECT_TRUE(owner->connected());
}

TEST_F(ControlSessions, PingsOfAnotherConnectionAreNoLifeOfTheOwner) {
  const auto owner = connect(), other = connect();
  join(*owner, first_);
  reactor_.advance(800ms);
  ping(*other);
  reactor_.advance(300ms);
  EXPECT_TRUE(join(*other, second_).granted);
}

TEST_F(ControlSessions, OtherThreadsSeeTheOwnersSignsOfLifeAndNoOthers) {
  const auto owner = connect(), other = connect();
  join(*owner, first_);
  const TimePoint joined = heard_->when();
  reactor_.advance(800ms);
  ping(*other);
  EXPECT_EQ(heard_->when(), joined);
  ping(*owner);
  EXPECT_GE(heard_->when(), joined + 800ms);
}

TEST_F(ControlSessions, AnOwnerWhoseConnectionHasEndedIsSucceededAtOnce) {
  auto owner = connect();
  const auto other = connect();
  join(*owner, first_);
  owner.reset();
  reactor_.advance(10ms);
  EXPECT_TRUE(join(*other, second_).granted);
}

TEST_F(ControlSessions, TakingOverEndsTheOwnersConnection) {
  const auto owner = connect(), other = connect();
  join(*owner, first_);
  Claim claim = second_;
  claim.take_over = true;
  const ClaimAnswer answer = join(*other, claim);
  EXPECT_TRUE(answer.granted);
  EXPECT_THAT(answer.owner, HasSubstr("pid 4711 on host ada"));
  reactor_.advance(10ms);
  EXPECT_FALSE(owner->connected());
  EXPECT_THAT(join(*connect(), first_).owner, HasSubstr("pid 4712 on host bob"));
}

TEST_F(ControlSessions, ACoordinatorThatLostItsConnectionComesBackWithItsSession) {
  const auto before = connect(), after = connect(), other = connect();
  join(*before, first_);
  EXPECT_TRUE(join(*after, first_).granted);
  before->close();
  reactor_.advance(10ms);
  EXPECT_FALSE(join(*other, second_).granted);
}

TEST_F(ControlSessions, AClaimWithoutASessionIsRefused) {
  EXPECT_THROW(join(*connect(), Claim{.who = "a stranger"}), InvalidArgumentError);
}

TEST_F(ControlSessions, OnlyACoordinatorJoinsAndEndsATask) {
  for (const Role role : {Role::kWorker, Role::kPs, Role::kTool}) {
    const auto stranger = connect(role);
    EXPECT_THROW(join(*stranger, first_), PermissionDeniedError);
    EXPECT_THROW(shutdown(*stranger), PermissionDeniedError);
    ping(*stranger);
  }
  EXPECT_THAT(ended_for_, IsEmpty());
  shutdown(*connect());
  EXPECT_EQ(ended_for_, "the job is done");
}

// Long texts of a peer would go on into every log line and message about it.
TEST_F(ControlSessions, TextsOfTheOtherSideAreCutToSize) {
  const auto owner = connect();
  Claim claim = first_;
  claim.who = std::string(5000, 'w');
  join(*owner, claim);
  EXPECT_LT(join(*connect(), second_).owner.size(), 500u);
}

TEST_F(ControlSessions, ACallOfAnotherInterfaceIsRefused) {
  const auto connection = connect();
  auto unknown = connection->bootstrap_any().typelessRequest(0xfbc28941a6b4403e, 0, nullptr);
  EXPECT_THROW(wait(unknown.send().ignoreResult()), Error);
  ping(*connect());
}

// ---- coordinators that go on with one session, one after another ----

TEST_F(ControlSessions, ALaterTermOfTheSessionTakesThePlaceOfALivingOwner) {
  const auto owner = connect(Role::kCoordinator, 1), successor = connect(Role::kCoordinator, 2);
  EXPECT_EQ(join(*owner, first_).newest_term, 1u);
  const ClaimAnswer answer = join(*successor, successor_);
  EXPECT_TRUE(answer.granted);
  EXPECT_EQ(answer.newest_term, 2u);
  EXPECT_THAT(answer.owner, HasSubstr("pid 4711 on host ada"));
  reactor_.advance(10ms);
  EXPECT_FALSE(owner->connected());
}

TEST_F(ControlSessions, AnEarlierTermNeverComesBackAndIsToldWhoGoesOn) {
  auto successor = connect(Role::kCoordinator, 2);
  join(*successor, successor_);
  const auto first = connect(Role::kCoordinator, 1);
  for (const bool gone : {false, true}) {
    SCOPED_TRACE(gone);
    const ClaimAnswer answer = join(*first, first_);
    EXPECT_FALSE(answer.granted);
    EXPECT_EQ(answer.newest_term, 2u);
    EXPECT_THAT(answer.owner, AllOf(HasSubstr("session 7, term 2"), HasSubstr("pid 4713")));
    successor.reset();
    reactor_.advance(5s);
  }
  EXPECT_EQ(join(*connect(), second_).newest_term, 0u);  // another session's terms are its own
}

TEST_F(ControlSessions, CallsOfAnEarlierTermAreRefusedFromThenOn) {
  const auto owner = connect(Role::kCoordinator, 1), again = connect(Role::kCoordinator, 1);
  join(*owner, first_);
  join(*connect(Role::kCoordinator, 2), successor_);
  try {
    shutdown(*again);
    ADD_FAILURE() << "it ended the task";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("TaskControl.shutdown"), HasSubstr("of term 1"),
                                    HasSubstr("in term 2")));
  }
  EXPECT_THAT(ended_for_, IsEmpty());
}

}  // namespace
}  // namespace cairn::rpc
