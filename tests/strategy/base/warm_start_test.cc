// Restores that choose: by patterns, onto other names, without slots, between dense and hashed
// variables, and by values of another vocabulary. The same under every strategy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "core/base/log.h"
#include "core/graph/ops.h"
#include "strategy/base/one_device_strategy.h"
#include "strategy/in_sync/central_storage_strategy.h"
#include "strategy/in_sync/mirrored_strategy.h"
#include "strategy/servers/checkpoint.h"
#include "testing/simulated_cluster.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using tools::TempFolder;

const UpdateRule kWarmAdagrad{RuleKind::kAdagrad, {0.0f, 0.0f}};

// Programs of one strategy, one after the other, with a folder that outlives them.
class Programs {
 public:
  virtual ~Programs() = default;
  virtual Strategy& strategy() = 0;
  virtual void begin_again() = 0;
  virtual std::string folder() const = 0;
};

class LocalPrograms final : public Programs {
 public:
  explicit LocalPrograms(std::function<std::unique_ptr<Strategy>()> make) : make_(std::move(make)) {
    begin_again();
  }
  Strategy& strategy() override { return *strategy_; }
  void begin_again() override { strategy_ = make_(); }
  std::string folder() const override { return folder_.path(); }

 private:
  std::function<std::unique_ptr<Strategy>()> make_;
  TempFolder folder_;
  std::unique_ptr<Strategy> strategy_;
};

class ServedPrograms final : public Programs {
 public:
  Strategy& strategy() override { return cluster_.strategy(); }
  void begin_again() override {
    cluster_.kill_chief();
    cluster_.start_chief();
  }
  std::string folder() const override { return "/checkpoints"; }

 private:
  static SimulatedClusterOptions options() {
    SimulatedClusterOptions options{.ps = 2, .workers = 1};
    options.strategy.partitioner = FixedShardsPartitioner(2);
    return options;
  }
  SimulatedCluster cluster_{options()};
};

struct WarmStart : ::testing::TestWithParam<std::string> {
  WarmStart() {
    if (GetParam() == "OneDevice")
      programs =
          std::make_unique<LocalPrograms>([] { return std::make_unique<OneDeviceStrategy>(); });
    else if (GetParam() == "Mirrored")
      programs = std::make_unique<LocalPrograms>([] {
        return std::make_unique<MirroredStrategy>(std::vector<std::string>{"cpu:0", "cpu:1"});
      });
    else if (GetParam() == "CentralStorage")
      programs = std::make_unique<LocalPrograms>([] {
        return std::make_unique<CentralStorageStrategy>(std::vector<std::string>{"cpu:0", "cpu:1"});
      });
    else
      programs = std::make_unique<ServedPrograms>();
  }
  Strategy& strategy() { return programs->strategy(); }
  Variable make(const std::string& name, Shape shape, bool hashed = false, bool slots = true) {
    Variable made = strategy().create_variable({.name = name,
                                                .shape = std::move(shape),
                                                .initializer = Initializer::constant(-1),
                                                .hashed = hashed});
    if (slots) strategy().add_slots(made, kWarmAdagrad);
    return made;
  }
  // Each of these rows of two elements has 10 times its number after one update.
  void set_rows(const Variable& table, const std::vector<std::int64_t>& rows) {
    std::vector<float> values;
    for (const std::int64_t row : rows)
      values.insert(values.end(), 2, 10 * static_cast<float>(row));
    const auto count = static_cast<std::int64_t>(rows.size());
    table.scatter_update(Tensor::of<std::int64_t>({count}, rows),
                         Array(Tensor::of<float>({count, 2}, values)));
  }
  // The first element of each of these rows.
  static std::vector<float> rows_of(const Variable& table, const std::vector<std::int64_t>& rows) {
    const Tensor read =
        table.gather(Tensor::of<std::int64_t>({static_cast<std::int64_t>(rows.size())}, rows))
            .eval();
    std::vector<float> first;
    for (std::size_t i = 0; i < rows.size(); ++i) first.push_back(read.values<float>()[2 * i]);
    return first;
  }
  static std::vector<float> values(const Variable& variable) {
    const Tensor all = variable.read().eval();
    return {all.values<float>().begin(), all.values<float>().end()};
  }
  static void assign(const Variable& variable, float value) {
    variable.assign(Array(Tensor::of<float>(
        variable.shape(),
        std::vector<float>(static_cast<std::size_t>(variable.shape().elements()), value))));
  }
  // By Adagrad without an initial accumulator the first step is 1 whatever the gradient, and a
  // second one of the same gradient 1 / sqrt(2).
  void step(const Variable& variable) {
    Function once = strategy().function([&variable] {
      variable.update(kWarmAdagrad, Array(Tensor::of<float>({2}, std::vector<float>{3, 3})),
                      Array(1.0f));
    });
    strategy().run(once);
  }
  std::string save() { return strategy().save({.folder = programs->folder()}); }
  RestoreStatus restore(const std::string& checkpoint, RestoreOptions options) {
    options.new_data = true;
    return strategy().restore(checkpoint, options);
  }
  template <typename E>
  static std::string refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const E& error) {
      return error.what();
    }
    return "nothing was refused";
  }

  std::unique_ptr<Programs> programs;
};

