#include "collective/local/thread_group.h"

#include <gmock/gmock.h>

#include "collective/base/sum.h"
#include "tests/collective/collective_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(ThreadGroup, AddsInTheOrderOfTheRanksWhoeverDoesIt) {
  Members members = make_thread_group(4);
  std::vector<Tensor> values, expected;
  std::vector<std::byte*> arrays;
  for (std::uint64_t rank = 0; rank < 4; ++rank) values.push_back(uneven(200'001, rank));
  for (const Tensor& each : values) expected.push_back(each.clone());
  for (Tensor& each : expected) arrays.push_back(each.mutable_raw());
  reduce_all(ReduceOp::kMean, DType::kFloat32, arrays, 200'001);

  const auto errors = on_all(members, [&](Collective& member) {
    Tensor& own = values[static_cast<std::size_t>(member.rank())];
    member.wait(member.begin_all_reduce({in_place(own, ReduceOp::kMean)}));
  });

  ASSERT_TRUE(all_well(errors));
  for (const Tensor& each : values) EXPECT_TRUE(same_bits(each, expected[0]));
}

TEST(ThreadGroup, AddsInTheOrderThatItsOptionsNameOverAllValuesOfACall) {
  for (const SumOrder order : {SumOrder::kPairs, SumOrder::kRing}) {
    Members members = make_thread_group(4, {.order = order});
    std::vector<Tensor> whole, first, second;
    for (std::uint64_t rank = 0; rank < 4; ++rank) {
      whole.push_back(uneven(150'000, rank));
      std::vector<float> all = values_of<float>(whole.back());
      first.push_back(
          Tensor::of<float>({90'001}, std::vector<float>(all.begin(), all.begin() + 90'001)));
      second.push_back(
          Tensor::of<float>({59'999}, std::vector<float>(all.begin() + 90'001, all.end())));
    }
    const auto errors = on_all(members, [&](Collective& member) {
      const auto own = static_cast<std::size_t>(member.rank());
      member.wait(member.begin_all_reduce({in_place(first[own]), in_place(second[own])}));
      const Tensor sum = member.reduce(ReduceOp::kSum, whole[own], 2);
      if (member.rank() != 2) return;
      EXPECT_TRUE(std::equal(first[2].raw(), first[2].raw() + first[2].bytes(), sum.raw()));
      EXPECT_TRUE(std::equal(second[2].raw(), second[2].raw() + second[2].bytes(),
                             sum.raw() + first[2].bytes()));
    });
    ASSERT_TRUE(all_well(errors));
    EXPECT_TRUE(same_bits(first[0], first[3]));
    EXPECT_TRUE(same_bits(whole[0], uneven(150'000, 0)));  // reduce() leaves values alone
  }
}

TEST(ThreadGroup, OneMemberAddsForAllWhereItIsTold) {
  Members members = make_thread_group(3, {.timeout = 50ms, .adds = 1});
  std::vector<Tensor> values;
  for (std::uint64_t rank = 0; rank < 3; ++rank) values.push_back(uneven(100'000, rank));
  std::vector<Collective::Ticket> begun;
  for (auto& member : members)
    begun.push_back(
        member->begin_all_reduce({in_place(values[static_cast<std::size_t>(member->rank())])}));
  members[1]->wait(begun[1]);  // alone, on this thread
  EXPECT_TRUE(same_bits(values[0], values[1]));
  for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) members[rank]->wait(begun[rank]);

  Tensor one = Tensor::scalar(1.0f), two = one.clone(), three = one.clone();
  // Member 1 has begun and computes: the others can only wait for it, and say so.
  members = make_thread_group(3, {.timeout = 50ms, .adds = 1});
  members[1]->begin_all_reduce({in_place(one)});
  members[2]->begin_all_reduce({in_place(two)});
  try {
    members[0]->wait(members[0]->begin_all_reduce({in_place(three)}));
    ADD_FAILURE() << "member 1 did not add";
  } catch (const DeadlineExceededError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the sum, which rank 1 makes for all"));
  }
}

// Their graphs may differ in what they wait for first.
TEST(ThreadGroup, TheMemberThatAddsDoesSoBeforeItWaitsInAnotherCall) {
  Members members = make_thread_group(2, {.adds = 0});
  Tensor values[] = {Tensor::scalar(1.0f), Tensor::scalar(2.0f)};
  const auto errors = on_all(members, [&](Collective& member) {
    const auto ticket = member.begin_all_reduce({in_place(values[member.rank()])});
    if (member.rank() == 1) member.wait(ticket);
    member.barrier();
    member.wait(ticket);
  });
  ASSERT_TRUE(all_well(errors));
  EXPECT_EQ(values[1].item<float>(), 3.0f);
}

TEST(ThreadGroup, AMemberThatAddsMustBeOneOfTheGroup) {
  EXPECT_THROW(make_thread_group(2, {.adds = 2}), InvalidArgumentError);
  EXPECT_THROW(make_thread_group(2, {.adds = -2}), InvalidArgumentError);
}

TEST(ThreadGroup, AMemberThatHasBegunAndComputesHoldsNobodyUp) {
  Members members = make_thread_group(2);
  Tensor first = Tensor::zeros(DType::kFloat32, {300'000}), second = first.clone();
  const auto begun = members[0]->begin_all_reduce({in_place(first)});
  members[1]->wait(members[1]->begin_all_reduce({in_place(second)}));
  members[0]->wait(begun);
}

TEST(ThreadGroup, GatheredAndBroadcastTensorsAreTheMembersOwn) {
  Members members = make_thread_group(2);
  const Tensor own[] = {uneven(1000, 1), uneven(1000, 2)};
  const auto errors = on_all(members, [&](Collective& member) {
    const auto all = member.all_gather(own[member.rank()]);
    EXPECT_EQ(all[0].raw(), own[0].raw());
    EXPECT_EQ(all[1].raw(), own[1].raw());
    EXPECT_EQ(member.broadcast(own[member.rank()], 1).raw(), own[1].raw());
  });
  all_well(errors);
}

// The member leaves with an all-reduce that it has begun and that another computes: its memory goes
// with it, so no thread may write there afterwards. (A sanitizer sees such a write.)
TEST(ThreadGroup, NothingIsWrittenToTheMemoryOfAMemberThatHasLeft) {
  for (int round = 0; round < 20; ++round) {
    Members members = make_thread_group(2);
    const auto errors = on_all(members, [&](Collective& member) {
      auto memory = std::make_unique<std::vector<float>>(400'000, 1.0f);
      const auto ticket = member.begin_all_reduce(
          {{ReduceOp::kSum, DType::kFloat32, static_cast<std::int64_t>(memory->size()),
            reinterpret_cast<std::byte*>(memory->data()), nullptr}});
      if (member.rank() == 0)
        members[0].reset();
      else
        member.wait(ticket);
    });
    EXPECT_EQ(errors[0], "");
  }
}

TEST(ThreadGroup, SaysInWhichValueTheMembersCallsDiffer) {
  Members members = make_thread_group(2);
  const auto errors = on_all(members, [&](Collective& member) {
    Tensor same = uneven(4, 1), other = uneven(5 + member.rank(), 1);
    member.wait(member.begin_all_reduce({in_place(same), in_place(other)}));
  });
  EXPECT_THAT(errors,
              Each(AllOf(HasSubstr("rank 0 calls all_reduce whose value 1 is the sum of 5"),
                         HasSubstr("rank 1 calls all_reduce whose value 1 is the sum of 6"))));
}

TEST(ThreadGroup, RefusesGroupsThatCannotBe) {
  EXPECT_THROW(make_thread_group(0), InvalidArgumentError);
  EXPECT_THROW(make_thread_group(2, 0s), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn
