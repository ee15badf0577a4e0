// Checkpoints that hold rows in fewer bytes, and what a damaged one says. Under parameter servers
// and on one device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/disk/disk.h"
#include "storage/manifest.h"
#include "strategy/base/one_device_strategy.h"
#include "strategy/servers/checkpoint.h"
#include "testing/simulated_cluster.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using storage::Compression;
using storage::RowForm;
using storage::SlotForm;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

const UpdateRule kEncodedAdagrad{RuleKind::kAdagrad, {0.0f, 0.0f}};

// A program, and the one that comes after it, with a folder that outlives both.
class EncodedProgram {
 public:
  explicit EncodedProgram(bool served) {
    if (served) cluster_ = std::make_unique<SimulatedCluster>(options());
    if (!served) local_ = std::make_unique<OneDeviceStrategy>();
  }
  Strategy& strategy() { return cluster_ ? cluster_->strategy() : *local_; }
  Disk& disk() { return cluster_ ? static_cast<Disk&>(cluster_->disk()) : system_disk(); }
  std::string folder() const { return cluster_ ? "/checkpoints" : folder_.path(); }
  void begin_again() {
    if (!cluster_) return void(local_ = std::make_unique<OneDeviceStrategy>());
    cluster_->kill_chief();
    cluster_->start_chief();
  }

 private:
  static SimulatedClusterOptions options() {
    SimulatedClusterOptions options{.ps = 2, .workers = 1};
    options.strategy.partitioner = FixedShardsPartitioner(2);
    return options;
  }
  tools::TempFolder folder_;
  std::unique_ptr<SimulatedCluster> cluster_;
  std::unique_ptr<Strategy> local_;
};

struct EncodedCheckpoint : ::testing::TestWithParam<bool> {
  Variable make(const std::string& name, Shape shape, bool hashed = false) {
    Variable made = program.strategy().create_variable(
        {.name = name, .shape = std::move(shape), .hashed = hashed});
    program.strategy().add_slots(made, kEncodedAdagrad);
    return made;
  }
  static std::vector<float> all_of(const Tensor& values) {
    return {values.values<float>().begin(), values.values<float>().end()};
  }
  static Array row(float value) {
    return Array(
        Tensor::of<float>({1, 4}, std::vector<float>{value, -value / 2, value / 3, 0.001f}));
  }
  static Array id(std::int64_t id) { return Array(Tensor::of<std::int64_t>({1}, std::vector{id})); }
  // By Adagrad without an initial accumulator a first step is 1 whatever the gradient, and a second
  // one of the same gradient 1 / sqrt(2).
  void step(const Variable& variable) {
    Function once = program.strategy().function([&variable] {
      variable.update(kEncodedAdagrad,
                      Array(Tensor::of<float>({2, 2}, std::vector<float>{3, 3, 3, 3})),
                      Array(1.0f));
    });
    program.strategy().run(once);
  }
  std::string save(storage::RowEncoding encoding) {
    return program.strategy().save({.folder = program.folder(), .encoding = std::move(encoding)});
  }
  EncodedProgram program{GetParam()};
};

TEST_P(EncodedCheckpoint, HashedRowsComeBackAsCloseAsTheirFormIsAndDenseOnesExactly) {
  for (const RowForm form : {RowForm::kBfloat16, RowForm::kInt8}) {
    const Variable table = make("table", {1 << 20, 4}, true), dense = make("dense", {1, 4});
    for (const std::int64_t at : {5, 700'000})
      table.scatter_update(id(at), row(static_cast<float>(at) / 7));
    dense.assign(row(0.7f));
    const std::string checkpoint = save({.rows = form, .compression = Compression::kZstd});
    const storage::Manifest manifest = storage::read_manifest(program.disk(), checkpoint);
    EXPECT_EQ(manifest.compression, Compression::kZstd);
    for (const auto& variable : manifest.variables)
      EXPECT_EQ(variable.row_form, variable.hashed ? form : RowForm::kExact) << variable.name;
    program.begin_again();
    RestoreStatus status = program.strategy().restore(checkpoint, {.new_data = true});
    const Variable again = make("table", {1 << 20, 4}, true), exact = make("dense", {1, 4});
    for (const std::int64_t at : {5, 700'000}) {
      const float value = static_cast<float>(at) / 7;
      const auto found = all_of(again.gather(id(at)).eval()), wanted = all_of(row(value).eval());
      EXPECT_THAT(found, ::testing::Pointwise(::testing::FloatNear(value / 250), wanted));
      EXPECT_NE(found, wanted) << "the form was not used";
    }
    EXPECT_EQ(all_of(exact.read().eval()), all_of(row(0.7f).eval()));
    status.assert_consumed();
    program.begin_again();
  }
}

// The plan is logged before rows are read, so that it is known before a step is taken.
TEST_P(EncodedCheckpoint, DroppedSlotsBeginAnewAndThePlanSaysSo) {
  const Variable w = make("w", {2, 2}), kept = make("kept", {2, 2});
  step(w);
  step(kept);
  const std::string checkpoint = save({.slots = SlotForm::kDropped, .variables = {"w"}});
  program.begin_again();
  std::string log;
  log_to([&log](LogLevel, const std::string& text) { log += text + "\n"; });
  const Variable again = make("w", {2, 2}), as_it_was = make("kept", {2, 2});
  RestoreStatus status = program.strategy().restore(checkpoint, {.new_data = true});
  log_to(nullptr);
  EXPECT_THAT(log, AllOf(HasSubstr("\"w\": from \"w\", 2 rows, slots begin anew: it was saved "
                                   "without them"),
                         HasSubstr("\"kept\": from \"kept\", 2 rows, slots of adagrad")));
  step(again);
  step(as_it_was);
  EXPECT_THAT(all_of(again.read().eval()), Each(-2));
  EXPECT_THAT(all_of(as_it_was.read().eval()), Each(::testing::FloatNear(-1.7071068f, 1e-5f)));
  status.assert_consumed();
}

TEST_P(EncodedCheckpoint, ADamagedOneNamesItsFileAndTheNewestSoundOneBeforeIt) {
  const Variable w = make("w", {2, 2});
  step(w);
  const std::string sound = save({});
  step(w);
  const std::string damaged = save({});
  const storage::Manifest manifest = storage::read_manifest(program.disk(), damaged);
  std::string file;
  for (const auto& each : manifest.databases.at(0).files)
    if (each.name.ends_with(".sst") || each.name.ends_with("/rows")) file = each.name;
  program.disk().remove(damaged + "/" + file);
  program.begin_again();
  std::string said;
  step(make("w", {2, 2}));
  try {
    program.strategy().restore(damaged, {.new_data = true});
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_THAT(said, HasSubstr(file.substr(0, file.find('/'))));
  EXPECT_THAT(said, HasSubstr("the newest older one that is sound: " + sound));
}

INSTANTIATE_TEST_SUITE_P(Strategies, EncodedCheckpoint, ::testing::Bool(), [](const auto& each) {
  return each.param ? "ParameterServer" : "OneDevice";
});

// The rows of a ps that is lost come from the newest checkpoint, by the same rules.
TEST(EncodedCheckpointOfServers, APsThatIsLostComesBackWithoutTheSlotsThatWereDropped) {
  SimulatedCluster cluster({.ps = 1, .workers = 1});
  Strategy& strategy = cluster.strategy();
  const Variable w = strategy.create_variable({.name = "w", .shape = {2, 2}});
  strategy.add_slots(w, kEncodedAdagrad);
  Function once = strategy.function([&w] {
    w.update(kEncodedAdagrad, Array(Tensor::of<float>({2, 2}, std::vector<float>{3, 3, 3, 3})),
             Array(1.0f));
  });
  strategy.run(once);
  strategy.save({.folder = "/c", .encoding = {.slots = SlotForm::kDropped, .variables = {"*"}}});
  cluster.kill_ps(0);
  cluster.start_ps(0);
  strategy.run(once);
  const Tensor values = w.read().eval();
  EXPECT_THAT(std::vector<float>(values.values<float>().begin(), values.values<float>().end()),
              Each(-2));
}

}  // namespace
}  // namespace cairn
