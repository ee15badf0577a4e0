// A call that was abandoned may still use memory shared with the shard: it must not be reused yet.
#include <gmock/gmock.h>

#include "tests/worker/rows/remote_store_fixture.h"
#include "worker/rows/remote_store.h"

namespace cairn::worker {
namespace {

// Memory that the shard is still to write must not be given to the next call.
TEST_F(RemoteStoreTest, MemoryOfAnAbandonedPullIsNotUsedAgainBeforeItsAnswer) {
  use(1, {{"w", {8000, 8}}});
  auto gate = kj::newPromiseAndFulfiller<void>();
  cluster->before = [&](const Asked& asked) -> kj::Promise<void> {
    return asked.closure == 1 ? kj::mv(gate.promise) : kj::Promise<void>(kj::READY_NOW);
  };
  std::vector<Read> first{{0, {}, {}}}, second{{0, {}, {}}};
  context.closure = 1;
  {
    RemoteStep abandoned(*store);
    auto given_up = abandoned.pull(context, first).start();
    ASSERT_TRUE(cluster->run_until([&] { return cluster->asked.size() == 1; }));
  }
  context.closure = 2;
  RemoteStep step(*store);
  ASSERT_EQ(pull(step, second), "");
  std::memset(const_cast<std::byte*>(second[0].value.raw()), 0, second[0].value.bytes());
  gate.fulfiller->fulfill();
  cluster->run_until([&] { return false; });  // whatever is still to come
  EXPECT_EQ(floats_of(second[0].value), std::vector<float>(64'000, 0));
}

// The shard may still be reading it.
TEST_F(RemoteStoreTest, AnUpdatesPlaceIsNotUsedAgainBeforeTheAnswerToAnAbandonedPush) {
  use(1, {{"w", {8000, 8}}});
  auto gate = kj::newPromiseAndFulfiller<void>();
  cluster->before = [&](const Asked& asked) -> kj::Promise<void> {
    return asked.push ? kj::mv(gate.promise) : kj::Promise<void>(kj::READY_NOW);
  };
  RemoteStep step(*store);
  std::vector<Read> reads{{0, ids_tensor({1}), {}}};
  ASSERT_EQ(pull(step, reads), "");
  const std::byte* at = nullptr;
  {
    RemoteStep abandoned(*store);
    auto place = abandoned.update_place(0, 256'000);
    at = place.get();
    std::vector<Update> updates{
        {0, kSgd, 1, {}, Tensor::borrowed(DType::kFloat32, {8000, 8}, at, std::move(place))}};
    auto given_up = abandoned.push(context, updates).start();
    ASSERT_TRUE(cluster->run_until([&] { return cluster->asked.size() == 2; }));
  }
  const auto other = step.update_place(0, 256'000);
  EXPECT_NE(other.get(), at);
  gate.fulfiller->fulfill();
  cluster->run_until([&] { return false; });  // the answer
  EXPECT_EQ(step.update_place(0, 256'000).get(), at);
}

}  // namespace
}  // namespace cairn::worker