TEST_P(WarmStart, TakesWhatThePatternsChooseAndBeginsTheRestAnew) {
  for (const char* name : {"embedding/city", "embedding/user", "head"}) assign(make(name, {4}), 7);
  const std::string checkpoint = save();
  programs->begin_again();
  RestoreStatus status = restore(checkpoint, {.include = {"embedding/*"}, .exclude = {"*/user"}});
  const Variable city = make("embedding/city", {4}), user = make("embedding/user", {3}),
                 head = make("head", {4});
  EXPECT_THAT(values(city), Each(7));
  EXPECT_THAT(values(user), Each(-1));
  EXPECT_THAT(values(head), Each(-1));
  status.assert_consumed();
}

TEST_P(WarmStart, VariablesThatWereTrainedAlreadyBeginAnewWhereTheyAreLeftOut) {
  const Variable kept = make("kept", {4}), out = make("out", {4});
  assign(kept, 7);
  assign(out, 7);
  const std::string checkpoint = save();
  assign(kept, 8);
  assign(out, 8);
  restore(checkpoint, {.exclude = {"out"}}).assert_consumed();
  EXPECT_THAT(values(kept), Each(7));
  EXPECT_THAT(values(out), Each(-1));
}

TEST_P(WarmStart, RenamesGiveRowsAndSlotsToAnotherName) {
  const Variable tower = make("tower/w", {2});
  assign(tower, 7);
  step(tower);
  const std::string checkpoint = save();
  programs->begin_again();
  RestoreStatus status = restore(checkpoint, {.rename = {{"tower/*", "user_tower/*"}}});
  const Variable user = make("user_tower/w", {2});
  EXPECT_THAT(values(user), Each(6));
  step(user);
  EXPECT_THAT(values(user), Each(::testing::FloatNear(6 - 0.70710678f, 1e-5f)));
  status.assert_consumed();
}

TEST_P(WarmStart, WithoutSlotsTheOptimizerBeginsAnew) {
  const Variable w = make("w", {2});
  assign(w, 7);
  step(w);
  const std::string checkpoint = save();
  programs->begin_again();
  RestoreStatus status = restore(checkpoint, {.slots = false});
  const Variable again = make("w", {2});
  step(again);
  EXPECT_THAT(values(again), Each(5));
  status.assert_consumed();
}

TEST_P(WarmStart, WithoutSlotsAVariableThatWasThereForgetsItsOwn) {
  const Variable w = make("w", {2});
  assign(w, 7);
  const std::string checkpoint = save();
  step(w);
  restore(checkpoint, {.slots = false});
  step(w);
  EXPECT_THAT(values(w), Each(6));
}

