// Groups whose members listen nowhere: acceptors that were there before pass the others'
// connections on.
#include <gmock/gmock.h>

#include "collective/peer.capnp.h"
#include "rpc/server/server.h"
#include "tests/collective/collective_testing.h"
#include "tests/collective/network/sim_group.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::uint32_t kEndpoint = 1;

capnp::Capability::Client nothing(const rpc::PeerInfo&, rpc::Connection&) { return nullptr; }

// SimGroup with a door per host, which stands before there is a group, and after.
class ServedGroup : public SimGroup {
 public:
  explicit ServedGroup(int size, std::uint64_t seed = 1) : SimGroup(size, seed) {
    options.listens = false;
    options.group = 7;
    for (auto& member : options.members) member.endpoint = kEndpoint;
    for (int rank = 0; rank < size; ++rank) open(rank);
  }
  ~ServedGroup() { doors.clear(); }

  static std::uint64_t incarnation_of(int rank) { return 100 + static_cast<std::uint64_t>(rank); }
  void open(int rank) {
    rpc::AcceptorOptions door;
    door.role = rpc::Role::kWorker;
    door.task = static_cast<std::uint32_t>(rank);
    door.incarnation = incarnation_of(rank);
    auto serve = [this, rank](const rpc::PeerInfo& peer,
                              rpc::Connection& connection) -> capnp::Capability::Client {
      auto& member = members[static_cast<std::size_t>(rank)];
      if (member == nullptr) return rpc::to_kj(Code::kUnavailable, "there is no group here yet");
      return member->serve(peer, connection);
    };
    doors.resize(members.size());
    doors[static_cast<std::size_t>(rank)] = std::make_unique<rpc::Acceptor>(
        network.host(host(rank)), rpc::Address::parse("sim://" + host(rank)), door,
        std::vector<rpc::Endpoint>{{&reactor, nothing}, {&reactor, serve}});
  }
  void start_member(int rank) {
    NetworkGroupOptions own = options_of(rank);
    own.incarnation = incarnation_of(rank);
    start(rank, own);
  }
  void start_members() {
    for (int rank = 0; rank < size(); ++rank) start_member(rank);
  }
  // A connection to the door of rank 0, as a worker that says it is in `group`.
  std::unique_ptr<rpc::Connection> dial(std::uint32_t task, std::uint64_t of_group) {
    rpc::Hello hello;
    hello.role = rpc::Role::kWorker;
    hello.task = task;
    hello.session = of_group;
    hello.endpoint = kEndpoint;
    return reactor.wait(
        network.host("elsewhere").connect(reactor, rpc::Address::parse("sim://m0"), hello, 5s));
  }
  std::string ping(rpc::Connection& connection) {
    return reactor.wait(
        outcome_of(connection.bootstrap<wire::Member>().pingRequest().send().ignoreResult()));
  }
  std::vector<std::string> barrier() {
    return all(
        [](PeerGroup& member) { return outcome_of(kj::evalNow([&] { return member.run({}); })); });
  }

  std::vector<std::unique_ptr<rpc::Acceptor>> doors;  // by rank
};

TEST(ServedGroup, FormsThroughAcceptorsOfOthersAndSumsTheSameBits) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    ServedGroup group(4, seed);
    group.start_members();
    EXPECT_THAT(group.form_all(), Each(""));
    std::vector<Tensor> values;
    for (std::uint64_t rank = 0; rank < 4; ++rank) values.push_back(uneven(30'000, rank));
    const auto outcomes = group.all([&](PeerGroup& member) {
      CollectiveCall call;
      call.kind = CallKind::kAllReduce;
      call.reductions = {in_place(values[static_cast<std::size_t>(member.rank())])};
      return outcome_of(member.run(std::move(call)));
    });
    EXPECT_THAT(outcomes, Each(""));
    for (const Tensor& own : values) EXPECT_TRUE(same_bits(own, values[0]));
  }
}

TEST(ServedGroup, WaitsForAMemberThatIsToldOfTheGroupLaterThanTheOthersDialIt) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    ServedGroup group(3, seed);
    const int late = static_cast<int>(seed % 3);
    std::vector<kj::Promise<std::string>> formed;
    const auto begin = [&](int rank) {
      group.start_member(rank);
      formed.push_back(outcome_of(group.member(rank).form()).eagerlyEvaluate(nullptr));
    };
    for (int rank = 0; rank < 3; ++rank)
      if (rank != late) begin(rank);
    group.reactor.advance(std::chrono::microseconds(500 * seed));
    begin(late);
    for (auto& each : formed) EXPECT_EQ(group.reactor.wait(kj::mv(each)), "");
    EXPECT_LE(group.reactor.now(), 100ms);
  }
}

