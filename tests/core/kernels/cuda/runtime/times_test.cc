// Views of the device's own work: a track of a trace, and names for a profiler.
#include "core/kernels/cuda/runtime/times.h"

#include <gmock/gmock.h>

#include "core/kernels/cuda/device.h"
#include "tests/core/executor_testing.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct FakeSink final : SpanSink {
  struct Span {
    std::string track, name;
    TimePoint begin, end;
  };
  bool wanted() const override { return on; }
  void add(const std::string& track, const std::string& name, TimePoint begin,
           TimePoint end) override {
    spans.push_back({track, name, begin, end});
  }
  std::vector<std::string> names(const std::string& track) const {
    std::vector<std::string> all;
    for (const Span& span : spans)
      if (span.track == track) all.push_back(span.name);
    return all;
  }
  bool on = true;
  std::vector<Span> spans;
};

// A step with a product, a lookup and an update by ids, on a device over the fake driver.
class SeenOnTheDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    device = cuda::make_device("gpu:0", driver, cpu_device(), {.trace = &sink});
  }

  void open() {
    workspace.emplace(*device);
    auto spec = std::make_shared<VariableSpec>();
    spec->name = "table";
    spec->shape = {9, 4};
    spec->dtype = DType::kFloat32;
    spec->initializer = Initializer::from(noise({9, 4}, 1));
    store.add_slots(store.create(spec), kSgd);
    const Variable table(spec);
    const auto step = trace_function({ints({3}), floats({4, 2})}, [&](auto& in) {
      const Array loss = mean(square(matmul(table.gather(arg(in, 0)), arg(in, 1))));
      for (const auto& gradient : variable_gradients(loss))
        gradient.variable.update(kSgd, gradient.sparse, 0.1f);
      return std::vector<Array>{loss};
    });
    plan = make_plan(step.graph, {0});
  }
  void run_once() {
    StepContext context;
    context.global_step = 7;
    run(plan, *workspace, store, context, {ids_of({1, 8, 1}), noise({4, 2}, 2)}, {});
  }
  static Tensor ids_of(const std::vector<std::int64_t>& ids) {
    Tensor made(DType::kInt64, Shape{static_cast<std::int64_t>(ids.size())});
    std::copy(ids.begin(), ids.end(), made.mutable_values<std::int64_t>().begin());
    return made;
  }

  FakeDriver driver;
  FakeSink sink;
  std::unique_ptr<Device> device;
  LocalStore store;
  std::optional<Workspace> workspace;
  std::shared_ptr<const Plan> plan;
};

TEST_F(SeenOnTheDevice, EachOperationIsASpanOfTheDevicesTrack) {
  open();
  const TimePoint before = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) run_once();
  EXPECT_THAT(sink.names("gpu:0"),
              AllOf(Contains(HasSubstr("matmul")), Contains(HasSubstr("sgd by ids of")),
                    Contains(StartsWith("rows of")), Contains("copy to the host"),
                    Contains("copy to the device")));
  TimePoint end = before;
  for (const FakeSink::Span& span : sink.spans) {
    EXPECT_EQ(span.track, "gpu:0");
    EXPECT_GE(span.begin, end) << span.name;  // one after another, on the host's clock
    EXPECT_GE(span.end - span.begin, std::chrono::milliseconds(1)) << span.name;
    end = span.end;
  }
  EXPECT_EQ(driver.counts().recordings, 0);  // nothing is seen within a recorded step
}

TEST_F(SeenOnTheDevice, WorkspacesWhoseWorkOverlapsHaveTracksOfTheirOwn) {
  open();
  Workspace other(*device);
  run_once();
  run(plan, other, store, {}, {ids_of({1, 8, 1}), noise({4, 2}, 2)}, {});
  EXPECT_THAT(sink.names("gpu:0, queue 2"), Contains(HasSubstr("matmul")));
}

TEST_F(SeenOnTheDevice, ATrackOfAWorkspaceThatHasEndedIsTheNextOnes) {
  { const Workspace first(*device); }
  open();
  run_once();
  EXPECT_FALSE(sink.names("gpu:0").empty());
}

TEST_F(SeenOnTheDevice, AStepWhoseValuesNobodyReadsIsSeenAsWell) {
  FakeSink of_times;
  const cuda::Stream stream = driver.make_stream();
  {
    cuda::OperationTimes times(driver, false, &of_times, "gpu:0");
    for (int i = 0; i < 5000; ++i) times.time("an operation", stream, [] {});
    EXPECT_GE(of_times.spans.size(), 4096u);
  }
  driver.destroy(stream);
}

TEST_F(SeenOnTheDevice, WithoutATraceNothingIsTimedAndStepsAreReplayed) {
  sink.on = false;
  open();
  const int events = driver.counts().events;
  for (int i = 0; i < 4; ++i) run_once();
  EXPECT_THAT(sink.spans, IsEmpty());
  EXPECT_EQ(driver.counts().recordings, 1);
  EXPECT_GT(driver.counts().replays, 0);
  EXPECT_THAT(driver.ranges(), IsEmpty());
  // The only events are those of the stream that the update takes.
  EXPECT_LE(driver.counts().events - events, 2 * 4);
}

TEST_F(SeenOnTheDevice, AProfilerSeesTheNamesOfOperationsWithinThoseOfSteps) {
  sink.on = false;
  driver.attach_profiler();
  open();
  run_once();
  EXPECT_THAT(driver.ranges(),
              AllOf(Contains("step 7"), Contains(StartsWith(">matmul")),
                    Contains(StartsWith(">sgd by ids of")), Contains(">copy to the host")));
  EXPECT_THAT(sink.spans, IsEmpty());
  for (int i = 0; i < 3; ++i) run_once();
  EXPECT_GT(driver.counts().replays, 0);  // names cost no replay
}

}  // namespace
}  // namespace cairn
