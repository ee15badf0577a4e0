#include "worker/rows/routing.h"

#include <gmock/gmock.h>

namespace cairn::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// One variable "w" of shape [10, 4] in parts of rows [0, 6) on shard 0 and [6, 10) on shard 1, and
// a scalar "b" on shard 1.
std::shared_ptr<const Layout> two_variables() {
  auto layout = std::make_shared<Layout>();
  layout->version = 3;
  layout->shards = {{{0, "sim://a", 1, 1}, {}, 1}, {{1, "sim://b", 1, 1}, {}, 1}};
  VariableSpec w, b;
  w.name = "w";
  w.shape = {10, 4};
  b.name = "b";
  b.shape = {};
  layout->variables.push_back(
      {0, std::make_shared<const VariableSpec>(w), {}, {{0, {0, 6}}, {1, {6, 10}}}});
  layout->variables.push_back({1, std::make_shared<const VariableSpec>(b), {}, {{1, {0, 1}}}});
  return layout;
}

Tensor ids(const std::vector<std::int64_t>& values) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

TEST(Routing, AWholeReadNeedsNoIdsAndOneRequestAShard) {
  Routing routing(two_variables());
  const std::vector<Read> wave{{0, {}, {}}, {1, {}, {}}};
  const auto requests = routing.reads(wave);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].shard, 0u);
  EXPECT_EQ(requests[0].ids + requests[1].ids, 0u);
  EXPECT_EQ(requests[0].value_bytes, 6u * 16);
  EXPECT_EQ(requests[1].value_bytes, 4u * 16 + 4);
  ASSERT_EQ(requests[1].segments.size(), 2u);
  EXPECT_TRUE(requests[1].segments[0].whole);
  EXPECT_EQ(requests[1].segments[0].first, 6);
}

TEST(Routing, IdsGoToThePartsThatHoldThem) {
  Routing routing(two_variables());
  const std::vector<Read> wave{{0, ids({2, 5, 6, 9}), {}}};
  const auto requests = routing.reads(wave);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].segments[0].rows, 2);
  EXPECT_EQ(requests[1].segments[0].rows, 2);
  EXPECT_EQ(requests[1].segments[0].ids[0], 6);
  EXPECT_EQ(requests[1].segments[0].first, 2);
}

TEST(Routing, APartWithoutAnyOfTheIdsIsNotAsked) {
  Routing routing(two_variables());
  const std::vector<Read> wave{{0, ids({7}), {}}};
  const auto requests = routing.reads(wave);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].shard, 1u);
}

TEST(Routing, ATableRuleReachesEveryShardOfItsVariableARowRuleDoesNot) {
  Routing routing(two_variables());
  Update update{0,
                {RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}},
                0.1f,
                ids({7}),
                Tensor::zeros(DType::kFloat32, {1, 4})};
  EXPECT_EQ(routing.updates(std::span(&update, 1)).size(), 2u);
  update.rule = {RuleKind::kAdagrad, {0.1f, 1e-7f}};
  EXPECT_EQ(routing.updates(std::span(&update, 1)).size(), 1u);
  update.rule = {RuleKind::kLazyAdam, {0.9f, 0.999f, 1e-7f}};
  EXPECT_EQ(routing.updates(std::span(&update, 1)).size(), 2u)
      << "it counts updates, and every part has to count alike";
}

TEST(Routing, RequestsStayBelowThePieceSizeAndHoldEveryRowOnce) {
  Routing routing(two_variables(), RowEncoding::kRaw, 40);  // two rows of 16 bytes a request
  const std::vector<Read> wave{{0, {}, {}}};
  std::vector<std::int64_t> rows;
  for (const auto& request : routing.reads(wave)) {
    EXPECT_LE(request.value_bytes, 40u);
    for (const Segment& segment : request.segments)
      for (std::int64_t i = 0; i < segment.rows; ++i) rows.push_back(segment.first + i);
  }
  EXPECT_THAT(rows, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(Routing, ARowLargerThanAPieceGoesAlone) {
  Routing routing(two_variables(), RowEncoding::kRaw, 10);
  const std::vector<Read> wave{{0, ids({1, 2}), {}}};
  const auto requests = routing.reads(wave);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].segments.at(0).rows, 1);
}

