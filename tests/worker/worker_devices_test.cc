// On what the lanes of a worker compute.
#include <gtest/gtest.h>

#include "core/base/json.h"
#include "tests/core/fake_device.h"
#include "tests/worker/worker_fixture.h"

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

}  // namespace
}  // namespace cairn::worker
