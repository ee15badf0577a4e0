// A group of processes, simulated: forming, and what becomes of it when a member is lost.
#include <gmock/gmock.h>

#include "tests/collective/collective_testing.h"
#include "tests/collective/network/sim_group.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// ---- forming ----

TEST(PeerForming, WaitsForAMemberThatComesLate) {
  SimGroup group(3);
  group.start(0);
  group.start(2);
  auto first = outcome_of(group.member(0).form()).eagerlyEvaluate(nullptr);
  auto third = outcome_of(group.member(2).form()).eagerlyEvaluate(nullptr);
  group.reactor.advance(20s);
  group.start(1);
  EXPECT_EQ(group.reactor.wait(outcome_of(group.member(1).form())), "");
  EXPECT_EQ(group.reactor.wait(kj::mv(first)), "");
  EXPECT_EQ(group.reactor.wait(kj::mv(third)), "");
}

TEST(PeerForming, NamesWhoIsMissingWhenTheTimeIsOver) {
  SimGroup group(4);
  group.options.start_timeout = 30s;
  group.start(0);
  group.start(1);
  const auto before = group.reactor.now();
  const auto outcomes = group.form_all();
  EXPECT_LE(group.reactor.now() - before, 31s);
  EXPECT_THAT(outcomes, Each(AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("/job:worker/task:2"),
                                   HasSubstr("/job:worker/task:3 at sim://m3"))));
  EXPECT_THAT(outcomes[1], Not(HasSubstr("rank 0")));
}

TEST(PeerForming, AMemberThatDiesMeanwhileIsWaitedForAgain) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    SimGroup group(3, seed);
    const int dying = static_cast<int>(random.below(3));
    for (int rank = 0; rank < 3; ++rank)
      if (rank != static_cast<int>((dying + 1) % 3)) group.start(rank);
    std::vector<kj::Promise<std::string>> formed;
    const int staying = (dying + 2) % 3;
    formed.push_back(outcome_of(group.member(staying).form()).eagerlyEvaluate(nullptr));
    {
      auto first_life = outcome_of(group.member(dying).form()).eagerlyEvaluate(nullptr);
      group.reactor.advance(std::chrono::microseconds(random.below(5000)));
    }
    group.kill(dying);
    group.start(dying);
    group.start((dying + 1) % 3);
    for (const int rank : {dying, (dying + 1) % 3})
      formed.push_back(outcome_of(group.member(rank).form()).eagerlyEvaluate(nullptr));
    for (auto& each : formed) EXPECT_EQ(group.reactor.wait(kj::mv(each)), "");
  }
}

TEST(PeerForming, RefusesAMemberWithAnotherToken) {
  SimGroup tokens(2);
  for (int rank = 0; rank < 2; ++rank) {
    auto own = tokens.options_of(rank);
    own.token = rank == 0 ? "secret" : "guess";
    tokens.start(rank, own);
  }
  EXPECT_THAT(tokens.form_all(), Each(HasSubstr("PermissionDenied")));
}

TEST(PeerForming, RefusesAMemberThatWasGivenOtherOptions) {
  SimGroup packs(2);
  for (int rank = 0; rank < 2; ++rank) {
    auto own = packs.options_of(rank);
    own.communication.bytes_per_pack = 1000 * (rank + 1);
    packs.start(rank, own);
  }
  EXPECT_THAT(packs.form_all(), Each(AllOf(HasSubstr("FailedPrecondition"), HasSubstr("options"))));
}

TEST(PeerForming, RefusesAMemberThatIsAtAnothersAddress) {
  SimGroup group(3);
  std::swap(group.options.members[1].address, group.options.members[2].address);
  group.start(0);
  std::swap(group.options.members[1].address, group.options.members[2].address);
  group.start(1);
  group.start(2);
  EXPECT_THAT(group.form_all()[0],
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr("the same list of addresses")));
}

// ---- losing ----