// For each slice: its shard, its number, and the first and the end of the variable's rows it has.
std::vector<std::tuple<ShardId, std::uint32_t, std::int64_t, std::int64_t>> slices_of(
    const Routing& routing, const std::vector<Update>& wave) {
  std::vector<std::tuple<ShardId, std::uint32_t, std::int64_t, std::int64_t>> slices;
  for (const auto& request : routing.updates(wave))
    if (request.slice != 0)
      slices.emplace_back(request.shard, request.slice, request.segments.at(0).first,
                          request.segments.at(0).first + request.segments.at(0).rows);
  return slices;
}

Update update_of_all(RuleKind kind) {
  return {0, {kind, {0.1f, 0.1f, 0.1f}}, 0.1f, {}, Tensor::zeros(DType::kFloat32, {10, 4})};
}

// A closure that runs again may find other rows, on a lane with another encoding: what is in slices
// must be in the same ones.
TEST(Routing, LargePartsAreUpdatedInTheSameSlicesWhateverElseTravels) {
  const Update all = update_of_all(RuleKind::kSgd);
  const Update scalar{1, {RuleKind::kSgd, {}}, 0.1f, {}, Tensor::zeros(DType::kFloat32, {})};
  const auto expected =
      ElementsAre(std::tuple(0u, 1u, 0, 2), std::tuple(0u, 2u, 2, 4), std::tuple(0u, 3u, 4, 6),
                  std::tuple(1u, 1u, 6, 8), std::tuple(1u, 2u, 8, 10));
  for (const RowEncoding encoding : {RowEncoding::kRaw, RowEncoding::kBfloat16}) {
    const Routing routing(two_variables(), encoding, 40);  // two rows of 16 bytes a slice
    EXPECT_THAT(slices_of(routing, {all}), expected);
    EXPECT_THAT(slices_of(routing, {scalar, all}), expected);
    EXPECT_THAT(slices_of(routing, {all, scalar}), expected);
  }
}

TEST(Routing, WhatHasToBeAppliedAsAWholeOrInOrderIsNotCutInSlices) {
  const Routing routing(two_variables(), RowEncoding::kRaw, 40);
  EXPECT_TRUE(slices_of(routing, {update_of_all(RuleKind::kAdam)}).empty());
  EXPECT_TRUE(slices_of(routing, {update_of_all(RuleKind::kLazyAdam)}).empty());
  EXPECT_TRUE(
      slices_of(routing, {update_of_all(RuleKind::kAssign), update_of_all(RuleKind::kAssignAdd)})
          .empty());
  Update rows = update_of_all(RuleKind::kSgd);
  rows.ids = ids({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_TRUE(slices_of(routing, {rows}).empty());
  EXPECT_TRUE(slices_of(Routing(two_variables()), {update_of_all(RuleKind::kSgd)}).empty())
      << "it is small";
}

TEST(Routing, BytesOfBfloat16AreHalved) {
  Routing routing(two_variables(), RowEncoding::kBfloat16);
  const std::vector<Read> wave{{0, ids({0}), {}}};
  EXPECT_EQ(routing.reads(wave).at(0).value_bytes, 8u);
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return str(code_name(error.code()), ": ", error.what());
  }
  return "nothing was thrown";
}

TEST(Routing, AnIdOutsideTheVariableIsRefusedByName) {
  Routing routing(two_variables());
  for (std::int64_t id : {std::int64_t{-1}, std::int64_t{10}}) {
    const std::vector<Read> wave{{0, ids({id}), {}}};
    EXPECT_THAT(message_of([&] { routing.reads(wave); }),
                HasSubstr(str("InvalidArgument: row id ", id, " is outside variable \"w\"")));
  }
}

TEST(Routing, AnUpdateOfAnotherShapeIsRefused) {
  Routing routing(two_variables());
  const Update update{0, {}, 0, ids({1}), Tensor::zeros(DType::kFloat32, {2, 4})};
  EXPECT_THAT(message_of([&] { routing.updates(std::span(&update, 1)); }),
              HasSubstr("wants float32[1, 4], got float32[2, 4]"));
}

}  // namespace
}  // namespace cairn::worker
