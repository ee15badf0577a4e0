#include "worker/rows/remote_step.h"

#include <gmock/gmock.h>

#include <numeric>

#include "tests/worker/rows/remote_store_fixture.h"

namespace cairn::worker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(RemoteStoreTest, RowsComeFromTheShardsThatHoldThemInTheOrderAsked) {
  use(3, {{"w", {10, 4}}});
  RemoteStep step(*store);
  std::vector<Read> reads{{0, ids_tensor({0, 3, 4, 9}), {}}};
  ASSERT_EQ(pull(step, reads), "");
  EXPECT_EQ(floats_of(reads[0].value), expected(0, {0, 3, 4, 9}, 4));
  EXPECT_EQ(reads[0].value.shape(), Shape({4, 4}));
  std::size_t rows = 0;
  for (const Asked& asked : cluster->asked) rows += asked.ids.size();
  EXPECT_EQ(rows, 4u);  // and no others
}

TEST_F(RemoteStoreTest, AStepIsOnePullAndOnePushAShardHoweverManyVariables) {
  use(2, {{"a", {8, 2}}, {"b", {6, 3}}, {"c", {2}}});
  RemoteStep step(*store);
  std::vector<Read> reads{{0, ids_tensor({1, 7}), {}}, {1, {}, {}}, {2, {}, {}}};
  ASSERT_EQ(pull(step, reads), "");
  EXPECT_EQ(floats_of(reads[0].value), expected(0, {1, 7}, 2));
  EXPECT_EQ(floats_of(reads[1].value), expected(1, {0, 1, 2, 3, 4, 5}, 3));
  EXPECT_EQ(floats_of(reads[2].value), expected(2, {0, 1}, 1));
  std::vector<Update> updates{{0, kSgd, 1, ids_tensor({1, 7}), floats_tensor({2, 2}, {1, 2, 3, 4})},
                              {1, kSgd, 1, {}, Tensor::zeros(DType::kFloat32, {6, 3})},
                              {2, kSgd, 0.5f, {}, floats_tensor({2}, {10, 20})}};
  ASSERT_EQ(push(step, updates), "");
  EXPECT_EQ(cluster->asked.size(), 4u);
  EXPECT_EQ(cluster->row(0, 1, 1), initial_value(0, 1, 1) - 2);
  EXPECT_EQ(cluster->row(0, 7, 0), initial_value(0, 7, 0) - 3);
  EXPECT_EQ(cluster->row(2, 1), initial_value(2, 1, 0) - 10);
  EXPECT_EQ(step.updated(), true);
}

TEST_F(RemoteStoreTest, ATableRulePushesToEveryShardWithIdsOrWithout) {
  use(3, {{"w", {9, 2}}});
  RemoteStep step(*store);
  std::vector<Update> updates{{0, kAdam, 1, ids_tensor({4}), floats_tensor({1, 2}, {1, 1})}};
  ASSERT_EQ(push(step, updates), "");
  const auto pushes = cluster->pushes();
  ASSERT_EQ(pushes.size(), 3u);
  for (const Asked& asked : pushes) {
    ASSERT_EQ(asked.parts.size(), 1u);
    EXPECT_FALSE(asked.parts[0].rows.whole);
    EXPECT_EQ(asked.parts[0].rows.rows, asked.shard == 1 ? 1u : 0u);
  }
}

TEST_F(RemoteStoreTest, Bfloat16HalvesTheBytesAndRoundsToEight) {
  use(2, {{"w", {4, 8}}}, RowEncoding::kBfloat16);
  RemoteStep step(*store);
  std::vector<Read> reads{{0, {}, {}}};
  ASSERT_EQ(pull(step, reads), "");
  EXPECT_EQ(floats_of(reads[0].value), expected(0, {0, 1, 2, 3}, 8));  // exact in 8 bits
  std::vector<Update> updates{
      {0, kSgd, 1, ids_tensor({3}), floats_tensor({1, 8}, {1.00390625f, 2, 3, 4, 5, 6, 7, 8})}};
  ASSERT_EQ(push(step, updates), "");
  EXPECT_EQ(cluster->pushes().at(0).value_bytes, 16u);
  EXPECT_EQ(cluster->pushes().at(0).values.at(0), 1.0f);  // half a unit rounds to even
}

TEST_F(RemoteStoreTest, APushSaysWhichVersionWasPulledAndNoneWhereNothingWas) {
  use(2, {{"w", {4, 1}}});
  cluster->shard(0).version.counter = 41;
  RemoteStep step(*store);
  std::vector<Read> reads{{0, ids_tensor({0}), {}}};
  ASSERT_EQ(pull(step, reads), "");
  std::vector<Update> updates{{0, kSgd, 1, {}, floats_tensor({4, 1}, {1, 1, 1, 1})}};
  ASSERT_EQ(push(step, updates), "");
  for (const Asked& asked : cluster->pushes()) {
    EXPECT_EQ(asked.pulled.lineage, asked.shard == 0 ? cluster->shard(0).version.lineage : 0);
    EXPECT_EQ(asked.pulled.counter, asked.shard == 0 ? 41u : 0u);
  }
}