TEST(ServedGroup, RefusesConnectionsOfOtherGroupsAndOfStrangers) {
  ServedGroup group(3);
  group.start_members();
  EXPECT_THAT(group.form_all(), Each(""));
  EXPECT_THAT(group.ping(*group.dial(1, 6)),
              AllOf(HasSubstr("Unavailable"), HasSubstr("number 7")));
  EXPECT_THAT(group.ping(*group.dial(3, 7)), HasSubstr("Unavailable"));
  EXPECT_THAT(group.ping(*group.dial(0, 7)), HasSubstr("Unavailable"));
  EXPECT_THAT(group.barrier(), Each(""));
}

TEST(ServedGroup, RefusesParcelsOfAnEarlierGeneration) {
  ServedGroup group(3);
  group.start_members();
  EXPECT_THAT(group.form_all(), Each(""));
  auto connection = group.dial(1, 7);
  auto request = connection->bootstrap<wire::Member>().putRequest();
  request.initParcel().setGeneration(6);
  EXPECT_THAT(group.reactor.wait(outcome_of(request.send().ignoreResult())),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr("another generation")));
  EXPECT_THAT(group.barrier(), Each(""));
}

TEST(ServedGroup, AMemberThatIsLostIsNamedThoughItsAcceptorStays) {
  ServedGroup group(3);
  group.start_members();
  EXPECT_THAT(group.form_all(), Each(""));
  auto waiting = outcome_of(group.member(0).run({})).eagerlyEvaluate(nullptr);
  const auto before = group.reactor.now();
  group.members[1].reset();
  EXPECT_THAT(
      group.reactor.wait(kj::mv(waiting)),
      AllOf(HasSubstr("Unavailable"), HasSubstr("rank 1 (/job:worker/task:1 at sim://m1)")));
  EXPECT_LE(group.reactor.now() - before, 1s);
}

// Its calls lie in the acceptor's connections, which go on.
TEST(ServedGroup, AMemberMayEndBeforeTheConnectionsThatItServed) {
  ServedGroup group(3);
  group.start_members();
  EXPECT_THAT(group.form_all(), Each(""));
  Tensor value = Tensor::zeros(DType::kFloat32, {100'000});
  for (const int rank : {0, 1}) {
    CollectiveCall call;
    call.kind = CallKind::kAllReduce;
    call.reductions = {in_place(value)};
    auto given_up = group.member(rank).run(std::move(call)).eagerlyEvaluate(nullptr);
    group.reactor.advance(20ms);  // parcels wait at rank 2, which makes no call
  }
  group.members[2].reset();
  group.reactor.advance(1s);
  group.members[0].reset();
  group.members[1].reset();
  group.reactor.advance(1s);
  for (int rank = 0; rank < 3; ++rank) group.start_member(rank);  // the doors are there
}

TEST(ServedGroup, WhoGivesUpWhileTheGroupFormsEndsTheFormingOfAll) {
  ServedGroup group(3);
  group.start_member(0);
  group.start_member(1);
  auto first = outcome_of(group.member(0).form()).eagerlyEvaluate(nullptr);
  group.reactor.advance(1s);
  group.member(1).abort({Code::kUnavailable, "another group is wanted", ""});
  EXPECT_THAT(group.reactor.wait(kj::mv(first)), HasSubstr("another group is wanted"));
  EXPECT_LE(group.reactor.now(), 2s);
}

TEST(ServedGroup, TheNextGroupOfTheSameProcessesFormsBesideWhatIsLeftOfTheLast) {
  ServedGroup group(3);
  group.start_members();
  EXPECT_THAT(group.form_all(), Each(""));
  group.member(1).abort({Code::kInternal, "its step failed", ""});
  EXPECT_THAT(group.barrier(), Each(HasSubstr("its step failed")));
  group.options.group = 8;
  group.start_members();
  EXPECT_THAT(group.form_all(), Each(""));
  EXPECT_THAT(group.barrier(), Each(""));
}

}  // namespace
}  // namespace cairn
