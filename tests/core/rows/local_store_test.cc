// Variables in one process: initial values, reads, updates, and eager use.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <numeric>

#include "core/exec/local_runtime.h"
#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

VariableSpec spec_of(const std::string& name, Shape shape, Initializer initializer,
                     DType dtype = DType::kFloat32) {
  VariableSpec spec;
  spec.name = name;
  spec.shape = std::move(shape);
  spec.dtype = dtype;
  spec.initializer = std::move(initializer);
  return spec;
}

std::vector<float> initial(const VariableSpec& spec, std::uint64_t seed, std::int64_t begin,
                           std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count * spec.dim()));
  initialize_rows(spec, seed, begin, count, spec.dim(),
                  reinterpret_cast<std::byte*>(values.data()));
  return values;
}

std::vector<float> floats_in(const Tensor& value) {
  return {value.values<float>().begin(), value.values<float>().end()};
}

TEST(InitialValues, AreTheSameHoweverTheRowsAreCut) {
  for (const Initializer& from :
       {Initializer::uniform(-1, 1), Initializer::normal(0, 1, 3),
        Initializer::truncated_normal(1, 2), Initializer::constant(4),
        Initializer::from(tensor({7, 3}, std::vector<float>(21, 0.5f)))}) {
    VariableSpec spec = spec_of("w", {7, 3}, from);
    std::vector<float> whole = initial(spec, 9, 0, 7), pieces;
    for (auto [begin, count] : {std::pair{0, 2}, {2, 0}, {2, 4}, {6, 1}})
      for (float value : initial(spec, 9, begin, count)) pieces.push_back(value);
    EXPECT_EQ(pieces, whole);
  }
}

TEST(HashedVariable, IsADenseOneWhoseUntouchedRowsTakeNoMemory) {
  LocalStore store(3);
  VariableSpec dense = spec_of("w", {500, 4}, Initializer::uniform(-1, 1)), hashed = dense;
  hashed.hashed = true;
  const UpdateRule rule{RuleKind::kAdagrad, {0.1f, 1e-7f}};
  const VariableId ids[] = {store.create(std::make_shared<VariableSpec>(dense)),
                            store.create(std::make_shared<VariableSpec>(hashed))};
  for (const VariableId id : ids) store.add_slots(id, rule);
  for (std::int64_t first : {400, 3, 90, 390}) {
    std::vector<std::int64_t> rows;
    for (std::int64_t row = first; row < first + 60; row += 3) rows.push_back(row);
    const auto count = static_cast<std::int64_t>(rows.size());
    std::array<std::vector<float>, 2> values;
    for (const VariableId id : ids) {
      Update update{id, rule, 0.5f, Tensor::of<std::int64_t>({count}, rows),
                    tensor({count, 4}, std::vector<float>(rows.size() * 4, 0.25f))};
      store.push({}, {&update, 1});
      std::vector<std::int64_t> every(500);
      std::iota(every.begin(), every.end(), 0);
      Read read{id, Tensor::of<std::int64_t>({500}, every), {}};
      store.pull({}, {&read, 1});
      values[id] = floats_in(read.value);
    }
    EXPECT_EQ(values[0], values[1]);
  }
  EXPECT_LT(store.block(ids[1]).rows, 150);
}

TEST(HashedVariable, IsUsedByRows) {
  LocalRuntime runtime;
  VariableSpec spec = spec_of("w", {std::int64_t{1} << 40, 4}, Initializer::uniform(-1, 1));
  spec.hashed = true;
  Variable w = runtime.create_variable(spec);
  EXPECT_THAT([&] { w.read(); }, ThrowsMessage<InvalidArgumentError>(
                                     AllOf(HasSubstr("\"w\""), HasSubstr("gather the rows"))));
  const Array far(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{std::int64_t{1} << 39}));
  const std::vector<float> before = floats_in(w.gather(far).eval());
  w.scatter_add(far, Array(tensor({1, 4}, {1, 1, 1, 1})));
  EXPECT_FLOAT_EQ(floats_in(w.gather(far).eval())[2], before[2] + 1);
}

