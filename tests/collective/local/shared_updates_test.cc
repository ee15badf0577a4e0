// The pushes of a group's members, made one push.
#include "collective/local/shared_updates.h"

#include <gmock/gmock.h>

#include "collective/local/group_store.h"
#include "collective/local/thread_group.h"
#include "core/rows/local_store.h"
#include "tests/collective/collective_testing.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;  // NOLINT: ours
using Lists = std::vector<std::vector<Update>>;

Tensor floats(Shape shape, std::vector<float> values) {
  return Tensor::of<float>(std::move(shape), values);
}

Update dense(VariableId variable, std::vector<float> values, Aggregation shares) {
  const auto n = static_cast<std::int64_t>(values.size());
  return {.variable = variable,
          .rule = {RuleKind::kAssignAdd, {}},
          .value = floats({n}, std::move(values)),
          .shares = shares};
}

Update rows(VariableId variable, std::vector<std::int64_t> ids, std::vector<float> values,
            Aggregation shares) {
  const auto n = static_cast<std::int64_t>(ids.size());
  return {.variable = variable,
          .rule = {RuleKind::kAssignAdd, {}},
          .ids = Tensor::of<std::int64_t>({n}, ids),
          .value = floats({n, 2}, std::move(values)),
          .shares = shares};
}

// The result of each member for its list.
Lists merged(Lists lists) {
  Members members = make_thread_group(static_cast<int>(lists.size()));
  Lists results(lists.size());
  const auto errors = on_all(members, [&](Collective& member) {
    const auto i = static_cast<std::size_t>(member.rank());
    SharedUpdates updates(member);
    const auto all = updates.merged(lists[i], SharedUpdates::Role::kApplies);
    results[i].assign(all.begin(), all.end());
    updates.applied();
  });
  all_well(errors);
  return results;
}

TEST(SharedUpdates, CombinesDenseSharesOnEveryMemberAlike) {
  for (const auto& list : merged(
           {{dense(0, {1, 2}, Aggregation::kSum), dense(1, {3}, Aggregation::kMean),
             dense(2, {5}, Aggregation::kOnlyFirstReplica), dense(3, {7}, Aggregation::kNone)},
            {dense(0, {10, 20}, Aggregation::kSum), dense(1, {5}, Aggregation::kMean),
             dense(2, {6}, Aggregation::kOnlyFirstReplica), dense(3, {7}, Aggregation::kNone)}})) {
    ASSERT_EQ(list.size(), 4u);
    EXPECT_THAT(values_of<float>(list[0].value), ElementsAre(11, 22));
    EXPECT_THAT(values_of<float>(list[1].value), ElementsAre(4));
    EXPECT_THAT(values_of<float>(list[2].value), ElementsAre(5));
    EXPECT_THAT(values_of<float>(list[3].value), ElementsAre(7));
    for (const Update& each : list) EXPECT_EQ(each.shares, Aggregation::kNone);
  }
}

TEST(SharedUpdates, LargeDenseSharesAreCombinedAsSmallOnesAre) {
  for (Aggregation how : {Aggregation::kSum, Aggregation::kMean, Aggregation::kOnlyFirstReplica}) {
    const auto small = merged({{dense(0, {1, 2}, how)}, {dense(0, {3, 4}, how)}});
    const auto large =
        merged({{dense(0, {1, 2, 1, 2, 1, 2}, how)}, {dense(0, {3, 4, 3, 4, 3, 4}, how)}});
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const auto of_small = values_of<float>(small[rank][0].value);
      const auto of_large = values_of<float>(large[rank][0].value);
      for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(of_large[i], of_small[i % 2]);
    }
  }
}

TEST(SharedUpdates, TheMeanOfEqualValuesIsThatValue) {
  const float tenth = 0.1f;  // (0.1 + 0.1 + 0.1) / 3 is rounded to another float
  const auto lists = merged(Lists(3, {dense(0, {tenth}, Aggregation::kMean)}));
  EXPECT_THAT(values_of<float>(lists[2][0].value), ElementsAre(tenth));
}

TEST(SharedUpdates, AddsRowsOfEqualIdsAndKeepsIdsAscending) {
  const auto lists = merged({{rows(0, {1, 4}, {1, 1, 2, 2}, Aggregation::kSum)},
                             {rows(0, {}, {}, Aggregation::kSum)},
                             {rows(0, {0, 4, 9}, {3, 3, 4, 4, 5, 5}, Aggregation::kSum)}});
  for (const auto& list : lists) {
    ASSERT_EQ(list.size(), 1u);
    EXPECT_THAT(values_of<std::int64_t>(list[0].ids), ElementsAre(0, 1, 4, 9));
    EXPECT_THAT(values_of<float>(list[0].value), ElementsAre(3, 3, 1, 1, 6, 6, 5, 5));
  }
}

