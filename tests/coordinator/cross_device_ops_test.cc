// A program that brings its own group for the replicas to meet in.
#include "coordinator/cross_device_ops.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/graph/ops.h"
#include "tests/coordinator/in_sync_kinds.h"

namespace cairn {
namespace {

using testing::logical_cpus;

// Counts what replica 0 has reduced.
class CountingOps final : public CrossDeviceOps {
 public:
  std::vector<std::unique_ptr<Collective>> group(int replicas, Duration timeout) override {
    auto members = ThreadOps().group(replicas, timeout);
    members[0] = std::make_unique<Member>(std::move(members[0]), reductions);
    ++groups;
    return members;
  }
  int groups = 0, reductions = 0;

 private:
  class Member final : public Collective {
   public:
    Member(std::unique_ptr<Collective> own, int& reductions)
        : own_(std::move(own)), reductions_(reductions) {}
    int rank() const override { return own_->rank(); }
    int size() const override { return own_->size(); }
    Ticket begin_all_reduce(std::vector<Reduction> list) override {
      reductions_ += static_cast<int>(list.size());
      return own_->begin_all_reduce(std::move(list));
    }
    void wait(Ticket ticket) override { own_->wait(ticket); }
    Tensor broadcast(const Tensor& value, int root) override {
      return own_->broadcast(value, root);
    }
    std::vector<Tensor> all_gather(const Tensor& value) override { return own_->all_gather(value); }
    Tensor reduce(ReduceOp op, const Tensor& value, int root) override {
      return own_->reduce(op, value, root);
    }
    void barrier() override { own_->barrier(); }
    void abort(const ErrorParts& error) override { own_->abort(error); }

   private:
    std::unique_ptr<Collective> own_;
    int& reductions_;
  };
};

TEST(CrossDeviceOpsOfAProgram, DoWhatReplicasMeetFor) {
  auto ops = std::make_shared<CountingOps>();
  MirroredStrategy strategy(logical_cpus(2), {.cross_device_ops = ops});
  Function step = strategy.function([](Array x) {
    return get_replica_context().all_reduce(ReduceOp::kSum, std::vector<Array>{x, x * 2})[1];
  });
  for (int i = 0; i < 3; ++i) {
    const RunResult result = strategy.run(step, {2.0f});
    EXPECT_EQ(strategy.experimental_local_results(result[0])[1].item<float>(), 8.0f);
  }
  EXPECT_EQ(ops->reductions, 6);
  EXPECT_EQ(ops->groups, 1);
}

TEST(CollectiveCountsOfAStrategy,
     TellWhatEachReplicaHasReducedAndStayWhenAFailureMakesTheGroupAnew) {
  MirroredStrategy strategy(logical_cpus(2));
  Function step = strategy.function([](Array x) {
    return get_replica_context().all_reduce(ReduceOp::kSum, check_numerics(x, "x"));
  });
  for (int i = 0; i < 3; ++i) strategy.run(step, {2.0f});
  EXPECT_THROW(strategy.run(step, {std::numeric_limits<float>::quiet_NaN()}), Error);
  strategy.run(step, {2.0f});
  const std::vector<CollectiveCounts> counts = strategy.collective_counts();
  ASSERT_EQ(counts.size(), 2u);
  for (const CollectiveCounts& each : counts) {
    EXPECT_EQ(each.calls, 4u);
    EXPECT_EQ(each.bytes, 4 * sizeof(float));
  }
}

TEST(CollectiveCountsOfAStrategy, OneReplicaMeetsNobody) {
  EXPECT_TRUE(MirroredStrategy(logical_cpus(1)).collective_counts().empty());
}

}  // namespace
}  // namespace cairn
