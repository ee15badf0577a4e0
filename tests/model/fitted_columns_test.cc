#include "model/fitted_columns.h"

#include <gmock/gmock.h>

#include <cmath>

#include "data/stage/fit.h"
#include "model/sidecar_evaluator.h"
#include "tests/model/small_models.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Killed;
using testing::KillsAt;

Json as_saved(const std::vector<FeatureColumn>& columns) {
  return parse_json(json_text(fitted_json(columns)), "saved");
}

std::vector<FeatureColumn> columns_of(std::vector<std::string> values, float mean = 4) {
  return {FeatureColumn::numeric({{.column = "x", .mean = mean, .stddev = 2}}),
          FeatureColumn::vocabulary("word", std::move(values))};
}

TEST(FittedColumns, TheFirstDifferenceNamesTheColumnAndBothValues) {
  const Json saved = as_saved(columns_of({"a\xff", "b"}));
  EXPECT_EQ(first_difference(saved, fitted_json(columns_of({"a\xff", "b"}))), "");
  EXPECT_EQ(
      first_difference(saved, fitted_json(columns_of({"a\xff", "c"}))),
      "feature \"word\": value 2 of the vocabulary is \"b\" in the checkpoint and \"c\" in the "
      "data now");
  EXPECT_EQ(first_difference(saved, fitted_json(columns_of({"a\xff"}))),
            "feature \"word\": value 2 of the vocabulary is \"b\" in the checkpoint, and the data "
            "now has 1 values");
  EXPECT_EQ(
      first_difference(saved, fitted_json(columns_of({"a\xff", "b", "d"}))),
      "feature \"word\": the vocabulary ends after 2 values in the checkpoint, and value 3 is "
      "\"d\" in the data now");
  EXPECT_EQ(first_difference(saved, fitted_json(columns_of({"a\xff", "b"}, 5))),
            "column \"x\": the mean is 4 in the checkpoint and 5 in the data now");
}

TEST(FittedColumns, TheDateThatAgesAreCountedToIsNamed) {
  const auto ages = [](std::int64_t until) {
    return std::vector{FeatureColumn::numeric({{.column = "day", .days_until = until}})};
  };
  const Json saved = as_saved(ages(1709164800));
  EXPECT_EQ(first_difference(saved, fitted_json(ages(1709164800))), "");
  EXPECT_EQ(first_difference(saved, fitted_json(ages(1709251200))),
            "column \"day\": ages are counted to 2024-02-29 in the checkpoint and to 2024-03-01 in "
            "the data now");
}

TEST(FittedColumns, TheLastBitOfAMeanIsNoDifference) {
  const Json saved = as_saved(columns_of({"a"}, 4));
  EXPECT_EQ(first_difference(saved, fitted_json(columns_of({"a"}, std::nextafter(4.0f, 5.0f)))),
            "");
}

// Every setting of a column counts, as far as it changes what ids and numbers mean.
TEST(FittedColumns, EverySettingOfAColumnCounts) {
  const Ngrams pairs{.words_max = 2}, cased{.keep_case = true};
  const std::vector<FeatureColumn> all = {
      FeatureColumn::numeric({{.column = "x"}}),
      FeatureColumn::numeric({{.column = "x", .log1p = true}}),
      FeatureColumn::numeric({{.column = "x", .days_until = 0}}),
      FeatureColumn::date_part("x", DatePart::kHour),
      FeatureColumn::date_part("x", DatePart::kMonth, "x_hour"),
      FeatureColumn::hashed("x", 10),
      FeatureColumn::hashed("x", 20),
      FeatureColumn::hashed("y", 10),
      FeatureColumn::bucketised("x", {1, 2}),
      FeatureColumn::bucketised("x", {1, 3}),
      FeatureColumn::crossed({"x", "y"}, 10),
      FeatureColumn::crossed({"y", "x"}, 10),
      FeatureColumn::as_is("x"),
      FeatureColumn::as_is("x", 10),
      FeatureColumn::words("x", 10),
      FeatureColumn::words("x", 10, pairs),
      FeatureColumn::words("x", 10, cased),
      FeatureColumn::vocabulary("x", {"a"}),
      FeatureColumn::vocabulary("x", {"a"}, Oov::kLast)};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < all.size(); ++j)
      EXPECT_EQ(first_difference(as_saved({all[i]}), fitted_json({all[j]})).empty(), i == j)
          << i << " and " << j;
}

