// Replicas of several processes on a GPU each, whose devices sum what they reduce; the GPUs are
// fake ones, and the processes groups of threads.
#include <gmock/gmock.h>

#include <thread>

#include "collective/local/group_run.h"
#include "collective/local/hierarchical_group.h"
#include "tests/collective/gpu_replicas.h"
#include "tests/collective/network/socket_group.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int kProcesses = 2;

// The replicas of one process.
struct OneProcess {
  OneProcess(Collective& processes, int replicas, const std::string& id)
      : members(make_hierarchical_group(processes, replicas)) {
    std::vector<Device*> all;
    for (int i = 0; i < replicas; ++i) {
      gpus.push_back(std::make_unique<Gpu>(str("gpu:", i)));
      all.push_back(gpus.back()->device.get());
      workspaces.push_back(std::make_unique<Workspace>(*all.back()));
    }
    devices = join_devices(
        all, {.size = kProcesses * replicas, .first = processes.rank() * replicas, .id = id});
  }
  std::vector<std::unique_ptr<Gpu>> gpus;
  std::vector<std::unique_ptr<Workspace>> workspaces;
  Members members;
  DeviceGroup devices;
};

class ProcessSums : public ::testing::TestWithParam<int> {
 protected:
  using Arguments = std::vector<Tensor>;
  using Plans = std::vector<std::shared_ptr<const Plan>>;

  ProcessSums() {
    const std::string id = Gpu("gpu:0").device->new_group_id();
    for (auto& group : groups_) all.push_back(std::make_unique<OneProcess>(*group, replicas_, id));
  }
  std::shared_ptr<const Plan> plan_of(const ConcreteFunction& function) const {
    return make_plan(function.graph, {}, {.replicas = size()});
  }
  int size() const { return kProcesses * replicas_; }
  // Each replica by its plan, with its arguments.
  void run(const Plans& plans, const std::vector<Arguments>& arguments) {
    outputs.assign(plans.size(), {});
    errors.assign(plans.size(), "");
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < plans.size(); ++rank)
      threads.emplace_back([&, rank] { run_one(rank, plans[rank], arguments[rank]); });
    for (auto& thread : threads) thread.join();
  }
  void run_one(std::size_t rank, const std::shared_ptr<const Plan>& plan, const Arguments& given) {
    OneProcess& own = *all[rank / static_cast<std::size_t>(replicas_)];
    const std::size_t here = rank % static_cast<std::size_t>(replicas_);
    LocalStore store(1);
    try {
      outputs[rank] = run_in_group(plan, *own.workspaces[here], store, *own.members[here], {},
                                   {given, {}}, own.devices.members[here].get());
    } catch (const Error& error) {
      errors[rank] = str(code_name(error.code()), ": ", error.what());
    }
  }
  Plans same(const ConcreteFunction& function) const {
    return Plans(static_cast<std::size_t>(size()), plan_of(function));
  }

  const int replicas_ = GetParam();
  Members groups_ = make_socket_group(kProcesses, std::chrono::minutes(1));
  std::vector<std::unique_ptr<OneProcess>> all;
  std::vector<std::vector<Tensor>> outputs;  // by replica
  std::vector<std::string> errors;
};

INSTANTIATE_TEST_SUITE_P(Of, ProcessSums, ::testing::Values(1, 2), [](const auto& info) {
  return str(info.param, info.param == 1 ? "Replica" : "Replicas");
});

TEST_P(ProcessSums, AreThoseOfAllReplicas) {
  std::vector<Arguments> arguments;
  float sum = 0;
  for (int rank = 0; rank < size(); ++rank) {
    const auto own = static_cast<float>(rank + 1);
    arguments.push_back({tensor({2}, {own, 10 * own}), ids_of({rank, 1})});
    sum += own;
  }
  run(same(reducing()), arguments);
  ASSERT_THAT(errors, Each(""));
  for (const auto& each : outputs) {
    EXPECT_THAT(floats_of(each[0]), ElementsAre(2 * sum + 1, 20 * sum + 1));
    const auto n = static_cast<float>(size());
    EXPECT_THAT(floats_of(each[2]), ElementsAre(sum / n, 10 * sum / n));
    EXPECT_THAT(longs_of(each[3]), ElementsAre(size() * (size() - 1) / 2, size()));
  }
}

// The device is waited for twice: for the outputs, and until it has ended the sums.
TEST_P(ProcessSums, AreNotCopiedToTheHost) {
  constexpr std::int64_t kElements = 1000;
  const auto plans = same(trace_function({floats({kElements})}, [](const auto& in) {
    return sum(all_reduce(ReduceOp::kSum, arg(in, 0)));
  }));
  const std::vector<Arguments> arguments(plans.size(),
                                         {tensor({kElements}, std::vector<float>(kElements, 1))});
  run(plans, arguments);
  const FakeDriver& driver = all[1]->gpus[0]->driver;
  const FakeDriver::Counts before = driver.counts();
  run(plans, arguments);
  ASSERT_THAT(errors, Each(""));
  EXPECT_EQ(outputs[0][0].item<float>(), static_cast<float>(size() * kElements));
  EXPECT_EQ(driver.counts().waits - before.waits, 2);
  EXPECT_LT(driver.counts().bytes_copied - before.bytes_copied, 2 * kElements * sizeof(float));
}