TEST(HashedVariable, HasRowsAndAnInitializerThatMakesThem) {
  VariableSpec flat = spec_of("w", {10}, Initializer::zeros()),
               given = spec_of("w", {2, 2}, Initializer::from(tensor({2, 2}, {1, 2, 3, 4})));
  flat.hashed = given.hashed = true;
  EXPECT_THAT([&] { verify_spec(flat); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[rows, 1]")));
  EXPECT_THAT([&] { verify_spec(given); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("give it an initializer")));
}

TEST(InitialValues, DependOnNameAndOnBothSeeds) {
  VariableSpec w = spec_of("w", {4}, Initializer::uniform(0, 1)), other_name = w, other_seed = w;
  other_name.name = "v";
  other_seed.initializer.seed = 1;
  auto values = initial(w, 5, 0, 4);
  EXPECT_NE(values, initial(other_name, 5, 0, 4));
  EXPECT_NE(values, initial(other_seed, 5, 0, 4));
  EXPECT_NE(values, initial(w, 6, 0, 4));
}

TEST(InitialValues, LeaveTheGapsBetweenStridedRowsAlone) {
  std::vector<float> out(6, -1);
  initialize_rows(spec_of("w", {2, 2}, Initializer::constant(3)), 0, 0, 2, 3,
                  reinterpret_cast<std::byte*>(out.data()));
  EXPECT_THAT(out, ElementsAre(3, 3, -1, 3, 3, -1));
}

struct Moments {
  double mean, deviation, largest;
};
Moments moments(const Initializer& from) {
  std::vector<float> values = initial(spec_of("w", {1000, 100}, from), 1, 0, 1000);
  double sum = 0, squares = 0, largest = 0;
  for (double v : values) sum += v, squares += v * v, largest = std::max(largest, std::abs(v));
  double n = static_cast<double>(values.size()), mean = sum / n;
  return {mean, std::sqrt(squares / n - mean * mean), largest};
}

TEST(InitialValues, HaveTheMomentsOfTheirDistribution) {  // 100,000 draws: five standard errors
  Moments uniform = moments(Initializer::uniform(-1, 1)),
          normal = moments(Initializer::normal(0.5f, 2)),
          truncated = moments(Initializer::truncated_normal(0, 1));
  EXPECT_NEAR(uniform.mean, 0, 0.01);
  EXPECT_NEAR(uniform.deviation, 1 / std::sqrt(3.0), 0.01);
  EXPECT_LE(uniform.largest, 1);
  EXPECT_NEAR(normal.mean, 0.5, 0.03);
  EXPECT_NEAR(normal.deviation, 2, 0.03);
  EXPECT_NEAR(truncated.deviation, 0.8796, 0.01);  // of a normal cut at two deviations
  EXPECT_LE(truncated.largest, 2);
}

TEST(InitialValues, ThatDoNotFitTheTypeAreRefusedByName) {
  EXPECT_THAT(
      message_of([] { verify_spec(spec_of("n", {2}, Initializer::uniform(0, 1), DType::kInt64)); }),
      HasSubstr("\"n\""));
  EXPECT_THAT(message_of([] {
                verify_spec(spec_of("w", {2}, Initializer::from(tensor({3}, {1, 2, 3}))));
              }),
              HasSubstr("float32[3]"));
  EXPECT_THAT(
      message_of([] { verify_spec(spec_of("w", {Shape::kUnknown}, Initializer::zeros())); }),
      HasSubstr("not known"));
  EXPECT_THAT(message_of([] { verify_spec(spec_of("", {2}, Initializer::zeros())); }),
              HasSubstr("no name"));
  EXPECT_THAT(message_of([] { verify_spec(spec_of("w", {2}, Initializer::uniform(1, 0))); }),
              HasSubstr("bounds"));
}

void push_one(LocalStore& store, Update update) { store.push({}, {&update, 1}); }

Tensor pull_one(LocalStore& store, VariableId id, Tensor ids = {}) {
  Read read{id, std::move(ids), {}};
  store.pull({}, {&read, 1});
  return read.value;
}

VariableId create(LocalStore& store, const VariableSpec& spec) {
  return store.create(std::make_shared<const VariableSpec>(spec));
}

TEST(LocalStore, HandsOutRowsInTheOrderOfTheirIds) {
  LocalStore store;
  VariableId w =
      create(store, spec_of("w", {3, 2}, Initializer::from(tensor({3, 2}, {0, 1, 2, 3, 4, 5}))));
  EXPECT_THAT(floats_in(pull_one(store, w, ids_of({0, 2}))), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(floats_in(pull_one(store, w)), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(message_of([&] { pull_one(store, w, ids_of({3})); }),
              AllOf(HasSubstr("3"), HasSubstr("\"w\"")));
  EXPECT_THROW(pull_one(store, 7), InvalidArgumentError);
}

// Both memory layouts: slots in planes for few rows, beside the row for many.
TEST(LocalStore, AddingSlotsKeepsTheValuesAndUpdatesReachRowsAndSlots) {
  UpdateRule adagrad{RuleKind::kAdagrad, {0.1f, 0}};
  for (std::int64_t rows : {std::int64_t{3}, std::int64_t{1} << 15}) {
    LocalStore store(4);
    VariableId w = create(store, spec_of("w", {rows, 2}, Initializer::uniform(0, 1)));
    std::vector<float> before = floats_in(pull_one(store, w));
    store.add_slots(w, adagrad);
    store.add_slots(w, adagrad);
    EXPECT_EQ(floats_in(pull_one(store, w)), before);

    push_one(store, {w, adagrad, 0.5f, ids_of({rows - 1}), tensor({1, 2}, {1, -2})});

    std::vector<float> after = floats_in(pull_one(store, w));
    std::size_t last = before.size() - 2;
    EXPECT_FLOAT_EQ(after[last], before[last] - 0.5f / std::sqrt(1.1f));
    EXPECT_FLOAT_EQ(after[last + 1], before[last + 1] + 1.0f / std::sqrt(4.1f));
    after.resize(last);
    before.resize(last);
    EXPECT_EQ(after, before);
    EXPECT_EQ(store.updates(w), 1);
  }
}

TEST(LocalStore, RefusesWhatDoesNotFitBeforeAnythingIsApplied) {
  LocalStore store;
  VariableId w = create(store, spec_of("w", {2}, Initializer::zeros()));
  Update good{w, {RuleKind::kAssignAdd, {}}, 0, {}, tensor({2}, {1, 1})};
  Update bad{w, {RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}}, 0.1f, {}, tensor({2}, {1, 1})};
  Update both[] = {good, bad};
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { store.push({}, both); }),
              AllOf(HasSubstr("\"w\""), HasSubstr("add_slots")));
  EXPECT_THAT(floats_in(pull_one(store, w)), Each(0));

  good.value = tensor({3}, {1, 1, 1});
  EXPECT_THROW(push_one(store, good), InvalidArgumentError);
}

TEST(LocalStore, AVariableHasTheSlotsOfOneRule) {
  LocalStore store;
  VariableId w = create(store, spec_of("w", {2}, Initializer::zeros()));
  store.add_slots(w, {RuleKind::kAdagrad, {0.1f, 0}});
  EXPECT_THAT(message_of([&] {
                store.add_slots(w, {RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}});
              }),
              AllOf(HasSubstr("adagrad"), HasSubstr("adam")));
}

