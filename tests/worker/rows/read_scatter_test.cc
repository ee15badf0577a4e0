#include "worker/rows/read_scatter.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/worker/rows/blob_fixture.h"
#include "tests/worker/rows/fake_ps.h"

namespace cairn::worker {
namespace {

class ReadScatterTest : public testing::Test {
 protected:
  void cut(const std::shared_ptr<const Layout>& layout, std::size_t piece_bytes_max = 4 << 20,
           RowEncoding encoding = RowEncoding::kRaw) {
    routing = std::make_unique<Routing>(layout, encoding, piece_bytes_max);
    requests = routing->reads(reads);
    scatter = std::make_unique<ReadScatter>(*routing, reads, requests, memory.pool,
                                            [this](ShardId) -> BlobMemory& { return memory; });
  }
  ReadScatter::Copies ask(std::size_t request, PartCache* cache = nullptr) {
    call = {};
    return scatter->ask(requests.at(request), memory, cache, call);
  }
  // A reply of these values, as if by the shard's message.
  static PullReply reply_of(const std::vector<float>& values, std::size_t whole_parts = 0,
                            std::uint64_t written = 9) {
    auto owner = std::make_shared<std::vector<double>>(values.size() / 2 + 1);
    std::ranges::copy(std::as_bytes(std::span(values)),
                      std::as_writable_bytes(std::span(*owner)).begin());
    PullReply reply;
    reply.version = {100, 1};
    reply.written.assign(whole_parts, written);
    reply.values = std::as_bytes(std::span(*owner)).first(values.size() * sizeof(float));
    reply.owner = owner;
    return reply;
  }
  static std::vector<float> counted(std::size_t count, float from = 0) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), from);
    return values;
  }

  FakeMemory memory{1 << 20};
  std::vector<Read> reads;
  std::unique_ptr<Routing> routing;
  std::vector<ShardRequest> requests;
  std::unique_ptr<ReadScatter> scatter;
  PullCall call;
};

TEST_F(ReadScatterTest, AReadThatOneMessageServesAloneRefersToThatMessage) {
  reads = {{0, ids_tensor({1, 5}), {}}, {1, ids_tensor({0}), {}}};
  cut(layout_of(1, {{"a", {8, 2}}, {"b", {3, 2}}}));
  ASSERT_EQ(requests.size(), 1u);
  ask(0);
  EXPECT_EQ(call.value_bytes, 24u);
  EXPECT_EQ(call.into.data, nullptr);  // two reads have no one destination
  const PullReply reply = reply_of(counted(6));
  scatter->land(requests[0], {}, reply, nullptr);
  EXPECT_EQ(reads[0].value.raw(), reply.values.data());
  EXPECT_EQ(reads[1].value.raw(), reply.values.data() + 16);
  EXPECT_EQ(floats_of(reads[1].value), (std::vector<float>{4, 5}));
}