TEST(SharedUpdates, RowsMayBeAMeanOrTheFirstMembers) {
  const auto lists = merged({{rows(0, {2}, {2, 4}, Aggregation::kMean),
                              rows(1, {2}, {2, 4}, Aggregation::kOnlyFirstReplica)},
                             {rows(0, {3}, {6, 8}, Aggregation::kMean),
                              rows(1, {3}, {6, 8}, Aggregation::kOnlyFirstReplica)}});
  EXPECT_THAT(values_of<std::int64_t>(lists[1][0].ids), ElementsAre(2, 3));
  EXPECT_THAT(values_of<float>(lists[1][0].value), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values_of<std::int64_t>(lists[1][1].ids), ElementsAre(2));
  EXPECT_THAT(values_of<float>(lists[1][1].value), ElementsAre(2, 4));
}

TEST(SharedUpdates, SumsAreAddedInTheOrderOfRanks) {
  Lists lists;
  std::vector<float> expected(1000, 0.0f);
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    const auto values = values_of<float>(uneven(1000, rank));
    for (std::size_t i = 0; i < values.size(); ++i)
      expected[i] = rank == 0 ? values[i] : expected[i] + values[i];
    lists.push_back({dense(0, values, Aggregation::kSum)});
  }
  for (const auto& list : merged(lists))
    EXPECT_TRUE(same_bits(list[0].value, floats({1000}, expected)));
}

TEST(SharedUpdates, WhatOneMemberLeavesOutNobodyApplies) {
  const auto sum = Aggregation::kSum;
  const auto lists = merged({{dense(0, {1}, sum), dense(1, {2}, sum), dense(2, {3}, sum)},
                             {dense(2, {30}, sum), dense(0, {10}, sum)}});
  for (const auto& list : lists) {
    ASSERT_EQ(list.size(), 2u);
    EXPECT_THAT(list[0].variable, 0);
    EXPECT_THAT(values_of<float>(list[0].value), ElementsAre(11));
    EXPECT_THAT(list[1].variable, 2);
    EXPECT_THAT(values_of<float>(list[1].value), ElementsAre(33));
  }
}

TEST(SharedUpdates, SharesOfDifferentShapesAreRefusedByAll) {
  const auto sum = Aggregation::kSum;
  for (Lists lists : {Lists{{dense(0, {1}, sum)}, {dense(0, {1, 2, 3}, sum)}},
                      Lists{{dense(0, {1}, sum)}, {dense(0, {1, 2, 3, 4, 5}, sum)}}}) {
    Members members = make_thread_group(2);
    const auto errors = on_all(members, [&](Collective& member) {
      SharedUpdates updates(member);
      updates.merged(lists[static_cast<std::size_t>(member.rank())], SharedUpdates::Role::kApplies);
    });
    for (const auto& error : errors) EXPECT_THAT(error, HasSubstr("all must have one type"));
  }
}

// ---- updates that are announced ----

// As a member's device makes it: without a value.
Update on_device(VariableId variable) { return {.variable = variable, .rule = {}}; }

struct Announced {
  std::vector<bool> left_out;
  std::vector<Update> merged;  // of those that are pushed
};

// Each member's answer for its list, and its updates from merged() for the rest of the list.
std::vector<Announced> announced(Lists lists) {
  Members members = make_thread_group(static_cast<int>(lists.size()));
  std::vector<Announced> results(lists.size());
  const auto errors = on_all(members, [&](Collective& member) {
    const auto i = static_cast<std::size_t>(member.rank());
    SharedUpdates updates(member);
    results[i].left_out = updates.announce(lists[i]);
    std::vector<Update> pushed;
    for (std::size_t k = 0; k < lists[i].size(); ++k)
      if (!results[i].left_out[k] && lists[i][k].value.defined()) pushed.push_back(lists[i][k]);
    if (!pushed.empty()) {
      const auto all = updates.merged(pushed, SharedUpdates::Role::kApplies);
      results[i].merged.assign(all.begin(), all.end());
    }
    updates.applied();
  });
  all_well(errors);
  return results;
}