TEST(Eager, ExpressionsOfConstantsAreComputed) {
  Array x = tensor({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(floats_in((matmul(x, x) + 1.0f).eval()), ElementsAre(8, 11, 16, 23));
}

TEST(Eager, UpdatesHappenAtOnceAndReadsSeeThem) {
  LocalRuntime runtime;
  Variable v = runtime.create_variable(spec_of("v", {3, 2}, Initializer::zeros()));
  Array before = v.read();
  v.assign_add(tensor({3, 2}, {1, 2, 3, 4, 5, 6}));
  v.scatter_add(ids_of({0, 2, 0}), tensor({3, 2}, {10, 10, 20, 20, 30, 30}));
  v.scatter_update(ids_of({1, 1}), tensor({2, 2}, {7, 7, 8, 9}));
  EXPECT_THAT(floats_in(before.eval()), Each(0));
  EXPECT_THAT(floats_in(v.read().eval()), ElementsAre(41, 42, 8, 9, 25, 26));
  EXPECT_THAT(floats_in((v.gather(ids_of({2, 0})) * 2.0f).eval()), ElementsAre(50, 52, 82, 84));
}

TEST(Eager, AGradientReachesTheVariableThatWasRead) {
  LocalRuntime runtime;
  Variable v = runtime.create_variable(spec_of("v", {2}, Initializer::constant(3)));
  UpdateRule sgd{RuleKind::kSgd, {}};
  runtime.add_slots(v, sgd);
  auto gradients = variable_gradients(reduce_sum(square(v.read())));
  ASSERT_EQ(gradients.size(), 1u);
  gradients[0].variable.update(sgd, gradients[0].dense, 0.1f);
  EXPECT_THAT(floats_in(v.read().eval()), Each(::testing::FloatEq(3 - 0.6f)));
}

TEST(Eager, AnErrorWhenRunNamesTheVariable) {
  LocalRuntime runtime;
  Variable v = runtime.create_variable(spec_of("v", {2}, Initializer::zeros()));
  EXPECT_THAT(message_of([&] { v.gather(ids_of({5})); }), AllOf(HasSubstr("5"), HasSubstr("v")));
}

TEST(LocalRuntime, ASecondVariableOfANameGetsANumber) {
  LocalRuntime runtime;
  Scope scope(runtime);
  auto named = [](const char* name) {
    return current_variable_creator()
        .create_variable(spec_of(name, {1}, Initializer::zeros()))
        .name();
  };
  EXPECT_EQ(named("w"), "w");
  EXPECT_EQ(named("w"), "w_1");
  EXPECT_EQ(named("w"), "w_2");
}

TEST(LocalRuntime, AnotherStrategysVariableIsRefused) {
  LocalRuntime mine, other;
  mine.create_variable(spec_of("w", {1}, Initializer::zeros()));
  Variable foreign = other.create_variable(spec_of("w", {1}, Initializer::zeros()));
  auto traced = trace_function({}, [&](const auto&) { return foreign.read(); });
  EXPECT_THROW(mine.bind(traced), FailedPreconditionError);
}

TEST(Scopes, NestAndCloseInOrder) {
  LocalRuntime outer, inner;
  VariableCreator* nothing = &current_variable_creator();
  {
    Scope first(outer);
    {
      Scope second(inner);
      EXPECT_EQ(&current_variable_creator(), &inner);
    }
    EXPECT_EQ(&current_variable_creator(), &outer);
  }
  EXPECT_EQ(&current_variable_creator(), nothing);
}

}  // namespace
}  // namespace cairn
