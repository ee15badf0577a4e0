#include "worker/rows/update_gather.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/tensor/bfloat16.h"
#include "tests/worker/rows/blob_fixture.h"
#include "tests/worker/rows/fake_ps.h"

namespace cairn::worker {
namespace {

const UpdateRule kPlain{RuleKind::kSgd, {}};

Tensor filled(std::int64_t rows, std::int64_t dim, float value) {
  return floats_tensor({rows, dim},
                       std::vector<float>(static_cast<std::size_t>(rows * dim), value));
}
std::vector<float> floats_at(const Bytes& bytes) {
  std::vector<float> out(bytes.size / sizeof(float));
  if (!out.empty()) std::memcpy(out.data(), bytes.data, bytes.size);
  return out;
}

class UpdateGatherTest : public testing::Test {
 protected:
  // The one call to the only shard.
  PushCall call_of(const std::shared_ptr<const Layout>& layout, BlobMemory& memory,
                   RowEncoding encoding = RowEncoding::kRaw) {
    const Routing routing(layout, encoding);
    const auto requests = routing.updates(updates);
    CAIRN_CHECK(requests.size() == 1, requests.size(), " requests");
    PushCall call;
    UpdateGather(routing, updates, none.pool).fill(requests[0], memory, call);
    return call;
  }
  FakeMemory none{0};
  std::vector<Update> updates;
};

TEST_F(UpdateGatherTest, LargeValuesTravelFromWhereTheyLieAndAreCoOwned) {
  const Tensor a = filled(4000, 2, 1), b = filled(4000, 2, 2);
  updates = {{0, kPlain, 0.5f, {}, a}, {1, kPlain, 0.25f, {}, b}};
  const PushCall call = call_of(layout_of(1, {{"a", {4000, 2}}, {"b", {4000, 2}}}), none);
  EXPECT_FALSE(call.values_shared);
  ASSERT_EQ(call.values.size(), 2u);
  EXPECT_EQ(call.values[0].data, a.raw());
  EXPECT_EQ(call.values[1].data, b.raw());
  EXPECT_EQ(call.values[1].owner, b.owner());
  EXPECT_EQ(call.headers[1].learning_rate, 0.25f);
  EXPECT_TRUE(call.headers[1].rows.whole);
  EXPECT_EQ(call.ids.size, 0u);
}

TEST_F(UpdateGatherTest, ManySmallValuesTravelInOneBlob) {
  updates = {{0, kPlain, 1, ids_tensor({2, 3}), filled(2, 2, 1)},
             {1, kPlain, 1, ids_tensor({5}), filled(1, 2, 2)}};
  const PushCall call = call_of(layout_of(1, {{"a", {8, 2}}, {"b", {8, 2}}}), none);
  ASSERT_EQ(call.values.size(), 1u);
  EXPECT_EQ(floats_at(call.values[0]), (std::vector<float>{1, 1, 1, 1, 2, 2}));
  ASSERT_EQ(call.ids.size, 24u);
  const auto* ids = reinterpret_cast<const std::int64_t*>(call.ids.data);
  EXPECT_EQ(std::vector<std::int64_t>(ids, ids + 3), (std::vector<std::int64_t>{2, 3, 5}));
}

TEST_F(UpdateGatherTest, ValuesThatAreNoMultipleOfEightBytesTravelInOneBlob) {
  updates = {{0, kPlain, 1, {}, floats_tensor({5001}, std::vector<float>(5001, 1))},
             {1, kPlain, 1, {}, floats_tensor({6000}, std::vector<float>(6000, 2))}};
  const PushCall call = call_of(layout_of(1, {{"a", {5001}}, {"b", {6000}}}), none);
  ASSERT_EQ(call.values.size(), 1u);
  EXPECT_EQ(floats_at(call.values[0])[5001], 2);
}

TEST_F(UpdateGatherTest, EncodedValuesAreLaidOutAnew) {
  updates = {{0, kPlain, 1, {}, filled(4, 2, 3)}};
  const PushCall call = call_of(layout_of(1, {{"a", {4, 2}}}), none, RowEncoding::kBfloat16);
  ASSERT_EQ(call.values.size(), 1u);
  EXPECT_EQ(call.values[0].size, 16u);
  EXPECT_EQ(from_bfloat16(reinterpret_cast<const std::uint16_t*>(call.values[0].data)[7]), 3);
  EXPECT_EQ(call.encoding, RowEncoding::kBfloat16);
}

// One was computed where the shard reads it, and stays there.
TEST_F(UpdateGatherTest, InSharedMemoryEachUpdateHasAPlaceOfItsOwn) {
  FakeMemory memory(1 << 20);
  Bytes computed = memory.take_shared(32);
  const std::vector<float> sevens(8, 7);
  std::memcpy(computed.data, sevens.data(), 32);
  updates = {
      {0, kPlain, 1, {}, filled(3, 1, 5)},
      {1, kPlain, 1, {}, Tensor::borrowed(DType::kFloat32, {4, 2}, computed.data, computed.owner)},
      {2, kPlain, 1, {}, filled(5, 1, 6)}};
  const PushCall call =
      call_of(layout_of(1, {{"a", {3, 1}}, {"b", {4, 2}}, {"c", {5, 1}}}), memory);
  EXPECT_TRUE(call.values_shared);
  ASSERT_EQ(call.values.size(), 3u);
  EXPECT_EQ(call.values[1].data, computed.data);
  EXPECT_EQ(floats_at(call.values[0]), std::vector<float>(3, 5));
  EXPECT_EQ(floats_at(call.values[2]), std::vector<float>(5, 6));
  for (const Bytes& values : call.values) {
    EXPECT_TRUE(memory.shared(values));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values.data) % 8, 0u);
  }
}

TEST_F(UpdateGatherTest, WhereSharedMemoryHasNoRoomEverythingTravels) {
  FakeMemory memory(48);
  Bytes computed = memory.take_shared(32);
  std::memset(computed.data, 0, 32);
  updates = {
      {0, kPlain, 1, {}, Tensor::borrowed(DType::kFloat32, {4, 2}, computed.data, computed.owner)},
      {1, kPlain, 1, {}, filled(20, 2, 6)}};
  const PushCall call = call_of(layout_of(1, {{"a", {4, 2}}, {"b", {20, 2}}}), memory);
  EXPECT_FALSE(call.values_shared);
  ASSERT_EQ(call.values.size(), 1u);
  EXPECT_EQ(floats_at(call.values[0]).size(), 48u);
}

// Adam decays slots on every shard of a variable, rows or not.
TEST_F(UpdateGatherTest, AnUpdateWithoutRowsHasAHeaderAndNoValues) {
  updates = {{0, {RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}}, 1, ids_tensor({}), filled(0, 2, 0)}};
  const PushCall call = call_of(layout_of(1, {{"a", {4, 2}}}), none);
  ASSERT_EQ(call.headers.size(), 1u);
  EXPECT_EQ(call.headers[0].rows.rows, 0u);
  EXPECT_TRUE(call.values.empty());
}

}  // namespace
}  // namespace cairn::worker
