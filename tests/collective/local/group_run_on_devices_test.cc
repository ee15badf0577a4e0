// Replicas on a GPU each, whose devices sum what they reduce; the GPUs are fake ones.
#include <gmock/gmock.h>

#include <array>
#include <optional>
#include <thread>
#include <utility>

#include "collective/local/group_run.h"
#include "collective/local/thread_group.h"
#include "core/exec/step.h"
#include "tests/collective/gpu_replicas.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::size_t kReplicas = 2;

class DeviceSums : public ::testing::Test {
 protected:
  using Arguments = std::vector<Tensor>;

  static std::shared_ptr<const Plan> plan_of(const ConcreteFunction& function) {
    return make_plan(function.graph, {}, {.replicas = kReplicas});
  }
  // Each replica by its plan, with its arguments; nullopt: it does not come.
  void run(const std::array<std::shared_ptr<const Plan>, kReplicas>& plans,
           const std::array<std::optional<Arguments>, kReplicas>& arguments,
           Duration timeout = std::chrono::minutes(1)) {
    auto members = make_thread_group(kReplicas, timeout);
    const auto run_one = [&](std::size_t i) {
      if (!arguments[i]) return;
      LocalStore store(1);
      try {
        outputs[i] = run_in_group(plans[i], *workspaces[i], store, *members[i], {},
                                  {*arguments[i], {}}, devices.members[i].get());
      } catch (const Error& error) {
        errors[i] = str(code_name(error.code()), ": ", error.what());
        members[i]->abort(error_parts(std::current_exception()));
      }
    };
    std::thread second([&] { run_one(1); });
    run_one(0);
    second.join();
  }
  void run(const std::shared_ptr<const Plan>& plan,
           const std::array<std::optional<Arguments>, kReplicas>& arguments,
           Duration timeout = std::chrono::minutes(1)) {
    run({plan, plan}, arguments, timeout);
  }

  Gpu first{"gpu:0"}, second{"gpu:1"};
  std::array<std::unique_ptr<Workspace>, kReplicas> workspaces{
      std::make_unique<Workspace>(*first.device), std::make_unique<Workspace>(*second.device)};
  DeviceGroup devices = join_devices(std::array{first.device.get(), second.device.get()});
  std::array<std::vector<Tensor>, kReplicas> outputs;
  std::array<std::string, kReplicas> errors;
};

TEST_F(DeviceSums, AreTheSumsAndMeansOfAllReplicasAndLeaveOtherValuesAlone) {
  run(plan_of(reducing()), {Arguments{tensor({2}, {1, 2}), ids_of({3, 4})},
                            Arguments{tensor({2}, {10, 20}), ids_of({5, 6})}});
  ASSERT_THAT(errors, ElementsAre("", ""));
  for (std::size_t i = 0; i < kReplicas; ++i) {
    EXPECT_THAT(floats_of(outputs[i][0]), ElementsAre(23, 45));
    EXPECT_THAT(floats_of(outputs[i][2]), ElementsAre(5.5f, 11));
    EXPECT_THAT(longs_of(outputs[i][3]), ElementsAre(8, 10));
  }
  EXPECT_THAT(floats_of(outputs[0][1]), ElementsAre(2, 4));
  EXPECT_THAT(floats_of(outputs[1][1]), ElementsAre(20, 40));
}

TEST_F(DeviceSums, LetAStepWaitForItsDeviceOnceAndCopyNothingThatIsReduced) {
  const auto plan = plan_of(reducing());
  const std::array<std::optional<Arguments>, kReplicas> arguments{
      Arguments{tensor({2}, {1, 2}), ids_of({3, 4})},
      Arguments{tensor({2}, {1, 2}), ids_of({3, 4})}};
  run(plan, arguments);
  const FakeDriver::Counts before = first.driver.counts();
  run(plan, arguments);
  EXPECT_EQ(first.driver.counts().waits - before.waits, 1);  // for the outputs
  EXPECT_EQ(first.driver.counts().blocking_copies, before.blocking_copies);
}

TEST_F(DeviceSums, OfAReplicaThatFailsFailOnTheOthersWhichAreTold) {
  const auto plan = plan_of(trace_function({floats({2})}, [](const auto& in) {
    const Array early = all_reduce(ReduceOp::kSum, arg(in, 0));
    return all_reduce(ReduceOp::kSum, check_numerics(log(early), "the value"));
  }));
  const auto bare = plan_of(trace_function({floats({2})}, [](const auto& in) {
    const Array early = all_reduce(ReduceOp::kSum, arg(in, 0));
    return all_reduce(ReduceOp::kSum, log(early));
  }));
  run({bare, plan}, {Arguments{tensor({2}, {1, -1})}, Arguments{tensor({2}, {1, -1})}});
  EXPECT_THAT(errors[1], HasSubstr("the value is nan"));
  EXPECT_THAT(errors[0], AllOf(HasSubstr("rank 1 gave up"), HasSubstr("the value is nan")));
}

TEST_F(DeviceSums, OfAReplicaThatDoesNotComeFailWithItsName) {
  run(plan_of(reducing()), {Arguments{tensor({2}, {1, 2}), ids_of({3, 4})}, std::nullopt},
      std::chrono::milliseconds(1));
  EXPECT_THAT(errors[0], AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("rank 1")));
}