// Each member makes calls one behind the other until something ends it: the error.
rpc::Task<std::string> train(PeerGroup& member, std::vector<Tensor>& values,
                             std::int64_t elements) {
  for (std::int32_t step = 0; step < 1'000'000; ++step) {
    CollectiveCall call;
    const bool sum = step % 5 != 4;
    call.kind = sum ? CallKind::kAllReduce : CallKind::kBarrier;
    if (sum) {
      values.push_back(Tensor::zeros(DType::kInt32, {1 + elements * (step % 3)}));
      std::ranges::fill(values.back().mutable_values<std::int32_t>(), step);
      call.reductions = {in_place(values.back())};
    }
    std::string error;
    try {
      co_await member.run(std::move(call));
    } catch (const Error&) {
      error = rpc::describe(error_parts(std::current_exception()));
    }
    if (!error.empty()) co_return error;
    if (sum) {
      for (const std::int32_t value : values.back().values<std::int32_t>())
        if (value != step * member.size()) co_return str("a wrong sum in step ", step);
      values.pop_back();
    }
  }
  co_return std::string("it never ended");
}

enum class Fate { kKilled, kSilent, kLeaves, kGivesUp };

struct Loss {
  std::vector<std::string> errors;  // of the survivors
  Duration took{0};                 // until the last of them knew
};