TEST(SharedUpdates, WhatDevicesMakeIsLeftOutByAllOrByNone) {
  const auto sum = Aggregation::kSum;
  const auto results =
      announced({{on_device(0), dense(1, {1, 2, 3, 4, 5}, sum), on_device(2), dense(3, {4}, sum)},
                 {on_device(2), dense(1, {10, 20, 30, 40, 50}, sum), dense(3, {40}, sum)}});
  EXPECT_THAT(results[0].left_out, ElementsAre(true, false, false, false));
  EXPECT_THAT(results[1].left_out, ElementsAre(false, false, false));
  for (const Announced& each : results) {
    ASSERT_EQ(each.merged.size(), 2u);
    EXPECT_THAT(values_of<float>(each.merged[0].value), ElementsAre(11, 22, 33, 44, 55));
    EXPECT_THAT(values_of<float>(each.merged[1].value), ElementsAre(44));
  }
}

TEST(SharedUpdates, ADeviceMakesWhatAnotherMemberPushes) {
  const auto none = Aggregation::kNone;
  const auto results =
      announced({{on_device(0), dense(1, {1}, none)}, {dense(0, {7}, none), on_device(1)}});
  for (const Announced& each : results) EXPECT_THAT(each.left_out, ElementsAre(false, false));
  ASSERT_EQ(results[0].merged.size(), 1u);
  EXPECT_EQ(results[0].merged[0].variable, 1u);
  ASSERT_EQ(results[1].merged.size(), 1u);
  EXPECT_EQ(results[1].merged[0].variable, 0u);
}

TEST(SharedUpdates, AnAnnouncementWithoutAPushLeavesTheNextPushToItself) {
  Members members = make_thread_group(2);
  const auto errors = on_all(members, [&](Collective& member) {
    SharedUpdates updates(member);
    EXPECT_THAT(updates.announce(std::vector<Update>{on_device(0)}), ElementsAre(false));
    std::vector<Update> pushed{dense(1, {1}, Aggregation::kSum), dense(2, {2}, Aggregation::kSum)};
    const auto all = updates.merged(pushed, SharedUpdates::Role::kApplies);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_THAT(values_of<float>(all[1].value), ElementsAre(4));
    updates.applied();
  });
  all_well(errors);
}

// ---- the store of a member ----

struct Store {
  Store() {
    auto spec = std::make_shared<VariableSpec>();
    spec->name = "v";
    spec->shape = {2};
    rows.create(std::move(spec));
  }
  std::vector<float> values() {
    std::vector<Read> reads{{.variable = 0}};
    rows.pull({}, reads);
    return values_of<float>(reads[0].value);
  }
  LocalStore rows;
};

TEST(GroupStore, AppliesAPushToEveryCopyOrInTheOnePlace) {
  Members members = make_thread_group(2);
  Store copies[2], one_place;
  const auto errors = on_all(members, [&](Collective& member) {
    const int rank = member.rank();
    GroupStore copy(member, copies[rank].rows, GroupStore::Rows::kCopies);
    GroupStore shared(member, one_place.rows, GroupStore::Rows::kOnePlace);
    std::vector<Update> push{dense(0, {1, static_cast<float>(rank)}, Aggregation::kSum)};
    copy.push({}, push);
    shared.push({}, push);
  });
  ASSERT_TRUE(all_well(errors));
  EXPECT_THAT(copies[0].values(), ElementsAre(2, 1));
  EXPECT_THAT(copies[1].values(), ElementsAre(2, 1));
  EXPECT_THAT(one_place.values(), ElementsAre(2, 1));
}

TEST(GroupStore, APushThatAMemberDoesNotComeToIsAppliedByNobody) {
  Members members = make_thread_group(3);
  Store copies[3];
  const auto errors = on_all(members, [&](Collective& member) {
    const int rank = member.rank();
    if (rank == 1) {
      members[1] = nullptr;  // it leaves
      return;
    }
    GroupStore copy(member, copies[rank].rows, GroupStore::Rows::kCopies);
    std::vector<Update> push{dense(0, {1, 1}, Aggregation::kSum)};
    copy.push({}, push);
  });
  EXPECT_THAT(errors[0], HasSubstr("rank 1"));
  EXPECT_THAT(errors[2], HasSubstr("rank 1"));
  for (Store& copy : copies) EXPECT_THAT(copy.values(), ElementsAre(0, 0));
}

}  // namespace
}  // namespace cairn