// ---- programs ----

// A program that fits a vocabulary to its file each time it is started.
struct Program {
  tools::TempFolder folder;
  std::string backup = folder.path() + "/backup";

  Program() { write("ant"); }
  void write(const std::string& first) const {
    std::string lines;
    for (int i = 0; i < 10; ++i) lines += "1," + first + "\n0,bee\n0,cat\n1,dog\n";
    folder.write("a.csv", lines);
  }
  Dataset examples() const {
    CsvSchema schema{.columns = {{.name = "label"}, {.name = "word", .dtype = DType::kString}}};
    schema.label.column = "label";
    const Dataset raw = Dataset::csv(folder.path() + "/a.csv", schema);
    return raw.features({FeatureColumn::vocabulary("word", fit_vocabulary(raw, "word"))});
  }
  template <typename Work>
  void with_model(const std::string& strategy_name, Work work) const {
    const auto strategy = make_strategy(strategy_name);
    const Scope scope = strategy->scope();
    nn::Embedding table({.name = "words", .rows = 5, .dim = 1});
    Model model([&](const Features& features) { return table(features["word"]); });
    model.compile({.optimizer = nn::Sgd({.learning_rate = 0.1f}), .loss = "mse"});
    work(model);
  }
  void run(const std::string& strategy, const Dataset& batches,
           std::shared_ptr<Callback> kills = nullptr) const {
    FitOptions options{.epochs = 3, .verbose = Verbose::kSilent};
    options.callbacks = {std::make_shared<BackupAndRestore>(backup)};
    if (kills) options.callbacks.push_back(kills);
    with_model(strategy, [&](Model& model) { model.fit(batches, options); });
  }
};

template <typename Work>
std::string refusal_of(Work work) {
  try {
    work();
    return "no error";
  } catch (const FailedPreconditionError& error) {
    return error.what();
  }
}

TEST(FittedProgram, ABackupOfAnotherVocabularyIsRefusedBeforeItIsRestored) {
  for (const std::string& strategy : testing::kInProcess) {
    SCOPED_TRACE(strategy);
    const Program program;
    EXPECT_THROW(
        program.run(strategy, program.examples().batch(4), std::make_shared<KillsAt>(1, 1)),
        Killed);
    program.write("fox");
    EXPECT_THAT(
        refusal_of([&] { program.run(strategy, program.examples().batch(4)); }),
        AllOf(HasSubstr("value 1 of the vocabulary is \"ant\" in the checkpoint and \"bee\""),
              HasSubstr(program.backup)));
    program.write("ant");
    program.run(strategy, program.examples().batch(4));
  }
}

// A step would be another place in the data.
TEST(FittedProgram, ABackupWithOtherBatchesIsRefused) {
  const Program program;
  EXPECT_THROW(
      program.run("one_device", program.examples().batch(4), std::make_shared<KillsAt>(1, 1)),
      Killed);
  EXPECT_THAT(refusal_of([&] { program.run("one_device", program.examples().batch(8)); }),
              HasSubstr("batches or options differ"));
}

TEST(FittedProgram, ASidecarEvaluatorOfAnotherVocabularyIsRefused) {
  const Program program;
  EXPECT_THROW(
      program.run("one_device", program.examples().batch(4), std::make_shared<KillsAt>(1, 1)),
      Killed);
  const SidecarOptions options{.checkpoints = program.backup, .patience = Duration::zero()};
  const auto judge = [&](const Dataset& batches) {
    program.with_model("one_device", [&](Model& model) {
      EXPECT_EQ(SidecarEvaluator(model, batches, options).run(), 1);
    });
  };
  judge(program.examples().batch(4));
  program.write("fox");
  EXPECT_THAT(refusal_of([&] { judge(program.examples().batch(4)); }),
              HasSubstr("\"ant\" in the checkpoint"));
}

}  // namespace
}  // namespace cairn