Loss lose(int size, int lost, Fate fate, std::uint64_t seed) {
  Random random(seed);
  SimGroup group(size, seed);
  group.start_and_form();
  std::vector<std::vector<Tensor>> values(static_cast<std::size_t>(size));
  std::vector<kj::Promise<std::string>> training;
  const auto elements =
      static_cast<std::int64_t>(random.below(random.below(4) == 0 ? 20'000 : 200));
  for (int rank = 0; rank < size; ++rank)
    training.push_back(train(group.member(rank), values[static_cast<std::size_t>(rank)], elements)
                           .start()
                           .eagerlyEvaluate(nullptr));
  group.reactor.advance(std::chrono::microseconds(random.below(30'000)));
  const auto before = group.reactor.now();
  if (fate == Fate::kSilent) {
    for (int rank = 0; rank < size; ++rank)
      if (rank != lost) group.network.partition_both(SimGroup::host(lost), SimGroup::host(rank));
  } else if (fate == Fate::kGivesUp) {
    group.member(lost).abort({Code::kOutOfRange, "the data ended", ""});
  } else {
    training[static_cast<std::size_t>(lost)] = std::string();
    if (fate == Fate::kLeaves) group.reactor.wait(group.member(lost).leave());
    if (fate == Fate::kKilled)
      group.kill(lost);
    else
      group.members[static_cast<std::size_t>(lost)].reset();
  }
  Loss loss;
  for (int rank = 0; rank < size; ++rank)
    if (rank != lost)
      loss.errors.push_back(group.reactor.wait(kj::mv(training[static_cast<std::size_t>(rank)])));
  loss.took = group.reactor.now() - before;
  return loss;
}

class PeerFate : public ::testing::TestWithParam<Fate> {};
INSTANTIATE_TEST_SUITE_P(Fates, PeerFate,
                         ::testing::Values(Fate::kKilled, Fate::kSilent, Fate::kLeaves,
                                           Fate::kGivesUp));

TEST_P(PeerFate, EverySurvivorNamesTheLostMemberWithinASecond) {
  const std::string code = GetParam() == Fate::kGivesUp ? "OutOfRange" : "Unavailable";
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed * 31);
    const int size = 2 + static_cast<int>(random.below(4));
    const int lost = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", rank " << lost << " of " << size);
    const Loss loss = lose(size, lost, GetParam(), seed);
    EXPECT_THAT(loss.errors, Each(AllOf(HasSubstr(code), HasSubstr(str("rank ", lost, " ")),
                                        HasSubstr(str("raised by /job:worker/task:", lost)))));
    EXPECT_LE(loss.took, 1s);
  }
}

TEST(PeerLoss, OneSideThatIsCutOffFromOneOtherAloneEndsTheGroupForAll) {
  SimGroup group(4);
  group.start_and_form();
  std::vector<std::vector<Tensor>> values(4);
  std::vector<kj::Promise<std::string>> training;
  for (int rank = 0; rank < 4; ++rank)
    training.push_back(train(group.member(rank), values[static_cast<std::size_t>(rank)], 1000)
                           .start()
                           .eagerlyEvaluate(nullptr));
  group.network.cut("m1", "m3");
  for (auto& each : training) EXPECT_THAT(group.reactor.wait(kj::mv(each)), HasSubstr("was lost"));
  EXPECT_LE(group.reactor.now(), 3s);
}

TEST(PeerLoss, TheNextGroupWaitsForTheLostMembersSuccessorAndSumsAgain) {
  SimGroup group(3);
  group.start_and_form();
  group.kill(1);
  for (const int rank : {0, 2}) {
    CollectiveCall call;
    EXPECT_THAT(group.reactor.wait(outcome_of(group.member(rank).run(call))),
                HasSubstr("/job:worker/task:1"));
  }
  // The successor comes first, and finds the others still in their earlier group.
  group.start(1);
  auto successor = outcome_of(group.member(1).form()).eagerlyEvaluate(nullptr);
  group.reactor.advance(1s);
  group.start(0);
  auto first = outcome_of(group.member(0).form()).eagerlyEvaluate(nullptr);
  group.reactor.advance(1s);
  group.start(2);
  EXPECT_EQ(group.reactor.wait(outcome_of(group.member(2).form())), "");
  EXPECT_EQ(group.reactor.wait(kj::mv(first)), "");
  EXPECT_EQ(group.reactor.wait(kj::mv(successor)), "");
  const auto outcomes = group.all([](PeerGroup& member) {
    CollectiveCall barrier;
    return outcome_of(member.run(barrier));
  });
  EXPECT_THAT(outcomes, Each(""));
}

TEST(PeerLoss, TheValuesOfAFailedGroupAreLetGoOf) {
  SimGroup group(3);
  group.start_and_form();
  std::weak_ptr<const void> owner;
  kj::Promise<std::string> outcome = std::string();
  {
    Tensor value = Tensor::zeros(DType::kFloat32, {10'000'000});  // many packs, most of them queued
    owner = value.owner();
    CollectiveCall call;
    call.kind = CallKind::kAllReduce;
    call.reductions = {in_place(value)};
    outcome = outcome_of(group.member(0).run(std::move(call))).eagerlyEvaluate(nullptr);
  }
  EXPECT_FALSE(owner.expired());
  group.kill(1);
  EXPECT_THAT(group.reactor.wait(kj::mv(outcome)), HasSubstr("/job:worker/task:1"));
  group.kill(2);  // its connection held the messages on their way to it
  group.reactor.advance(1s);
  EXPECT_TRUE(owner.expired());
}

// In a broadcast from rank 0, rank 1 owes rank 2 nothing but the message that it takes part.
TEST(PeerLoss, AMemberThatHasAllItWantsMayLeaveWhileAnotherStillSpeaksToIt) {
  SimGroup group(3);
  group.start_and_form();
  group.network.partition("m1", "m2");
  std::vector<kj::Promise<std::string>> calls;
  for (int rank = 0; rank < 3; ++rank) {
    CollectiveCall call;
    call.kind = CallKind::kBroadcast;
    if (rank == 0) call.value = Tensor::zeros(DType::kInt32, {3});
    calls.push_back(outcome_of(group.member(rank).run(std::move(call))).eagerlyEvaluate(nullptr));
  }
  EXPECT_EQ(group.reactor.wait(kj::mv(calls[2])), "");
  group.reactor.wait(group.member(2).leave());
  group.members[2].reset();
  group.network.heal("m1", "m2");
  EXPECT_EQ(group.reactor.wait(kj::mv(calls[1])), "");
  EXPECT_EQ(group.reactor.wait(kj::mv(calls[0])), "");
}

TEST(PeerLoss, AMemberThatMakesNoCallIsNamedWhenTheTimeIsOver) {
  CommunicationOptions communication;
  communication.timeout = 10s;
  SimGroup group(4, 1, communication);
  group.start_and_form();
  const auto before = group.reactor.now();
  std::vector<kj::Promise<std::string>> waiting;
  for (const int rank : {0, 1, 3}) {
    CollectiveCall barrier;
    waiting.push_back(outcome_of(group.member(rank).run(barrier)).eagerlyEvaluate(nullptr));
  }
  for (auto& each : waiting) {
    const auto error = group.reactor.wait(kj::mv(each));
    EXPECT_THAT(error, AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("rank 2 (")));
    EXPECT_THAT(error, Not(HasSubstr("rank 1 (/job:worker/task:1 at sim://m1) to make")));
  }
  EXPECT_LE(group.reactor.now() - before, 11s);
}

}  // namespace
}  // namespace cairn