TEST_F(RemoteStoreTest, StalenessIsTheLargestOverTheShards) {
  use(3, {{"w", {3, 1}}});
  cluster->staleness = 10;  // each shard adds its number
  RemoteStep step(*store);
  std::vector<Update> updates{{0, kSgd, 1, {}, floats_tensor({3, 1}, {1, 1, 1})}};
  ASSERT_EQ(push(step, updates), "");
  EXPECT_EQ(step.staleness(), 12u);
}

TEST_F(RemoteStoreTest, EachPushWaveOfAClosureHasItsOwnNumber) {
  use(1, {{"w", {3, 1}}});
  RemoteStep step(*store);
  std::vector<Update> updates{{0, kSgd, 1, {}, floats_tensor({3, 1}, {1, 1, 1})}};
  ASSERT_EQ(push(step, updates), "");
  ASSERT_EQ(push(step, updates), "");
  EXPECT_EQ(cluster->pushes().at(0).push_number, 0u);
  EXPECT_EQ(cluster->pushes().at(1).push_number, 1u);
}

TEST_F(RemoteStoreTest, AConnectionLostUnderWayIsUnavailableByNameAndTheNextStepReconnects) {
  use(2, {{"w", {4, 1}}});
  cluster->before = [&](const Asked& asked) -> kj::Promise<void> {
    if (asked.shard == 1) cluster->network.cut("worker0", "ps1");
    return kj::READY_NOW;
  };
  {
    RemoteStep step(*store);
    std::vector<Read> reads{{0, {}, {}}};
    EXPECT_THAT(pull(step, reads),
                testing::AllOf(HasSubstr("Unavailable: "), HasSubstr("/job:ps/task:1")));
  }
  cluster->before = [](const Asked&) -> kj::Promise<void> { return kj::READY_NOW; };
  cluster->network.heal("worker0", "ps1");
  RemoteStep step(*store);
  std::vector<Read> reads{{0, {}, {}}};
  EXPECT_EQ(pull(step, reads), "");
}

TEST_F(RemoteStoreTest, APsThatIsNotThereIsUnavailableWithinTheDeadline) {
  use(1, {{"w", {4, 1}}});
  cluster->stop_ps(0);
  const Duration before = cluster->reactor.now();
  RemoteStep step(*store);
  std::vector<Read> reads{{0, {}, {}}};
  EXPECT_THAT(pull(step, reads),
              testing::AllOf(HasSubstr("Unavailable: "), HasSubstr("/job:ps/task:0"),
                             HasSubstr("sim://ps0")));
  EXPECT_LE(cluster->reactor.now() - before, ShardLinkOptions().connect_deadline + 50ms);
}

TEST_F(RemoteStoreTest, APsThatComesBackWithinTheDeadlineIsFound) {
  use(1, {{"w", {4, 1}}});
  cluster->stop_ps(0);
  cluster->reactor.schedule(300ms, [&] { cluster->start_ps(0); });
  RemoteStep step(*store);
  std::vector<Read> reads{{0, {}, {}}};
  EXPECT_EQ(pull(step, reads), "");
}

TEST_F(RemoteStoreTest, APsMarkedAwayIsUnavailableAtOnce) {
  use(1, {{"w", {4, 1}}});
  auto away = std::make_shared<Layout>(*cluster->layout);
  away->shards[0].primary.process = 0;
  store->set_layout(away);
  RemoteStep step(*store);
  std::vector<Read> reads{{0, {}, {}}};
  EXPECT_THAT(pull(step, reads), HasSubstr("Unavailable: /job:ps/task:0 (sim://ps0) is away"));
}

TEST_F(RemoteStoreTest, ACallNamesTheEpochOfItsShardAndAClosureKeepsToOne) {
  use(2, {{"w", {4, 1}}});
  auto second = std::make_shared<Layout>(*cluster->layout);
  second->version = 2;
  second->shards[1].epoch = 5;
  RemoteStep before(*store);
  std::vector<Read> reads{{0, {}, {}}};
  std::vector<Update> updates{{0, kSgd, 1, {}, floats_tensor({4, 1}, {1, 1, 1, 1})}};
  ASSERT_EQ(pull(before, reads), "");
  store->set_layout(second);
  EXPECT_THAT(push(before, updates), HasSubstr("Aborted: "));
  RemoteStep after(*store);
  ASSERT_EQ(pull(after, reads), "");
  ASSERT_EQ(push(after, updates), "");
  std::vector<std::uint64_t> epochs;
  for (const Asked& asked : cluster->asked)
    if (asked.shard == 1) epochs.push_back(asked.epoch.number);
  EXPECT_THAT(epochs, ElementsAre(1, 5, 5));
}

