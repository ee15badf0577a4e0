// Which store drives a step is the function's to say, not the lane's.
#include "worker/rows/step_store.h"

#include <gmock/gmock.h>

#include "core/rows/local_store.h"
#include "tests/worker/lane/lane_fixture.h"

namespace cairn::worker {
namespace {

using testing::HasSubstr;

// Variables of this process, by name.
class LocalStores final : public StepStores {
 public:
  void create(const std::shared_ptr<const VariableSpec>& spec) {
    ids_[spec->name] = rows.create(spec);
  }

  std::vector<VariableId> resolve(const Graph& graph, std::uint64_t) const override {
    std::vector<VariableId> ids;
    for (const GraphVariable& variable : graph.variables) ids.push_back(ids_.at(variable.name));
    return ids;
  }
  std::unique_ptr<StepStore> open(ActivitySlot*) override { return std::make_unique<One>(rows); }

  LocalStore rows;

 private:
  class One final : public StepStore {
   public:
    explicit One(LocalStore& rows) : rows_(rows) {}
    rpc::Task<void> pull(StepContext step, std::span<Read> reads) override {
      rows_.pull(step, reads);
      co_return;
    }
    rpc::Task<void> push(StepContext step, std::span<Update> updates) override {
      updated_ = true;
      rows_.push(step, updates);
      co_return;
    }
    bool updated() const override { return updated_; }

   private:
    LocalStore& rows_;
    bool updated_ = false;
  };
  std::map<std::string, VariableId> ids_;
};

class StoreOfAFunction : public testing::Test {
 protected:
  StoreOfAFunction() {
    auto spec = std::make_shared<VariableSpec>();
    spec->name = "own";
    spec->shape = {4, 2};
    spec->initializer = Initializer::constant(8);
    own = spec;
    local.create(own);
    harness.lane.add_stores(StoreKind::kLocal, local);
    harness.add_halving();
    // Function 2: the same of a variable that no ps has.
    harness.add_function(
        2, {TensorType{DType::kInt64, {Shape::kUnknown}}},
        [&](const std::vector<TraceArgument>& arguments) {
          const Array ids = std::get<Array>(arguments[0]);
          const Variable w(own);
          const Array rows = w.gather(ids);
          w.update(kSgdRule, IndexedSlices{ids, rows, w.shape()}, Array(0.5f));
          return Outputs{{"", rows}};
        },
        StoreKind::kLocal);
  }
  LocalStores local;  // outlives the lane
  FakeCluster cluster{1, {{"w", {10, 2}}}};
  LaneHarness harness{cluster};
  std::shared_ptr<const VariableSpec> own;
};

TEST_F(StoreOfAFunction, DrivesItsStepsBesideThoseOfAnotherKindInTheSameLane) {
  auto remote = harness.start(1, 1, {ids_tensor({4})}),
       near = harness.start(2, 2, {ids_tensor({3})}),
       again = harness.start(3, 2, {ids_tensor({3, 0})});
  ASSERT_TRUE(harness.finish({remote, near, again}));
  EXPECT_EQ(remote->error + near->error + again->error, "");
  EXPECT_EQ(cluster.events(), (std::vector<std::string>{"pull 1", "push 1"}));
  EXPECT_EQ(cluster.row(0, 4), 2);
  EXPECT_EQ(floats_of(near->result.outputs.at(0)), (std::vector<float>{8, 8}));
  EXPECT_EQ(floats_of(again->result.outputs.at(0)), (std::vector<float>{4, 4, 8, 8}));
  EXPECT_TRUE(near->result.updated);
  EXPECT_EQ(near->result.staleness, 0u);
}

TEST_F(StoreOfAFunction, NeedsNoLayoutWhereItsVariablesAreInThisProcess) {
  ClosureRun early;
  early.sequence = 1;
  early.function = 2;
  early.arguments = {ids_tensor({1})};
  early.sent_layout = 99;
  auto started = harness.start(early);
  ASSERT_TRUE(harness.finish({started}));
  EXPECT_EQ(started->error, "");
}

TEST_F(StoreOfAFunction, IsRefusedWhereTheLaneHasNone) {
  LaneHarness other(cluster);
  try {
    other.lane.register_function(1, Graph(), 0, StoreKind::kLocal);
    FAIL() << "a function was registered whose variables are nowhere";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("store of kind 1"));
  }
}

}  // namespace
}  // namespace cairn::worker
