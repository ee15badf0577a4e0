// A device's account of its memory: by what it is for, and in the error when it runs out.
#include <gmock/gmock.h>

#include "core/kernels/cuda/device.h"
#include "core/kernels/cuda/runtime/memory_use.h"
#include "core/kernels/device_figures_json.h"
#include "tests/core/executor_testing.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::HasSubstr;

class DeviceMemory : public ::testing::Test {
 protected:
  FakeDriver driver;
  std::unique_ptr<Device> device = cuda::make_device(
      "gpu:0", driver, cpu_device(), {.model = "a model", .memory_bytes = std::size_t{80} << 30});

  DeviceFigures figures() const { return device->figures().value(); }
};

TEST_F(DeviceMemory, IsCountedByWhatItIsFor) {
  {
    Workspace workspace(*device);
    LocalStore store;
    auto spec = std::make_shared<VariableSpec>();
    spec->name = "table";
    spec->dtype = DType::kFloat32;
    spec->shape = {1000, 8};
    spec->initializer = Initializer::from(noise({1000, 8}, 1));
    store.add_slots(store.create(spec), kSgd);
    const Variable table(spec);
    const auto step = trace_function({floats({64, 1000})}, [&](auto& in) {
      return std::vector<Array>{reduce_sum(matmul(arg(in, 0), table.read()))};
    });
    run(make_plan(step.graph, {0}), workspace, store, {}, {noise({64, 1000}, 2)}, {});
    const DeviceFigures now = figures();
    EXPECT_GE(now.variables_bytes, 1000u * 8 * sizeof(float));
    EXPECT_LT(now.variables_bytes, 2u * 1000 * 8 * sizeof(float));
    EXPECT_GE(now.values_bytes, 64u * 1000 * sizeof(float));
    EXPECT_GT(now.scratch_bytes, 0u);
    // The driver rounds each block up to 256 bytes.
    EXPECT_LE(now.used_bytes(), driver.used_bytes());
    EXPECT_LE(driver.used_bytes(), now.used_bytes() + 256 * driver.blocks());
  }
  EXPECT_EQ(figures().used_bytes(), 0u);
}

TEST_F(DeviceMemory, IsToldWithTheDeviceAndHowBusyItIs) {
  EXPECT_EQ(figures().model, "a model");
  EXPECT_EQ(figures().memory_bytes, std::size_t{80} << 30);
  EXPECT_EQ(figures().busy_percent, 93);
  EXPECT_FALSE(cpu_device().figures().has_value());
  const DeviceFigures again = figures_of(figures_json("gpu:0", figures()));
  EXPECT_EQ(again.model, "a model");
  EXPECT_EQ(again.busy_percent, 93);
}

// The message says where the memory has gone and what to do.
TEST_F(DeviceMemory, ThatRunsOutIsAnErrorWithWhatItWentIntoAndTheCure) {
  Workspace workspace(*device);
  LocalStore store;
  const auto traced = trace_function(
      {floats({kAny})}, [](auto& in) { return std::vector<Array>{reduce_sum(exp(arg(in, 0)))}; });
  const auto plan = make_plan(traced.graph, {});
  run(plan, workspace, store, {}, {noise({8}, 1)}, {});
  driver.limit(std::size_t{1} << 20);
  const auto opened = device->open();
  const auto rows = opened->allocate_rows(200'000);
  EXPECT_THAT(
      message_of<ResourceExhaustedError>(
          [&] { run(plan, workspace, store, {}, {noise({1 << 20}, 1)}, {}); }),
      AllOf(HasSubstr("gpu:0 has no "), HasSubstr("the memory was for values of steps"),
            HasSubstr("200000 bytes of variables"), HasSubstr("scratch of kernels"),
            HasSubstr("run smaller batches"), HasSubstr("fewer lanes"), HasSubstr("--device cpu")));
  // The next step of the old size has its memory again.
  EXPECT_NO_THROW(run(plan, workspace, store, {}, {noise({8}, 1)}, {}));
}

TEST(BytesText, NamesTheUnitThatFits) {
  EXPECT_EQ(cuda::bytes_text(128), "128 bytes");
  EXPECT_EQ(cuda::bytes_text(std::size_t{5} << 19), "2.5 MiB");
  EXPECT_EQ(cuda::bytes_text(std::size_t{3} << 30), "3.0 GiB");
}

}  // namespace
}  // namespace cairn