TEST_P(ProcessSums, OfDifferentValuesAreRefused) {
  Plans plans;
  std::vector<Arguments> arguments;
  for (int rank = 0; rank < size(); ++rank) {
    const std::int64_t n = rank / replicas_ == 0 ? 2 : 3;
    plans.push_back(plan_of(trace_function(
        {floats({n})}, [](const auto& in) { return all_reduce(ReduceOp::kSum, arg(in, 0)); })));
    arguments.push_back({tensor({n}, std::vector<float>(static_cast<std::size_t>(n), 1))});
  }
  run(plans, arguments);
  EXPECT_THAT(errors,
              Each(AllOf(HasSubstr("FailedPrecondition"), HasSubstr("elements, on devices"))));
}

TEST_P(ProcessSums, OfAReplicaThatFailsFailOnAllOthersWithItsReason) {
  const auto failing = [](bool checks) {
    return trace_function({floats({2})}, [checks](const auto& in) {
      const Array early = all_reduce(ReduceOp::kSum, arg(in, 0));
      const Array value = checks ? check_numerics(log(early), "the value") : log(early);
      return all_reduce(ReduceOp::kSum, value);
    });
  };
  Plans plans = same(failing(false));
  plans.back() = plan_of(failing(true));
  run(plans, std::vector<Arguments>(plans.size(), {tensor({2}, {1, -1})}));
  EXPECT_THAT(errors, Each(HasSubstr("the value is nan")));
  for (std::size_t rank = 0; rank + 1 < errors.size(); ++rank)
    EXPECT_THAT(errors[rank], HasSubstr("gave up"));
}

// Each process aborts its own, so that it does so when it knows why.
TEST_P(ProcessSums, OfAnAbortedProcessLeaveTheOthersDevicesToThem) {
  all[1]->devices.members[0]->abort();
  EXPECT_THAT([&] { all[1]->devices.members.back()->settle(); },
              ThrowsMessage<AbortedError>(HasSubstr("aborted")));
  for (const auto& member : all[0]->devices.members) EXPECT_NO_THROW(member->settle());
}

// As the device of a process whose host has not asked the others.
TEST(ProcessSumsOfOne, AreThereWhenTheOtherProcessHasBegunTheCall) {
  Gpu here("gpu:0"), there("gpu:0");
  const auto mine = here.device->open(), theirs = there.device->open();
  const std::string id = here.device->new_group_id();
  const auto join = [&](Gpu& gpu, int rank) {
    Device* const device = gpu.device.get();
    return join_devices({&device, 1}, {.size = 2, .first = rank, .id = id});
  };
  const DeviceGroup first = join(here, 0), second = join(there, 1);
  const auto begin = [](const DeviceGroup& group, Device& opened) {
    const Tensor share = tensor({2}, {1, 2});
    auto values = opened.allocate(share.bytes());
    opened.copy(Device::Direction::kIn, values.get(), share.raw(), share.bytes());
    group.members[0]->begin(opened, {{ReduceOp::kSum, DType::kFloat32, 2, values.get(), values}});
    return values;
  };
  const auto values = begin(first, *mine);
  EXPECT_THAT([&] { first.members[0]->finish(*mine); },
              ThrowsMessage<InternalError>(HasSubstr("1 of 2 have begun")));
  const auto others = begin(second, *theirs);
  first.members[0]->finish(*mine);
  first.members[0]->settle();
  Tensor sum(DType::kFloat32, {2});
  mine->copy(Device::Direction::kOut, sum.mutable_raw(), values.get(), sum.bytes());
  EXPECT_THAT(floats_of(sum), ElementsAre(2, 4));
  second.members[0]->finish(*theirs);
}

TEST(ProcessSumsOfOne, AreRefusedToTwoMembersOfOneRank) {
  Gpu first("gpu:0"), second("gpu:1");
  const DeviceGroupPlace place{.size = 2, .first = 1, .id = first.device->new_group_id()};
  const auto join = [&](Gpu& gpu) {
    Device* const device = gpu.device.get();
    return join_devices({&device, 1}, place);
  };
  const DeviceGroup group = join(first);
  EXPECT_EQ(group.members.size(), 1u);
  EXPECT_THAT([&] { join(second); }, ThrowsMessage<InternalError>(HasSubstr("rank 1 already")));
}

}  // namespace
}  // namespace cairn