TEST_P(WarmStart, HashedRowsBecomeDenseOnes) {
  set_rows(make("table", {1 << 20, 2}, true), {1, 3, 5});
  const std::string checkpoint = save();
  programs->begin_again();
  restore(checkpoint, {}).assert_existing_objects_matched();
  const Variable dense = make("table", {6, 2});
  EXPECT_THAT(rows_of(dense, {0, 1, 2, 3, 4, 5}), ElementsAre(-1, 10, -1, 30, -1, 50));
}

TEST_P(WarmStart, DenseRowsBecomeHashedOnes) {
  const Variable dense = make("table", {6, 2});
  set_rows(dense, {1, 3, 5});
  const std::string checkpoint = save();
  programs->begin_again();
  restore(checkpoint, {}).assert_existing_objects_matched();
  const Variable hashed = make("table", {1 << 20, 2}, true);
  EXPECT_THAT(rows_of(hashed, {0, 1, 3, 5, 6}), ElementsAre(-1, 10, 30, 50, -1));
}

TEST_P(WarmStart, AnIdBeyondTheDenseRowsIsNamedWithTheNumberOfThemAndNothingChanges) {
  set_rows(make("table", {1 << 20, 2}, true), {1, 700'000, 5, 90});
  const std::string checkpoint = save();
  programs->begin_again();
  const Variable dense = make("table", {6, 2});
  set_rows(dense, {2});
  EXPECT_THAT(refusal<FailedPreconditionError>([&] { restore(checkpoint, {}); }),
              AllOf(HasSubstr("\"table\" has 6 rows"), HasSubstr("holds 2 ids beyond them"),
                    HasSubstr("the lowest 90")));
  EXPECT_THAT(rows_of(dense, {1, 2}), ElementsAre(-1, 20));
}

TEST_P(WarmStart, AVariableMadeLaterWhoseIdsDoNotFitIsRefusedToo) {
  set_rows(make("table", {1 << 20, 2}, true), {1, 700'000});
  const std::string checkpoint = save();
  programs->begin_again();
  restore(checkpoint, {});
  EXPECT_THAT(refusal<FailedPreconditionError>([&] {
                rows_of(make("table", {6, 2}, false, false), {1});
              }),
              AllOf(HasSubstr("1 ids beyond them"), HasSubstr("700000")));
}

TEST_P(WarmStart, RowsFollowTheirValuesToAnotherVocabulary) {
  set_rows(make("city", {5, 2}), {0, 1, 2, 3, 4});  // unknown, a, b, c, d
  const std::string checkpoint = save();
  programs->begin_again();
  const auto numbers = std::make_shared<const RowNumbers>(rows_by_value(
      {.old_vocab = {"a", "b", "c", "d"}, .new_vocab = {"d", "e", "f", "g", "b", "a"}}));
  RestoreStatus status = restore(checkpoint, {.rows = {{"city", numbers}}});
  const Variable city = make("city", {7, 2});
  EXPECT_THAT(rows_of(city, {0, 1, 2, 3, 4, 5, 6}), ElementsAre(0, 40, -1, -1, -1, 20, 10));
  status.assert_consumed();
  EXPECT_THAT(status.plan(), HasSubstr("4 rows to their new numbers, 1 left out, 3 rows begin"));
}

TEST_P(WarmStart, ASaveAfterARestoreHoldsTheModelAsItIsNow) {
  assign(make("old", {2}), 7);
  const std::string first = save();
  programs->begin_again();
  restore(first, {.rename = {{"old", "new"}}});
  make("new", {2});
  const std::string second = save();
  programs->begin_again();
  RestoreStatus status = restore(second, {});
  EXPECT_THAT(values(make("new", {2})), Each(7));
  status.assert_consumed();
}

TEST_P(WarmStart, WhatIsAmbiguousIsRefusedAndNothingChanges) {
  for (const char* name : {"a", "b"}) assign(make(name, {2}), 7);
  const std::string checkpoint = save();
  const Variable c = make("c", {2});
  assign(c, 5);
  const std::string text = refusal<InvalidArgumentError>([&] {
    restore(checkpoint, {.include = {"a", "b", "x*"}, .rename = {{"a", "c"}, {"b", "c"}}});
  });
  EXPECT_THAT(text, AllOf(HasSubstr("include: \"x*\" matches no variable"),
                          HasSubstr("\"a\" and \"b\" would both go into \"c\"")));
  EXPECT_THAT(values(c), Each(5));
}

TEST_P(WarmStart, ThePlanIsLoggedBeforeAnythingIsRestored) {
  assign(make("a", {2}), 7);
  const std::string checkpoint = save();
  const Variable c = make("c", {3});
  std::string log;
  log_to([&log](LogLevel, const std::string& text) { log += text + "\n"; });
  const std::string text = refusal<FailedPreconditionError>([&] {
    restore(checkpoint, {.rename = {{"a", "c"}}});
  });
  log_to(nullptr);
  EXPECT_THAT(text, HasSubstr("\"c\" is float32[3], in the checkpoint float32[2] as \"a\""));
  EXPECT_THAT(log,
              AllOf(HasSubstr(checkpoint), HasSubstr("\"c\": does not fit: \"c\" is float32")));
}

INSTANTIATE_TEST_SUITE_P(Strategies, WarmStart,
                         ::testing::Values("OneDevice", "Mirrored", "CentralStorage",
                                           "ParameterServer"),
                         [](const auto& each) { return each.param; });

// ---- parameter servers alone ----

TEST(WarmStartOnServers, APsThatIsLostBeforeTheFirstSaveComesBackByTheSamePlan) {
  SimulatedCluster cluster({.ps = 2, .workers = 1});
  std::string checkpoint;
  {
    Strategy& strategy = cluster.strategy();
    for (const char* name : {"a", "b", "c"})
      strategy.create_variable({.name = name, .shape = {2}})
          .assign(Array(Tensor::of<float>({2}, std::vector<float>{7, 8})));
    checkpoint = strategy.save({.folder = "/checkpoints"});
  }
  cluster.kill_chief();
  cluster.start_chief();
  Strategy& strategy = cluster.strategy();
  strategy.restore(checkpoint, {.exclude = {"c"}, .rename = {{"a", "b"}, {"b", "a2"}}});
  std::vector<Variable> made;
  for (const char* name : {"b", "a2", "c"})
    made.push_back(strategy.create_variable({.name = name, .shape = {2}}));
  const auto read = [&] {
    std::vector<float> all;
    for (const Variable& variable : made) {
      const Tensor values = variable.read().eval();
      all.insert(all.end(), values.values<float>().begin(), values.values<float>().end());
    }
    return all;
  };
  EXPECT_THAT(read(), ElementsAre(7, 8, 7, 8, 0, 0));
  for (int i : {0, 1}) {
    cluster.kill_ps(i);
    cluster.start_ps(i);
    EXPECT_THAT(read(), ElementsAre(7, 8, 7, 8, 0, 0)) << i;
  }
}

TEST(WarmStartOnServers, APsWhoseRestoreIsCutShortKeepsNoRowsFromBeforeIt) {
  for (const char* from : {"chief", "ps0"}) {  // the request is lost, or its reply
    SimulatedCluster cluster({.ps = 1, .workers = 1});
    Strategy& strategy = cluster.strategy();
    std::vector<Variable> made;
    for (const char* name : {"kept", "out"})
      made.push_back(strategy.create_variable({.name = name, .shape = {1}}));
    const auto assign_all = [&](float value) {
      for (const Variable& variable : made)
        variable.assign(Array(Tensor::of<float>({1}, std::vector<float>{value})));
    };
    assign_all(7);
    const std::string checkpoint = strategy.save({.folder = "/checkpoints"});
    assign_all(8);
    const std::string to = from == std::string("chief") ? "ps0" : "chief";
    cluster.network().drop_next(from, to);
    strategy.restore(checkpoint, {.exclude = {"out"}});
    EXPECT_EQ(made[0].read().eval().item<float>(), 7) << from;
    EXPECT_EQ(made[1].read().eval().item<float>(), 0) << from;
  }
}

}  // namespace
}  // namespace cairn
