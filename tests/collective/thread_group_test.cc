#include "collective/thread_group.h"

#include <gmock/gmock.h>

#include "collective/sum.h"
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
// with it, so nobody may write there afterwards. (A sanitizer sees it if somebody does.)
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
