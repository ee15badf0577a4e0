// On what the lanes of a worker compute.
#include <gtest/gtest.h>

#include "core/base/json.h"
#include "core/base/log.h"
#include "tests/core/fake_device.h"
#include "tests/worker/worker_fixture.h"
#include "worker/rows/register_memory.h"

namespace cairn::worker {
namespace {

struct TwoDevices {
  testing::FakeDevice first, second;
};
// Worker 3, with two lanes.
class WorkerOnDevicesTest : protected TwoDevices, public WorkerServerTest {
 protected:
  WorkerOnDevicesTest() : WorkerServerTest({&first, &second}) {}
};

TEST_F(WorkerOnDevicesTest, ALaneComputesOnItsOwnDeviceWhatTheCpuWould) {
  auto connection = connect(2);
  auto lane = connection->bootstrap<wire::Lane>();
  configure(lane);
  add_halving(lane);
  const auto answers = run(lane, {{7, {8, 1}}});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].error, "");
  EXPECT_EQ(floats_of(answers[0].outputs.at(0)), (std::vector<float>{8, 8.125f, 1, 1.125f}));
  EXPECT_EQ(cluster.row(0, 8), 4);
  EXPECT_EQ(first.counts().copies_in, 0);
  EXPECT_GT(second.counts().copies_in, 0);
  EXPECT_EQ(parse_json(server->status_json(), "the status")["lanes"][1]["device"], "fake");
}

// A function that has the device compute.
std::vector<std::byte> exponentials() {
  const auto body = [](const std::vector<TraceArgument>& arguments) {
    return Outputs{{"", exp(cast(std::get<Array>(arguments[0]), DType::kFloat32))}};
  };
  return trace(body, {TensorType{DType::kInt64, {Shape::kUnknown}}}).bytes;
}

TEST_F(WorkerOnDevicesTest, ALaneRepeatsBitForBitOnlyIfTheCoordinatorAsksForIt) {
  for (const bool asked : {false, true}) {
    auto connection = connect(asked ? 2 : 1);
    auto lane = connection->bootstrap<wire::Lane>();
    configure(lane, 2, asked);
    register_function(lane, 1, exponentials());
    ASSERT_EQ(run(lane, {{7, {8, 1}}})[0].error, "");
  }
  EXPECT_GT(first.counts().kernels_prepared + first.counts().trees_prepared, 0);
  EXPECT_EQ(first.counts().deterministic, 0);
  EXPECT_EQ(second.counts().deterministic,
            second.counts().kernels_prepared + second.counts().trees_prepared);
}

class DeterministicWorkerTest : protected TwoDevices, public WorkerServerTest {
 protected:
  DeterministicWorkerTest() : WorkerServerTest({&first, &second}, true) {}
};

TEST_F(DeterministicWorkerTest, RepeatsBitForBitWhateverTheCoordinatorAsksFor) {
  auto connection = connect(1);
  auto lane = connection->bootstrap<wire::Lane>();
  configure(lane);
  register_function(lane, 1, exponentials());
  ASSERT_EQ(run(lane, {{7, {8, 1}}})[0].error, "");
  EXPECT_GT(first.counts().deterministic, 0);
}

// A device of a system that pins no memory.
class RefusingDevice final : public Device {
 public:
  std::string_view name() const override { return "gpu:0"; }
  Memory memory() const override { return Memory::kOwn; }
  std::shared_ptr<std::byte> allocate(std::size_t) override { return nullptr; }
  void copy(Direction, std::byte*, const std::byte*, std::size_t) override {}
  KernelRun prepare(const OpDef&, const KernelTypes&) override { return {}; }
  std::shared_ptr<void> register_host(std::byte*, std::size_t) override {
    throw ResourceExhaustedError("no more than 64 kB may be pinned");
  }
};

TEST(RegisterWith, SaysOnceThatTheSystemRefuses) {
  std::vector<std::string> lines;
  log_to([&](LogLevel, const std::string& line) { lines.push_back(line); });
  RefusingDevice device;
  const rpc::RegisterMemory registers = register_with(device);
  std::byte page{};
  EXPECT_EQ(registers(&page, 1), nullptr);
  EXPECT_EQ(registers(&page, 1), nullptr);
  log_to(LogSink());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0],
            "rows travel to gpu:0 by way of other memory: no more than 64 kB may be pinned");
}

TEST(RegisterWith, TellsTheCpuNothing) { EXPECT_FALSE(register_with(cpu_device())); }

}  // namespace
}  // namespace cairn::worker
