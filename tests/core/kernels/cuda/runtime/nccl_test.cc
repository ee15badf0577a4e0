// The calls of NCCL when the GPUs of replicas sum values; it is a fake one.
#include "core/kernels/cuda/runtime/nccl.h"

#include <gmock/gmock.h>

#include <array>

#include "core/base/error.h"
#include "tests/core/kernels/cuda/runtime/fake_nccl.h"

namespace cairn::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

struct NcclGroup : ::testing::Test {
  NcclGroup() {
    take_nccl_calls();
    group = make_nccl_group(std::array{0, 3});
  }
  ~NcclGroup() override { set_nccl_error(0); }
  static void sum(SumMember& member) {
    std::array<std::byte, 8> values{};
    const std::array<DeviceSum, 2> sums{
        DeviceSum{ReduceOp::kMean, DType::kFloat32, 2, values.data(), nullptr},
        DeviceSum{ReduceOp::kSum, DType::kInt64, 1, values.data(), nullptr}};
    member.all_reduce(nullptr, sums);
  }
  SumGroup group;
};

TEST_F(NcclGroup, IsMadeOfTheDevicesByTheirNumbersAndTellsItsVersion) {
  EXPECT_EQ(group.text, "by NCCL 2.28.9");
  EXPECT_EQ(group.members.size(), 2u);
  EXPECT_THAT(take_nccl_calls(), ElementsAre("init 0 3"));
}

TEST_F(NcclGroup, SumsTheValuesOfACallAsOneOperation) {
  take_nccl_calls();
  sum(*group.members[1]);
  EXPECT_THAT(take_nccl_calls(), ElementsAre("start", "all_reduce 1 float32 mean of 2",
                                             "all_reduce 1 int64 sum of 1", "end"));
}

TEST_F(NcclGroup, IsDestroyedWithItsLastMember) {
  take_nccl_calls();
  group.members[0] = nullptr;
  EXPECT_THAT(take_nccl_calls(), IsEmpty());
  group.members[1] = nullptr;
  EXPECT_THAT(take_nccl_calls(), ElementsAre("destroy 0", "destroy 1"));
}

TEST_F(NcclGroup, ThatOneMemberAbortsIsAbortedForAll) {
  take_nccl_calls();
  group.members[1]->abort();
  EXPECT_THAT(take_nccl_calls(), ElementsAre("abort 0", "abort 1"));
  for (const auto& member : group.members) {
    EXPECT_THAT([&] { sum(*member); }, ThrowsMessage<AbortedError>(HasSubstr("aborted")));
    EXPECT_THAT([&] { member->all_have_begun(); },
                ThrowsMessage<AbortedError>(HasSubstr("aborted")));
  }
  group.members.clear();
  EXPECT_THAT(take_nccl_calls(), IsEmpty());
}

TEST_F(NcclGroup, ThatHasFailedSaysWhatNcclSaysOfIt) {
  set_nccl_error(6);
  EXPECT_THAT([&] { group.members[0]->all_have_begun(); },
              ThrowsMessage<InternalError>(HasSubstr("NCCL: remote process error")));
  EXPECT_THAT([&] { sum(*group.members[0]); },
              ThrowsMessage<InternalError>(HasSubstr("NCCL: remote process error")));
  EXPECT_THAT(
      [] {
        make_nccl_group(std::array{0, 1});
      },
      ThrowsMessage<InternalError>(HasSubstr("connecting the GPUs of replicas")));
}

// ---- of several processes ----

// The second process of two, which has the GPUs 0 and 3.
struct NcclGroupOfProcesses : NcclGroup {
  NcclGroupOfProcesses() {
    group.members.clear();
    take_nccl_calls();
    place.id = new_nccl_id();
  }
  ~NcclGroupOfProcesses() override {
    set_nccl_progress(0);
    set_nccl_error(0);
  }
  void join() {
    group = make_nccl_group(std::array{0, 3}, place, [this](int each) { chosen.push_back(each); });
  }
  DeviceGroupPlace place{.size = 4, .first = 2, .id = {}, .timeout = std::chrono::minutes(1)};
  std::vector<int> chosen;
};

TEST_F(NcclGroupOfProcesses, IsMadeByItsIdOfTheRanksHereEachOnItsDevice) {
  EXPECT_THAT(nccl_means("a chip").by, "by NCCL 2.28.9");
  EXPECT_THAT(nccl_means("a chip").chip, "a chip");
  set_nccl_progress(5);
  join();
  const auto calls = take_nccl_calls();
  ASSERT_EQ(calls.size(), 5u);
  EXPECT_THAT(calls,
              ElementsAre("id", "start", HasSubstr("rank 2 of 4 by id "),
                          "rank 3 of 4 by " + place.id.substr(0, place.id.find('\0')), "end"));
  EXPECT_THAT(chosen, ElementsAre(0, 3, 0, 3));
  EXPECT_EQ(group.members.size(), 2u);
  EXPECT_EQ(group.text, "by NCCL 2.28.9");
}

// Streams are given work only then.
TEST_F(NcclGroupOfProcesses, HasBegunASumWhenNcclSaysSo) {
  join();
  take_nccl_calls();
  set_nccl_progress(3);
  sum(*group.members[0]);
  EXPECT_THAT(take_nccl_calls(), ElementsAre("start", "all_reduce 2 float32 mean of 2",
                                             "all_reduce 2 int64 sum of 1", "end"));
  EXPECT_NO_THROW(group.members[0]->require_well());
}

TEST_F(NcclGroupOfProcesses, GivesUpWhatNcclDoesNotEndInTime) {
  join();
  group.members.clear();
  take_nccl_calls();
  place.timeout = std::chrono::milliseconds(1);
  set_nccl_progress(-1);
  EXPECT_THAT([&] { join(); },
              ThrowsMessage<DeadlineExceededError>(HasSubstr("connecting the GPUs of all")));
  EXPECT_THAT(take_nccl_calls(), ::testing::Contains(HasSubstr("abort")).Times(2));
  set_nccl_progress(0);
  join();
  set_nccl_progress(-1);
  EXPECT_THAT([&] { sum(*group.members[1]); },
              ThrowsMessage<DeadlineExceededError>(HasSubstr("a sum of GPUs")));
}

TEST_F(NcclGroupOfProcesses, IsLeftWhenAllThatItSendsHasBeenSent) {
  join();
  take_nccl_calls();
  set_nccl_progress(2);
  group.members.clear();
  EXPECT_THAT(take_nccl_calls(), ElementsAre("finalize 2", "finalize 3", "destroy 2", "destroy 3"));
}

TEST_F(NcclGroupOfProcesses, IsAbortedWhereNcclFails) {
  join();
  take_nccl_calls();
  set_nccl_error(6);
  EXPECT_THAT([&] { group.members[0]->require_well(); },
              ThrowsMessage<InternalError>(HasSubstr("remote process error")));
  group.members.clear();
  EXPECT_THAT(take_nccl_calls(), ElementsAre("finalize 2", "abort 2", "abort 3"));
}

TEST_F(NcclGroupOfProcesses, ThatNcclCannotConnectIsAborted) {
  set_nccl_error(6);
  EXPECT_THAT([&] { join(); },
              ThrowsMessage<InternalError>(HasSubstr("connecting the GPUs of all")));
  EXPECT_THAT(take_nccl_calls(),
              ElementsAre("id", "start", HasSubstr("rank 2 of 4"), "end", HasSubstr("abort")));
}

}  // namespace
}  // namespace cairn::cuda