TEST_F(DeviceSums, OfReplicasThatReduceDifferentValuesFail) {
  const auto of_size = [](std::int64_t n) {
    return plan_of(trace_function(
        {floats({n})}, [](const auto& in) { return all_reduce(ReduceOp::kSum, arg(in, 0)); }));
  };
  run({of_size(2), of_size(3)},
      {Arguments{tensor({2}, {1, 2})}, Arguments{tensor({3}, {1, 2, 3})}});
  for (const std::string& error : errors)
    EXPECT_THAT(error,
                AllOf(HasSubstr("FailedPrecondition"), HasSubstr("rank 0"), HasSubstr("rank 1")));
}

// Replica 1 fails when all have begun to sum, and before replica 0 has finished the call: what
// replica 0's device still adds up must not go where its next step has other values.
TEST_F(DeviceSums, OfAStepThatIsGivenUpKeepTheirMemory) {
  const auto plan = plan_of(trace_function(
      {floats({2})}, [](const auto& in) { return all_reduce(ReduceOp::kSum, arg(in, 0) * 2.0f); }));
  const std::array<std::optional<Arguments>, kReplicas> arguments{Arguments{tensor({2}, {1, 2})},
                                                                  Arguments{tensor({2}, {10, 20})}};
  LocalStore store(1);
  {
    std::vector<std::unique_ptr<Step>> steps;
    for (std::size_t i = 0; i < kReplicas; ++i) {
      const StepContext context{.replica = static_cast<std::int32_t>(i), .replicas = kReplicas};
      steps.push_back(std::make_unique<Step>(plan, *workspaces[i], store, context,
                                             RunInputs{*arguments[i], {}}));
      steps[i]->sum_on(*devices.members[i]);
      ASSERT_TRUE(std::holds_alternative<Step::AllReduce>(steps[i]->next()));
      ASSERT_TRUE(std::holds_alternative<Step::Await>(steps[i]->next()));
    }
    devices.members[1]->abort();
    EXPECT_THROW(steps[0]->next(), AbortedError);
  }
  const DeviceGroup aborted =
      std::exchange(devices, join_devices(std::array{first.device.get(), second.device.get()}));
  run(plan, arguments);
  EXPECT_THAT(errors, ElementsAre("", ""));
  EXPECT_THAT(floats_of(outputs[0][0]), ElementsAre(22, 44));
}

// ---- who can ----

TEST(DeviceSumsGroup, IsThereForDifferentDevicesWithMemoryOfTheirOwnAndElseSaysWhyNot) {
  Gpu first("gpu:0"), second("gpu:1");
  const auto join = [](std::vector<Device*> all) { return join_devices(all); };
  EXPECT_EQ(join({first.device.get(), second.device.get()}).members.size(), 2u);
  EXPECT_EQ(join({first.device.get()}).text, "there is one replica");
  EXPECT_EQ(join({first.device.get(), second.device.get(), first.device.get()}).text,
            "replicas share gpu:0");
  EXPECT_EQ(join({first.device.get(), &cpu_device()}).text, "cpu has no memory of its own");
}

// ---- what a member finds out about its caller ----

struct DeviceMembers : ::testing::Test {
  Gpu first{"gpu:0"}, second{"gpu:1"};
  std::unique_ptr<Device> here = first.device->open(), there = second.device->open();
  DeviceGroup group = join_devices(std::array{first.device.get(), second.device.get()});
  std::shared_ptr<std::byte> mine = filled(*here), theirs = filled(*there);

  static std::shared_ptr<std::byte> filled(Device& device) {
    const std::array<float, 2> values{1, 2};
    auto memory = device.allocate(sizeof values);
    device.copy(Device::Direction::kIn, memory.get(),
                reinterpret_cast<const std::byte*>(values.data()), sizeof values);
    return memory;
  }
  static std::vector<DeviceSum> sum_of(const std::shared_ptr<std::byte>& values) {
    return {{ReduceOp::kSum, DType::kFloat32, 2, values.get(), values}};
  }
  float read() {
    std::array<float, 2> values{};
    here->copy(Device::Direction::kOut, reinterpret_cast<std::byte*>(values.data()), mine.get(),
               sizeof values);
    return values[1];
  }
};

TEST_F(DeviceMembers, LeaveTheSumWhereTheValuesWere) {
  group.members[0]->begin(*here, sum_of(mine));
  group.members[1]->begin(*there, sum_of(theirs));
  group.members[0]->finish(*here);
  EXPECT_EQ(read(), 4);
}

TEST_F(DeviceMembers, FindAValueThatIsReadBeforeItsCallIsFinished) {
  group.members[0]->begin(*here, sum_of(mine));
  EXPECT_THAT([&] { read(); }, ThrowsMessage<InternalError>(HasSubstr("a race")));
}

TEST_F(DeviceMembers, FindACallThatIsFinishedBeforeAllHaveBegunIt) {
  group.members[0]->begin(*here, sum_of(mine));
  EXPECT_THAT([&] { group.members[0]->finish(*here); },
              ThrowsMessage<InternalError>(HasSubstr("1 of 2 have begun")));
}

TEST_F(DeviceMembers, OfAnAbortedGroupRefuseEveryCall) {
  group.members[0]->begin(*here, sum_of(mine));
  group.members[1]->abort();
  EXPECT_THAT([&] { group.members[0]->finish(*here); },
              ThrowsMessage<AbortedError>(HasSubstr("aborted")));
  EXPECT_THAT([&] { group.members[1]->begin(*there, sum_of(theirs)); },
              ThrowsMessage<AbortedError>(HasSubstr("aborted")));
}

}  // namespace
}  // namespace cairn
