// A program that brings its own group for the replicas to meet in.
#include "strategy/in_sync/cross_device_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/graph/ops.h"
#include "nn/nn.h"
#include "tests/strategy/in_sync_kinds.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
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
    Ticket begin_all_reduce(std::vector<AllReduceBuffer> list) override {
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
  MirroredStrategy strategy(logical_cpus(2), ops);
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

// ---- Cairn's own, by name ----

// Five numbers whose sum in float32 depends on the order: 2^24 + 1 is 2^24.
constexpr float kLarge = 1 << 24;
constexpr float kUneven[] = {kLarge, 1, 1, 1, -kLarge};

// Each replica's sum of `values`, one per replica: the second sum of a call that makes two.
std::vector<float> sums_of(InSyncStrategy& strategy, const std::vector<Array>& values) {
  Function step = strategy.function([](Array x) {
    return get_replica_context().all_reduce(ReduceOp::kSum, std::vector<Array>{x, x})[1];
  });
  std::vector<float> sums;
  const RunResult result = strategy.run(step, {PerReplica(values)});
  for (const RunValue& own : strategy.experimental_local_results(result[0]))
    sums.push_back(own.item<float>());
  return sums;
}

TEST(CrossDeviceOpsByName, AddInTheOrderThatTheyState) {
  const std::vector<Array> values(std::begin(kUneven), std::end(kUneven));
  const auto of = [&](std::string_view name) {
    MirroredStrategy strategy(logical_cpus(5), name, {.check_replicas = true});
    const auto first = sums_of(strategy, values), again = sums_of(strategy, values);
    EXPECT_EQ(first, again) << name;
    EXPECT_THAT(first, ::testing::Each(first[0])) << name;  // the same on all replicas
    return first[0];
  };
  const auto [a, b, c, d, e] = kUneven;
  EXPECT_EQ(of("ThreadOps"), (((a + b) + c) + d) + e);             // 0
  EXPECT_EQ(of("ReductionToOneDevice"), (((a + b) + c) + d) + e);  // the same, as its header says
  EXPECT_EQ(of("HierarchicalCopyAllReduce"), ((a + b) + (c + d)) + e);  // 2
  EXPECT_EQ(of("Ring"), (((c + d) + e) + a) + b);  // 3: of two elements the second is in slice 1
}

TEST(CrossDeviceOpsByName, TrainAlikeUpToRounding) {
  std::vector<std::vector<float>> trained;
  for (const char* name :
       {"ThreadOps", "ReductionToOneDevice", "HierarchicalCopyAllReduce", "Ring"}) {
    MirroredStrategy strategy(logical_cpus(4), name, {.seed = 3, .check_replicas = true});
    auto scope = strategy.scope();
    Variable w = strategy.create_variable(
        {.name = "w", .shape = {7}, .initializer = Initializer::uniform(-1, 1)});
    nn::SGD optimizer({.learning_rate = 0.1f});
    Function step = strategy.function(
        [&](Array x) { optimizer.minimize(reduce_sum(square(w.read() * x - 1.0f))); });
    for (int i = 0; i < 5; ++i)
      strategy.run(step, {PerReplica(std::vector<Array>{0.1f, 0.3f, 0.7f, 1.1f})});
    const Tensor value = w.read().eval();
    trained.emplace_back(value.values<float>().begin(), value.values<float>().end());
  }
  EXPECT_EQ(trained[1], trained[0]);
  for (const auto& other : trained)
    EXPECT_THAT(other, ::testing::Pointwise(::testing::FloatNear(1e-6f), trained[0]));
}

TEST(CrossDeviceOpsByName, ANameThatIsNoneIsRefusedWithThoseThereAre) {
  const auto refusal = [](std::string_view name) {
    try {
      MirroredStrategy(logical_cpus(2), name);
    } catch (const Error& error) {
      return str(code_name(error.code()), ": ", error.what());
    }
    return std::string("it was not refused");
  };
  EXPECT_THAT(refusal("ring"), AllOf(HasSubstr("InvalidArgument"), HasSubstr("\"Ring\"")));
  EXPECT_THAT(refusal("NcclAllReduce"), AllOf(HasSubstr("FailedPrecondition"), HasSubstr("GPU")));
}

TEST(ReductionToOneDeviceOps, AddOnAReplicaThatThereIs) {
  MirroredStrategy last(logical_cpus(3), std::make_shared<ReductionToOneDevice>(2));
  EXPECT_EQ(sums_of(last, {1.0f, 2.0f, 4.0f}), std::vector<float>(3, 7.0f));
  try {
    MirroredStrategy(logical_cpus(3), std::make_shared<ReductionToOneDevice>(3));
    ADD_FAILURE() << "there is no replica 3";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("ReductionToOneDevice(3)"), HasSubstr("0 to 2")));
  }
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