TEST_F(ReadScatterTest, RowsThatAreNotAlignedInTheirMessageAreCopied) {
  reads = {{0, ids_tensor({1}), {}}, {1, ids_tensor({0, 2}), {}}};
  cut(layout_of(1, {{"a", {8}}, {"b", {3, 2}}}));
  ask(0);
  const PullReply reply = reply_of(counted(5));
  scatter->land(requests[0], {}, reply, nullptr);
  EXPECT_NE(reads[1].value.raw(), reply.values.data() + 4);
  EXPECT_EQ(floats_of(reads[1].value), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(ReadScatterTest, RowsOfSeveralShardsMeetInTheOrderOfTheRead) {
  reads = {{0, ids_tensor({0, 3, 4, 7}), {}}};
  cut(layout_of(2, {{"a", {8, 2}}}));
  ASSERT_EQ(requests.size(), 2u);
  ask(1);
  EXPECT_EQ(call.into.size, 16u);  // it fills half of the read, and may be written there
  scatter->land(requests[1], {}, reply_of({40, 41, 70, 71}), nullptr);
  ask(0);
  scatter->land(requests[0], {}, reply_of({0, 1, 30, 31}), nullptr);
  EXPECT_EQ(floats_of(reads[0].value), (std::vector<float>{0, 1, 30, 31, 40, 41, 70, 71}));
}

TEST_F(ReadScatterTest, AReadInPiecesFromOneShardMeetsInMemorySharedWithIt) {
  reads = {{0, {}, {}}};
  cut(layout_of(1, {{"a", {8, 2}}}), 32);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_TRUE(memory.shared({nullptr, reads[0].value.mutable_raw(), 64}));
  for (std::size_t i : {0u, 1u}) {
    ask(i);
    EXPECT_EQ(call.into.data, reads[0].value.raw() + 32 * i);
    EXPECT_EQ(call.into.size, 32u);
    // The shard writes there, and the reply says so.
    const std::vector<float> rows = counted(8, static_cast<float>(8 * i));
    std::memcpy(call.into.data, rows.data(), 32);
    PullReply reply;
    reply.version = {100, 1};
    reply.values = {call.into.data, 32};
    scatter->land(requests[i], {}, reply, nullptr);
  }
  EXPECT_EQ(floats_of(reads[0].value), counted(16));
}

TEST_F(ReadScatterTest, EncodedRowsAreWidenedAndNeverWrittenInPlace) {
  reads = {{0, {}, {}}};
  cut(layout_of(1, {{"a", {8, 2}}}), 16, RowEncoding::kBfloat16);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_FALSE(memory.shared({nullptr, reads[0].value.mutable_raw(), 64}));
  ask(1);
  EXPECT_EQ(call.value_bytes, 16u);
  EXPECT_EQ(call.into.data, nullptr);
  alignas(8) std::uint16_t narrow[8];
  for (std::uint16_t i = 0; i < 8; ++i) narrow[i] = to_bfloat16(static_cast<float>(i));
  PullReply reply;
  reply.values = std::as_bytes(std::span(narrow));
  scatter->land(requests[1], {}, reply, nullptr);
  const std::vector<float> values = floats_of(reads[0].value);
  EXPECT_EQ(std::vector<float>(values.begin() + 8, values.end()), counted(8));
}

TEST_F(ReadScatterTest, AReadOfNoRowsHasAnEmptyValueAndNoRequest) {
  reads = {{0, ids_tensor({}), {}}};
  cut(layout_of(1, {{"a", {8, 2}}}));
  EXPECT_TRUE(requests.empty());
  EXPECT_EQ(reads[0].value.shape(), Shape({0, 2}));
}

TEST_F(ReadScatterTest, APartThatStandsStillComesFromItsCopyAndTheRestFromTheReply) {
  PartCache cache;
  const auto layout = layout_of(1, {{"still", {4}}, {"table", {8, 2}}});
  for (int pull = 0; pull < 2; ++pull) {  // two pulls with the same last write make a copy
    reads = {{0, {}, {}}};
    cut(layout);
    const auto copies = ask(0, &cache);
    EXPECT_EQ(call.copies_of, 0u);
    scatter->land(requests[0], copies, reply_of({1, 2, 3, 4}, 1), &cache);
  }
  reads = {{0, {}, {}}, {1, ids_tensor({6}), {}}};
  cut(layout);
  const auto copies = ask(0, &cache);
  EXPECT_EQ(call.copies_of, 100u);
  EXPECT_EQ(call.headers[0].written, 9u);
  cache.clear();  // copies named in a call are kept until the reply is here
  scatter->land(requests[0], copies, reply_of({60, 61}, 1), &cache);
  EXPECT_EQ(floats_of(reads[0].value), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(floats_of(reads[1].value), (std::vector<float>{60, 61}));
}

TEST_F(ReadScatterTest, AShardThatLeavesOutWhatHasNoCopyIsAnInternalError) {
  reads = {{0, {}, {}}};
  cut(layout_of(1, {{"a", {4}}}));
  const auto copies = ask(0);
  EXPECT_THROW(scatter->land(requests[0], copies, reply_of({}, 1), nullptr), InternalError);
}

}  // namespace
}  // namespace cairn::worker