TEST_F(RemoteStoreTest, ACallToAProcessThatAnswersNoMoreEndsWithTheLayoutThatSaysSo) {
  use(1, {{"w", {4, 1}}});
  cluster->before = [](const Asked&) -> kj::Promise<void> { return kj::NEVER_DONE; };
  RemoteStep step(*store);
  std::vector<Read> reads{{0, {}, {}}};
  auto moved = std::make_shared<Layout>(*cluster->layout);
  moved->shards[0].primary.process = 999;
  moved->shards[0].epoch = 2;
  cluster->reactor.schedule(100ms, [&] { store->set_layout(moved); });
  const Duration began = cluster->reactor.now();
  EXPECT_THAT(pull(step, reads), HasSubstr("Unavailable: "));
  EXPECT_LT(cluster->reactor.now() - began, 200ms);
}

TEST_F(RemoteStoreTest, AClosureThatPulledBeforeARestartIsAborted) {
  use(1, {{"w", {4, 1}}});
  RemoteStep step(*store);
  std::vector<Read> reads{{0, {}, {}}};
  ASSERT_EQ(pull(step, reads), "");
  cluster->stop_ps(0);
  cluster->start_ps(0);
  cluster->reactor.advance(1ms);
  std::vector<Update> updates{{0, kSgd, 1, {}, floats_tensor({4, 1}, {1, 1, 1, 1})}};
  EXPECT_THAT(push(step, updates), HasSubstr("Aborted: "));
  EXPECT_EQ(cluster->row(0, 0), initial_value(0, 0, 0));
  // a second read wave would mix two states
  EXPECT_THAT(pull(step, reads), HasSubstr("Aborted: "));
}

TEST_F(RemoteStoreTest, AnErrorOfAShardKeepsItsCode) {
  use(1, {{"w", {4, 1}}});
  cluster->before = [](const Asked&) -> kj::Promise<void> {
    return rpc::to_kj(Code::kCancelled, "this incarnation is fenced", "/job:ps/task:0");
  };
  RemoteStep step(*store);
  std::vector<Read> reads{{0, {}, {}}};
  EXPECT_THAT(pull(step, reads), HasSubstr("Cancelled: this incarnation is fenced"));
}

TEST_F(RemoteStoreTest, ACallThatIsDroppedIsDroppedWhole) {
  use(1, {{"w", {4, 1}}});
  std::vector<Read> reads{{0, {}, {}}};
  {
    RemoteStep step(*store);
    auto given_up = step.pull(context, reads).start();
    cluster->run_until([&] { return !cluster->asked.empty(); });
    ASSERT_EQ(cluster->asked.size(), 1u);
  }
  cluster->reactor.advance(100ms);
  EXPECT_FALSE(reads[0].value.defined());
}

TEST_F(RemoteStoreTest, ASilentShardIsUnavailableAfterTheCallsDeadline) {
  use(1, {{"w", {4, 1}}});
  ShardLinkOptions options;
  options.call_deadline = 500ms;
  RemoteStore impatient(cluster->reactor, cluster->network.host("worker0"), options);
  LaneIdentity identity;
  identity.hello.cluster = "test";
  identity.hello.session = 5;
  identity.hello.role = rpc::Role::kWorker;
  impatient.identify(identity);
  impatient.set_layout(cluster->layout);
  cluster->before = [](const Asked&) -> kj::Promise<void> { return kj::NEVER_DONE; };
  RemoteStep step(impatient);
  std::vector<Read> reads{{0, {}, {}}};
  EXPECT_THAT(pull(step, reads),
              testing::AllOf(HasSubstr("Unavailable: "), HasSubstr("/job:ps/task:0")));
}

// The pieces that wait for others' answers do not have a deadline each.
TEST_F(RemoteStoreTest, OfALargeReadNoFurtherPieceIsAskedForOnceOneHasFailed) {
  ShardLinkOptions options;
  options.call_deadline = 500ms;
  options.shared_bytes = 0;
  use(1, {{"w", {6000, 1000}}}, RowEncoding::kRaw, options);
  cluster->before = [](const Asked&) -> kj::Promise<void> { return kj::NEVER_DONE; };
  RemoteStep step(*store);
  std::vector<Read> reads{{0, {}, {}}};
  const Duration before = cluster->reactor.now();
  EXPECT_THAT(pull(step, reads), HasSubstr("Unavailable: "));
  EXPECT_EQ(cluster->asked.size(), options.pieces_under_way);
  EXPECT_LE(cluster->reactor.now() - before, options.call_deadline + 50ms);
}

TEST_F(RemoteStoreTest, ALayoutThatLeavesRowsOutIsRefused) {
  use(2, {{"w", {4, 1}}});
  auto torn = std::make_shared<Layout>(*cluster->layout);
  torn->variables[0].parts.pop_back();
  EXPECT_THROW(store->set_layout(torn), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::worker
