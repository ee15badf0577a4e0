// Large values: in pieces and slices, in memory shared with the shard and without.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>

#include "tests/worker/rows/remote_store_fixture.h"
#include "worker/rows/remote_step.h"

namespace cairn::worker {
namespace {

// With memory to share, and with none.
class Bulk : public RemoteStoreTest, public testing::WithParamInterface<bool> {
 protected:
  void use(std::size_t ps, std::vector<std::pair<std::string, Shape>> variables,
           RowEncoding encoding = RowEncoding::kRaw, ShardLinkOptions link = {}) {
    if (!GetParam()) link.shared_bytes = 0;
    RemoteStoreTest::use(ps, std::move(variables), encoding, link);
  }
};
INSTANTIATE_TEST_SUITE_P(Memory, Bulk, testing::Bool(),
                         [](const auto& info) { return info.param ? "Shared" : "Sent"; });

// By a rule that takes each row for itself, each a push of its own, and else pieces of one push.
TEST_P(Bulk, LargeReadsAndUpdatesTravelInPiecesOfAtMostFourMegabytes) {
  use(1, {{"big", {3000, 1000}}});  // 12 MB
  RemoteStep step(*store);
  std::vector<Read> reads{{0, {}, {}}};
  ASSERT_EQ(pull(step, reads), "");
  EXPECT_EQ(cluster->asked.size(), 3u);
  EXPECT_EQ(floats_of(reads[0].value)[2'999'001], initial_value(0, 2999, 1));
  std::vector<float> gradient(3'000'000, 0);
  gradient[2'999'001] = 5;
  for (const UpdateRule& rule : {kSgd, kAdam}) {
    const bool sliced = rule == kSgd;
    cluster->asked.clear();
    std::vector<Update> updates{{0, rule, 1, {}, floats_tensor({3000, 1000}, gradient)}};
    ASSERT_EQ(push(step, updates), "");
    std::size_t rows = 0;
    ASSERT_EQ(cluster->asked.size(), 3u);
    for (std::uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(cluster->asked[i].slice, sliced ? i + 1 : 0);
      EXPECT_EQ(cluster->asked[i].piece, sliced ? 0 : i);
      EXPECT_EQ(cluster->asked[i].pieces, sliced ? 1u : 3u);
      EXPECT_EQ(cluster->asked[i].shared, GetParam());
      EXPECT_LE(cluster->asked[i].value_bytes, std::size_t{4} << 20);
      rows += cluster->asked[i].ids.size();
    }
    EXPECT_EQ(rows, 3000u);
  }
  // the shards of this test know one rule
  EXPECT_EQ(cluster->row(0, 2999, 1), initial_value(0, 2999, 1) - 10);
}

// Values that are not in slices travel in pieces, whose numbers do not count the slices.
TEST_P(Bulk, ManyRowsBesideALargeUpdateTravelInPieces) {
  use(1, {{"table", {3000, 1000}}, {"big", {3000, 1000}}, {"more", {500, 1000}}});
  std::vector<std::int64_t> rows(2000);
  std::iota(rows.begin(), rows.end(), 0);
  RemoteStep step(*store);
  const std::vector<float> ones(3'000'000, 1);
  std::vector<Update> updates{
      {0, kSgd, 1, ids_tensor(rows),
       floats_tensor({2000, 1000}, {ones.begin(), ones.begin() + 2'000'000})},
      {1, kSgd, 1, {}, floats_tensor({3000, 1000}, ones)},
      {2, kSgd, 1, {}, floats_tensor({500, 1000}, {ones.begin(), ones.begin() + 500'000})}};
  ASSERT_EQ(push(step, updates), "");
  std::vector<std::uint32_t> slices, pieces;
  for (const Asked& asked : cluster->asked) {
    EXPECT_EQ(asked.pieces, asked.slice == 0 ? 3u : 1u);
    (asked.slice == 0 ? pieces : slices).push_back(asked.slice == 0 ? asked.piece : asked.slice);
  }
  EXPECT_EQ(slices, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(pieces, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(cluster->row(0, 1999, 3), initial_value(0, 1999, 3) - 1);
  EXPECT_EQ(cluster->row(1, 2999, 3), initial_value(1, 2999, 3) - 1);
  EXPECT_EQ(cluster->row(2, 499, 3), initial_value(2, 499, 3) - 1);
}

// A shard that answered both alike would have both closures wait for the last piece.
TEST_P(Bulk, TheFirstClosureHasItsRowsBeforeTheSecond) {
  use(1, {{"big", {3000, 1000}}});
  RemoteStep first(*store), second(*store);
  std::vector<Read> firsts{{0, {}, {}}}, seconds{{0, {}, {}}};
  int done = 0;
  auto one = counted(first.pull(context, firsts), done);
  context.closure = 8;
  auto other = counted(second.pull(context, seconds), done);
  cluster->run_until([&] { return done == 2; });
  EXPECT_EQ(cluster->events(),
            (std::vector<std::string>{"pull 7", "pull 7", "pull 7", "pull 8", "pull 8", "pull 8"}));
}

TEST_P(Bulk, APullDoesNotWaitForALargePush) {
  use(1, {{"big", {12'000, 1000}}, {"small", {3, 2}}});
  cluster->before = [](const Asked& asked) -> kj::Promise<void> {
    return asked.push ? kj::Promise<void>(kj::NEVER_DONE) : kj::READY_NOW;
  };
  RemoteStep pushing(*store), pulling(*store);
  std::vector<Update> updates{
      {0, kSgd, 1, {}, floats_tensor({12'000, 1000}, std::vector<float>(12'000'000))}};
  int pushed = 0;
  auto push_on = counted(pushing.push(context, updates), pushed);
  cluster->run_until([&] { return !cluster->asked.empty(); });
  std::vector<Read> reads{{1, {}, {}}};
  EXPECT_EQ(pull(pulling, reads), "");
  EXPECT_EQ(cluster->pushes().size(), GetParam() ? 12u : ShardLinkOptions().pieces_under_way);
}

// As a shard does, which keeps them in the worker's memory until it has them all.
TEST_P(Bulk, PiecesOfAPushMayBeAnsweredWhenAllAreThere) {
  use(1, {{"big", {6000, 1000}}});
  auto all = kj::newPromiseAndFulfiller<void>();
  auto there = all.promise.fork();
  cluster->before = [&](const Asked& asked) -> kj::Promise<void> {
    if (!GetParam()) return kj::READY_NOW;
    if (asked.piece + 1 == asked.pieces) all.fulfiller->fulfill();
    return there.addBranch();
  };
  RemoteStep step(*store);
  std::vector<Update> updates{
      {0, kAdam, 1, {}, floats_tensor({6000, 1000}, std::vector<float>(6'000'000))}};
  EXPECT_EQ(push(step, updates), "");
  EXPECT_EQ(cluster->asked.size(), 6u);
}

// The shard answers no piece before all pieces of both pushes are there. With little credit to
// share, neither push may block the other.
TEST_F(RemoteStoreTest, PiecesOfSeveralPushesThatWaitForEachOtherHoldUpNone) {
  ShardLinkOptions link;
  link.shared_min = 16;
  link.piece_bytes_max = 64;
  use(1, {{"big", {64, 1}}}, RowEncoding::kRaw, link);
  std::map<std::uint64_t, std::size_t> here;  // pieces, by closure
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waiting;
  cluster->before = [&](const Asked& asked) -> kj::Promise<void> {
    ++here[asked.closure];
    if (here.size() == 2 && here[7] == asked.pieces && here[8] == asked.pieces)
      for (auto& one : waiting) one->fulfill();
    auto pair = kj::newPromiseAndFulfiller<void>();
    waiting.push_back(kj::mv(pair.fulfiller));
    if (here[7] == asked.pieces && here[8] == asked.pieces) return kj::READY_NOW;
    return kj::mv(pair.promise);
  };
  RemoteStep first(*store), second(*store);
  std::vector<Update> updates{{0, kAdam, 1, {}, floats_tensor({64, 1}, std::vector<float>(64))}};
  int done = 0;
  auto one = counted(first.push(context, updates), done);
  context.closure = 8;
  auto other = counted(second.push(context, updates), done);
  EXPECT_TRUE(cluster->run_until([&] { return done == 2; }));
}

TEST_P(Bulk, AnUpdateThatWasComputedInItsPlaceIsPushedFromThere) {
  use(1, {{"big", {3000, 1000}}, {"small", {3, 2}}});
  RemoteStep step(*store);
  EXPECT_EQ(step.update_place(0, 12'000'000), nullptr);  // no shard is connected yet
  std::vector<Read> reads{{1, {}, {}}};
  ASSERT_EQ(pull(step, reads), "");
  EXPECT_EQ(step.update_place(1, 24), nullptr);  // it travels with others
  auto place = step.update_place(0, 12'000'000);
  ASSERT_EQ(place != nullptr, GetParam());
  if (place == nullptr) return;
  std::span(reinterpret_cast<float*>(place.get()), 3'000'000)[2'999'001] = 5;
  const auto* at = place.get();
  cluster->asked.clear();
  std::vector<Update> updates{
      {0, kSgd, 1, {}, Tensor::borrowed(DType::kFloat32, {3000, 1000}, at, std::move(place))}};
  ASSERT_EQ(push(step, updates), "");
  EXPECT_EQ(cluster->row(0, 2999, 1), initial_value(0, 2999, 1) - 5);
  ASSERT_EQ(cluster->asked.size(), 3u);
  // one after the other, as they lay
  EXPECT_EQ(cluster->asked[1].values_at.front(),
            cluster->asked[0].values_at.front() + cluster->asked[0].value_bytes);
  updates.clear();
  EXPECT_EQ(step.update_place(0, 12'000'000).get(), at);  // all is answered: it serves again
}

// A device registers the memory of rows and gradients, for as long as they lie there: memory shared
// with the shard, or, if there is none or rows of several shards meet, the reactor's buffers.
TEST_P(Bulk, MemoryInWhichValuesLieIsRegistered) {
  std::map<const std::byte*, std::size_t> registered;
  ShardLinkOptions link;
  link.register_memory = [&](std::byte* begin, std::size_t bytes) {
    registered[begin] = bytes;
    return std::shared_ptr<void>(begin, [&registered](void* gone) {
      registered.erase(static_cast<const std::byte*>(gone));
    });
  };
  const auto holds = [&](const std::byte* at, std::size_t bytes) {
    const auto after = registered.upper_bound(at);
    if (after == registered.begin()) return false;
    const auto& [begin, size] = *std::prev(after);
    return at + bytes <= begin + size;
  };
  for (const std::size_t ps : {1, 2}) {
    use(ps, {{"w", {9000, 2}}}, RowEncoding::kRaw, link);
    cluster->reactor.buffers().register_with(link.register_memory);
    {
      RemoteStep step(*store);
      std::vector<Read> reads{{0, {}, {}}};
      ASSERT_EQ(pull(step, reads), "");
      EXPECT_TRUE(holds(reads[0].value.raw(), 72'000) || (!GetParam() && ps == 1));
      const auto place = step.update_place(0, 72'000);
      ASSERT_NE(place, nullptr);
      EXPECT_TRUE(holds(place.get(), 72'000));
      EXPECT_EQ(step.update_place(0, 8), nullptr);
    }
    store = nullptr;
    cluster = nullptr;
    EXPECT_TRUE(registered.empty());
  }
}

// Values computed where the shard reads them, values computed elsewhere, and values too small to
// have a place of their own.
TEST_P(Bulk, UpdatesOfOnePushMayLieInPlaceAndElsewhere) {
  use(1, {{"a", {9000, 2}}, {"b", {3}}, {"c", {9000, 2}}, {"d", {9000, 2}}});
  RemoteStep step(*store);
  std::vector<Read> reads{{1, {}, {}}};
  ASSERT_EQ(pull(step, reads), "");
  std::vector<std::int64_t> rows(4001);
  std::iota(rows.begin(), rows.end(), 4999);
  std::vector<Update> updates{{0, kSgd, 1, ids_tensor(rows), {}},
                              {1, kSgd, 1, {}, floats_tensor({3}, {1, 2, 3})},
                              {2, kSgd, 1, ids_tensor(rows), {}},
                              {3, kSgd, 1, ids_tensor(rows), {}}};
  const std::vector<float> elsewhere(rows.size() * 2, 6);
  for (Update& update : updates) {
    if (update.value.defined()) continue;
    auto place =
        update.variable == 2 ? nullptr : step.update_place(update.variable, rows.size() * 8);
    EXPECT_EQ(place != nullptr, GetParam() && update.variable != 2);
    const std::byte* at = place.get();
    if (place != nullptr)
      std::ranges::fill(std::span(reinterpret_cast<float*>(place.get()), rows.size() * 2),
                        static_cast<float>(update.variable + 4));
    update.value = place != nullptr
                       ? Tensor::borrowed(DType::kFloat32, {4001, 2}, at, std::move(place))
                       : floats_tensor({4001, 2}, elsewhere);
  }
  cluster->asked.clear();
  ASSERT_EQ(push(step, updates), "");
  ASSERT_EQ(cluster->asked.size(), 1u);
  EXPECT_EQ(cluster->asked[0].values_at.size(), GetParam() ? 4u : 0u);
  EXPECT_EQ(cluster->row(0, 8999, 1), initial_value(0, 8999, 1) - (GetParam() ? 4 : 6));
  EXPECT_EQ(cluster->row(1, 2), initial_value(1, 2, 0) - 3);
  EXPECT_EQ(cluster->row(2, 8999, 1), initial_value(2, 8999, 1) - 6);
  EXPECT_EQ(cluster->row(3, 4999, 0), initial_value(3, 4999, 0) - (GetParam() ? 7 : 6));
  EXPECT_EQ(cluster->row(3, 4998, 0), initial_value(3, 4998, 0));
}

TEST_F(RemoteStoreTest, WhatFindsNoRoomInSharedMemoryTravels) {
  ShardLinkOptions small;
  small.shared_bytes = 64 << 10;
  use(1, {{"a", {9000, 2}}, {"b", {9000, 2}}}, RowEncoding::kRaw, small);
  RemoteStep step(*store);
  std::vector<Read> reads{{0, ids_tensor({1}), {}}};
  ASSERT_EQ(pull(step, reads), "");
  auto place = step.update_place(0, 36'000);
  ASSERT_NE(place, nullptr);
  const std::byte* at = place.get();
  std::ranges::fill(std::span(reinterpret_cast<float*>(place.get()), 9000), 3.0f);
  EXPECT_EQ(step.update_place(1, 72'000), nullptr);
  std::vector<std::int64_t> rows(4500);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<Update> updates{
      {0, kSgd, 1, ids_tensor(rows),
       Tensor::borrowed(DType::kFloat32, {4500, 2}, at, std::move(place))},
      {1, kSgd, 1, {}, floats_tensor({9000, 2}, std::vector<float>(18'000, 5))}};
  cluster->asked.clear();
  ASSERT_EQ(push(step, updates), "");
  ASSERT_EQ(cluster->asked.size(), 1u);
  EXPECT_FALSE(cluster->asked[0].shared);
  EXPECT_EQ(cluster->row(0, 4499, 1), initial_value(0, 4499, 1) - 3);
  EXPECT_EQ(cluster->row(1, 8999, 1), initial_value(1, 8999, 1) - 5);
}

TEST_P(Bulk, UpdatesOfSeveralVariablesArriveInOrderWhateverTheirSizes) {
  // In some calls all values together are a multiple of 8 bytes, in others not; those of most
  // single variables are not.
  use(2, {{"a", {4001, 3}}, {"b", {9001, 3}}, {"c", {60'001, 1}}});
  RemoteStep step(*store);
  for (const std::int64_t apart : {1, 2, 3}) {
    std::vector<Update> updates;
    for (VariableId v = 0; v < 3; ++v) {
      const VariableSpec& spec = *cluster->layout->variables[v].spec;
      std::vector<std::int64_t> ids;
      for (std::int64_t row = 0; row < spec.rows(); row += apart) ids.push_back(row);
      std::vector<float> values(ids.size() * static_cast<std::size_t>(spec.dim()));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 61);
      updates.push_back(
          {v, kSgd, 1, ids_tensor(ids),
           floats_tensor({static_cast<std::int64_t>(ids.size()), spec.dim()}, values)});
    }
    cluster->asked.clear();
    ASSERT_EQ(push(step, updates), "");
    std::vector<float> sent, arrived;
    for (const Update& update : updates)
      for (const float value : floats_of(update.value)) sent.push_back(value);
    std::vector<std::vector<float>> by_variable(3);
    for (ShardId shard : {0u, 1u})
      for (const Asked& asked : cluster->asked) {
        if (asked.shard != shard) continue;
        const float* value = asked.values.data();
        for (const PartUpdate& part : asked.parts) {
          const std::size_t count =
              part.rows.rows *
              static_cast<std::size_t>(cluster->layout->variables[part.rows.variable].spec->dim());
          by_variable[part.rows.variable].insert(by_variable[part.rows.variable].end(), value,
                                                 value + count);
          value += count;
        }
      }
    for (const auto& values : by_variable)
      arrived.insert(arrived.end(), values.begin(), values.end());
    EXPECT_EQ(arrived, sent) << "rows " << apart << " apart";
  }
}

// Large ones are sent from where they lie, all in one call.
TEST_P(Bulk, UpdatesAreHeldUntilTheyWereSentAndNoLonger) {
  use(1, {{"a", {4000, 8}}, {"b", {9000, 8}}});
  RemoteStep step(*store);
  auto owner = std::make_shared<std::vector<float>>(9000 * 8, 2.0f);
  const auto* values = reinterpret_cast<const std::byte*>(owner->data());
  std::vector<Update> updates{
      {0, kSgd, 1, {}, Tensor::borrowed(DType::kFloat32, {4000, 8}, values, owner)},
      {1, kSgd, 1, {}, Tensor::borrowed(DType::kFloat32, {9000, 8}, values, owner)}};
  ASSERT_EQ(push(step, updates), "");
  EXPECT_EQ(cluster->asked.size(), 1u);
  EXPECT_EQ(cluster->row(1, 8999, 7), initial_value(1, 8999, 7) - 2);
  updates.clear();
  EXPECT_EQ(owner.use_count(), 1);
}

// Such as a constant that several functions add.
TEST_P(Bulk, PushesThatBeginWithTheSameValuesDoNotMix) {
  use(1, {{"a", {8000, 8}}, {"b", {9000, 8}}, {"c", {4000, 8}}});
  RemoteStep connecting(*store), first(*store), second(*store);
  std::vector<Read> reads{{0, ids_tensor({1}), {}}};
  ASSERT_EQ(pull(connecting, reads), "");
  const Tensor same = floats_tensor({8000, 8}, std::vector<float>(64'000, 1));
  std::vector<Update> firsts{
      {0, kSgd, 1, {}, same},
      {1, kSgd, 1, {}, floats_tensor({9000, 8}, std::vector<float>(72'000, 2))}};
  std::vector<Update> seconds{
      {0, kSgd, 1, {}, same},
      {2, kSgd, 1, {}, floats_tensor({4000, 8}, std::vector<float>(32'000, 3))}};
  int done = 0;
  auto one = counted(first.push(context, firsts), done);
  context.closure = 8;
  auto other = counted(second.push(context, seconds), done);
  ASSERT_TRUE(cluster->run_until([&] { return done == 2; }));
  EXPECT_EQ(cluster->row(0, 7999, 7), initial_value(0, 7999, 7) - 2);
  EXPECT_EQ(cluster->row(1, 8999, 7), initial_value(1, 8999, 7) - 2);
  EXPECT_EQ(cluster->row(2, 3999, 7), initial_value(2, 3999, 7) - 3);
}

TEST_P(Bulk, RowsOfManyPlacesMakeTheSameValues) {
  use(2, {{"a", {4000, 8}}, {"b", {9000, 3}}});
  std::vector<std::int64_t> some(3000);
  for (std::size_t i = 0; i < some.size(); ++i) some[i] = static_cast<std::int64_t>(i * 3);
  RemoteStep step(*store);
  std::vector<Read> reads{{0, {}, {}}, {1, ids_tensor(some), {}}};
  for (int turn = 0; turn < 2; ++turn) {  // at first there is no connection yet
    ASSERT_EQ(pull(step, reads), "");
    EXPECT_EQ(floats_of(reads[0].value)[8 * 3999 + 7], initial_value(0, 3999, 7));
    EXPECT_EQ(floats_of(reads[1].value), expected(1, some, 3));
  }
  std::vector<Update> updates{
      {1, kSgd, 1, ids_tensor(some), floats_tensor({3000, 3}, std::vector<float>(9000, 2))}};
  ASSERT_EQ(push(step, updates), "");
  EXPECT_EQ(cluster->row(1, 8997, 2), initial_value(1, 8997, 2) - 2);
  EXPECT_EQ(cluster->row(1, 8998, 2), initial_value(1, 8998, 2));
}

TEST_P(Bulk, Bfloat16RowsArriveAsFloats) {
  use(1, {{"w", {4000, 8}}}, RowEncoding::kBfloat16);
  RemoteStep step(*store);
  std::vector<Read> reads{{0, {}, {}}};
  ASSERT_EQ(pull(step, reads), "");
  EXPECT_NEAR(floats_of(reads[0].value)[8 * 3999], initial_value(0, 3999, 0), 8);
}

}  // namespace
}  // namespace cairn::worker
