#include "core/exec/step.h"

#include <gmock/gmock.h>

#include <limits>

#include "core/exec/bound_plan.h"
#include "core/graph/op_def.h"
#include "core/rows/local_store.h"
#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> floats_of(const Tensor& t) {
  return {t.values<float>().begin(), t.values<float>().end()};
}
std::vector<std::int64_t> longs_of(const Tensor& t) {
  return {t.values<std::int64_t>().begin(), t.values<std::int64_t>().end()};
}

// Notes what it is asked for, and hands it to a LocalStore.
class RecordingStore final : public VariableStore {
 public:
  struct Call {
    std::string kind;
    std::vector<Read> reads;
    std::vector<Update> updates;  // values copied
    std::uint32_t push_number = 0;
  };

  void pull(const StepContext& step, std::span<Read> reads) override {
    calls.push_back({"pull", {reads.begin(), reads.end()}, {}, 0});
    local.pull(step, reads);
  }
  void push(const StepContext& step, std::span<Update> updates) override {
    Call call{"push", {}, {updates.begin(), updates.end()}, step.push_number};
    pushed_from = updates.front().value.raw();
    for (Update& update : call.updates) {
      update.value = update.value.clone();
      if (update.ids.defined()) update.ids = update.ids.clone();
    }
    calls.push_back(std::move(call));
    local.push(step, updates);
  }
  std::shared_ptr<std::byte> update_place(VariableId variable, std::size_t bytes) override {
    if (variable != placed_variable) return nullptr;
    EXPECT_EQ(bytes, place.size());
    return {std::shared_ptr<void>(), place.data()};
  }
  std::vector<std::string> kinds() const {
    std::vector<std::string> all;
    for (const auto& call : calls) all.push_back(call.kind);
    return all;
  }

  LocalStore local;
  std::vector<std::byte> place;  // for the update of this one
  VariableId placed_variable = ~VariableId{0};
  const std::byte* pushed_from = nullptr;
  std::vector<Call> calls;
};

// A store with variables, and runs of functions against it.
class Executor : public ::testing::Test {
 protected:
  Variable variable(const std::string& name, const Tensor& value,
                    std::vector<UpdateRule> rules = {}) {
    auto spec = std::make_shared<VariableSpec>();
    spec->name = name;
    spec->dtype = value.dtype();
    spec->shape = value.shape();
    spec->initializer = Initializer::from(value);
    VariableId id = store.local.create(spec);
    for (const auto& rule : rules) store.local.add_slots(id, rule);
    return Variable(spec);
  }

  std::shared_ptr<const Plan> plan(const ConcreteFunction& function) {
    std::vector<VariableId> bound;
    for (const auto& spec : function.variables)
      for (VariableId id = 0; id < store.local.size(); ++id)
        if (&store.local.spec(id) == spec.get()) bound.push_back(id);
    return make_plan(function.graph, bound);
  }

  template <typename F>
  std::vector<Tensor> run_function(const std::vector<SignatureEntry>& signature,
                                   std::vector<Tensor> arguments, F body) {
    return run(plan(trace_function(signature, body)), workspace, store, context,
               std::move(arguments), {});
  }

  RecordingStore store;
  Workspace workspace;
  StepContext context{.global_step = 12};
};

const UpdateRule kSgd{RuleKind::kSgd, {}};

TEST_F(Executor, AStepIsOnePullOfEverythingAndOnePush) {
  Variable a = variable("a", tensor({3, 1}, {1, 2, 3}), {kSgd}),
           b = variable("b", tensor({2, 1}, {5, 7}), {kSgd}),
           w = variable("w", tensor({1, 1}, {2}), {kSgd});
  auto out = run_function({ints({kAny})}, {ids_of({2, 0, 2})}, [&](const auto& in) {
    Array loss =
        sum(matmul(a.gather(arg(in, 0)), w.read())) + sum(b.gather(arg(in, 0) - arg(in, 0)));
    for (const auto& gradient : variable_gradients(loss)) {
      if (gradient.is_sparse())
        gradient.variable.update(kSgd, gradient.sparse, 0.5f);
      else
        gradient.variable.update(kSgd, gradient.dense, 0.5f);
    }
    return loss;
  });
  EXPECT_EQ(out[0].item<float>(), 2 * (3 + 1 + 3) + 15);
  ASSERT_THAT(store.kinds(), ElementsAre("pull", "push"));
  EXPECT_EQ(store.calls[0].reads.size(), 3u);
  EXPECT_EQ(store.calls[1].updates.size(), 3u);
}

TEST_F(Executor, IdsArePulledOnceAscendingAndGradientsOfEqualIdsAreSummed) {
  Variable table = variable("table", tensor({4, 2}, {0, 1, 10, 11, 20, 21, 30, 31}), {kSgd});
  Tensor ids = Tensor::of<std::int32_t>({2, 2}, std::vector<std::int32_t>{3, 1, 3, 3});
  auto out = run_function({TensorType{DType::kInt32, {kAny, 2}}}, {ids}, [&](const auto& in) {
    Array rows = table.gather(arg(in, 0));
    Array weights = Array(tensor({2, 2, 1}, {1, 2, 3, 4}));
    Array loss = sum(rows * weights);
    table.update(kSgd, variable_gradients(loss)[0].sparse, 1.0f);
    return rows;
  });
  EXPECT_EQ(out[0].shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(floats_of(out[0]), (std::vector<float>{30, 31, 10, 11, 30, 31, 30, 31}));
  ASSERT_THAT(store.kinds(), ElementsAre("pull", "push"));
  EXPECT_THAT(longs_of(store.calls[1].updates[0].ids), ElementsAre(1, 3));
  EXPECT_THAT(floats_of(store.calls[1].updates[0].value), ElementsAre(2, 2, 8, 8));
  EXPECT_EQ(store.calls[1].updates[0].learning_rate, 1.0f);
}

TEST_F(Executor, ADenseGradientIsComputedWhereTheStoreWantsIt) {
  Variable w = variable("w", tensor({2, 2}, {1, 2, 3, 4}), {kSgd});
  store.place.resize(4 * sizeof(float));
  store.placed_variable = 0;
  for (int step = 0; step < 2; ++step) {
    run_function({}, {}, [&](const auto&) {
      Array loss = sum(w.read() * w.read());
      w.update(kSgd, variable_gradients(loss)[0].dense, 0.25f);
      return loss;
    });
    EXPECT_EQ(store.pushed_from, store.place.data());
  }
  EXPECT_THAT(floats_of(store.calls[1].updates[0].value), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(floats_of(store.calls[3].updates[0].value), ElementsAre(1, 2, 3, 4));
}

TEST_F(Executor, GradientsOfRowsAreSummedWhereTheStoreWantsThem) {
  Variable table = variable("table", tensor({5, 1}, {0, 1, 2, 3, 4}), {kSgd});
  store.place.resize(3 * sizeof(float), std::byte{0x7f});  // of the distinct rows
  store.placed_variable = 0;
  run_function({ints({kAny})}, {ids_of({4, 0, 4, 2})}, [&](const auto& in) {
    Array loss = sum(table.gather(arg(in, 0)));
    table.update(kSgd, variable_gradients(loss)[0].sparse, 1.0f);
    return loss;
  });
  EXPECT_EQ(store.pushed_from, store.place.data());
  EXPECT_THAT(floats_of(store.calls[1].updates[0].value), ElementsAre(1, 1, 2));
}

TEST_F(Executor, GathersOfOneVariableShareOneRead) {
  Variable table = variable("table", tensor({5, 1}, {0, 1, 2, 3, 4}), {kSgd});
  auto out = run_function({ints({kAny}), ints({kAny})}, {ids_of({4, 0}), ids_of({2, 4})},
                          [&](const auto& in) {
                            Array x = table.gather(arg(in, 0)), y = table.gather(arg(in, 1));
                            Array loss = sum(x) + 10.0f * sum(y);
                            table.update(kSgd, variable_gradients(loss)[0].sparse, 1.0f);
                            return std::vector<Array>{x, y};
                          });
  EXPECT_THAT(floats_of(out[0]), ElementsAre(4, 0));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(2, 4));
  ASSERT_EQ(store.calls[0].reads.size(), 1u);
  EXPECT_THAT(longs_of(store.calls[0].reads[0].ids), ElementsAre(0, 2, 4));
  EXPECT_THAT(longs_of(store.calls[1].updates[0].ids), ElementsAre(0, 2, 4));
  EXPECT_THAT(floats_of(store.calls[1].updates[0].value), ElementsAre(1, 10, 11));
}

TEST_F(Executor, AnUpdateOfSomeOfTheRowsReadNamesOnlyThose) {
  Variable table = variable("table", tensor({5, 1}, {0, 1, 2, 3, 4}));
  run_function({ints({kAny}), ints({kAny})}, {ids_of({4, 0}), ids_of({2})}, [&](const auto& in) {
    Array x = table.gather(arg(in, 0)), y = table.gather(arg(in, 1));
    table.scatter_add(arg(in, 1), y);
    return x;
  });
  EXPECT_THAT(longs_of(store.calls[1].updates[0].ids), ElementsAre(2));
}

TEST_F(Executor, AReadAfterAnUpdateSeesItAndEveryPushHasItsNumber) {
  Variable v = variable("v", tensor({2}, {1, 2}));
  auto out = run_function({}, {}, [&](const auto&) {
    Array before = v.read();
    v.assign_add(before);
    Array between = v.read();
    v.assign_add(Array(tensor({2}, {100, 100})));
    v.assign_sub(Array(tensor({2}, {1, 1})));
    return std::vector<Array>{before, between, v.read()};
  });
  EXPECT_THAT(floats_of(out[0]), ElementsAre(1, 2));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(2, 4));
  EXPECT_THAT(floats_of(out[2]), ElementsAre(101, 103));
  ASSERT_THAT(store.kinds(), ElementsAre("pull", "push", "pull", "push", "pull"));
  EXPECT_EQ(store.calls[1].push_number, 0u);
  EXPECT_EQ(store.calls[3].push_number, 1u);
  EXPECT_EQ(store.calls[3].updates.size(), 2u);
}

TEST_F(Executor, AReadBeforeAnUpdateDoesNotSeeIt) {
  Variable v = variable("v", tensor({2}, {1, 2})), ids = variable("ids", ids_of({1, 0}));
  auto out = run_function({}, {}, [&](const auto&) {
    Array rows = v.gather(ids.read());  // needs a pull of its own before it can be asked for
    v.assign(Array(tensor({2}, {7, 8})));
    return rows;
  });
  EXPECT_THAT(floats_of(out[0]), ElementsAre(2, 1));
  EXPECT_THAT(store.kinds(), ElementsAre("pull", "pull", "push"));
}

TEST_F(Executor, OfEqualIdsScatteredTheLastRowWins) {
  Variable v = variable("v", tensor({3, 1}, {0, 0, 0}));
  auto out = run_function({}, {}, [&](const auto&) {
    v.scatter_update(Array(ids_of({2, 0, 2})), Array(tensor({3, 1}, {5, 6, 7})));
    return v.read();
  });
  EXPECT_THAT(floats_of(out[0]), ElementsAre(6, 0, 7));
}

TEST_F(Executor, AnIdOutOfRangeNamesVariableIdAndBound) {
  Variable table = variable("table", tensor({4, 1}, {0, 1, 2, 3}));
  for (std::int64_t bad : {-1, 4})
    EXPECT_THAT(message_of([&] {
                  run_function({ints({kAny})}, {ids_of({0, bad})},
                               [&](const auto& in) { return table.gather(arg(in, 0)); });
                }),
                AllOf(HasSubstr("table"), HasSubstr(std::to_string(bad)), HasSubstr("[0, 4)")));
  EXPECT_TRUE(store.calls.empty());
}

TEST_F(Executor, AStepSaysWhatItNeedsAndGoesOnWhenItIsAskedAgain) {
  Variable v = variable("v", tensor({2}, {1, 2}));
  auto made = plan(trace_function({}, [&](const auto&) {
    Array value = v.read();
    v.assign_add(value);
    return value;
  }));
  Step step(made, workspace, store, context, {});
  const Step::Next first = step.next();
  ASSERT_TRUE(std::holds_alternative<Step::Pull>(first));
  store.pull(context, std::get<Step::Pull>(first).reads);
  const Step::Next second = step.next();
  ASSERT_TRUE(std::holds_alternative<Step::Push>(second));
  EXPECT_THAT(floats_of(std::get<Step::Push>(second).updates[0].value), ElementsAre(1, 2));
  store.push(context, std::get<Step::Push>(second).updates);
  EXPECT_TRUE(std::holds_alternative<Step::Finished>(step.next()));
  EXPECT_THAT(floats_of(step.outputs()[0]), ElementsAre(1, 2));
  EXPECT_THROW(step.next(), InternalError);
}

TEST_F(Executor, AStepThatIsGivenUpLeavesItsWorkspaceToOthers) {
  Variable v = variable("v", tensor({2}, {1, 2}));
  auto made = plan(trace_function({}, [&](const auto&) { return v.read(); }));
  {
    Step step(made, workspace, store, context, {});
    step.next();
  }
  EXPECT_THAT(floats_of(run(made, workspace, store, context, {}, {})[0]), ElementsAre(1, 2));
}

TEST_F(Executor, ManyWavesDoNotDeepenTheStack) {
  Variable v = variable("v", tensor({1}, {0}));
  auto out = run_function({}, {}, [&](const auto&) {
    for (int i = 0; i < 3000; ++i) v.assign(v.read() + 1.0f);
    return v.read();
  });
  EXPECT_EQ(out[0].values<float>()[0], 3000);
}

TEST_F(Executor, AnErrorOfTheStoreEndsTheRunAndTheWorkspaceServesAgain) {
  struct Broken final : VariableStore {
    void pull(const StepContext&, std::span<Read>) override {
      throw UnavailableError("ps 1 is away");
    }
    void push(const StepContext&, std::span<Update>) override {
      FAIL() << "pushed after a failed pull";
    }
  } broken;
  Variable v = variable("v", tensor({1}, {3}));
  auto made = plan(trace_function({}, [&](const auto&) {
    v.assign_add(v.read());
    return v.read();
  }));
  EXPECT_THROW(run(made, workspace, broken, context, {}, {}), UnavailableError);
  EXPECT_EQ(run(made, workspace, store, context, {}, {})[0].values<float>()[0], 6);
}

// The push may still be on its way when it is known to have failed.
TEST_F(Executor, WhatAFailedPushWasToSendIsNotOverwritten) {
  struct Failing final : VariableStore {
    void pull(const StepContext&, std::span<Read>) override {}
    void push(const StepContext&, std::span<Update> updates) override {
      sending.push_back(updates.front().value);
      throw UnavailableError("ps 1 is away");
    }
    std::vector<Tensor> sending;
  } failing;
  Variable v = variable("v", tensor({2}, {0, 0}), {kSgd});
  auto made = plan(trace_function({floats({2})}, [&](const auto& in) {
    v.update(kSgd, arg(in, 0) * 2.0f, 0.1f);
    return std::vector<Array>{};
  }));
  for (float x : {1.0f, 5.0f})
    EXPECT_THROW(run(made, workspace, failing, context, {tensor({2}, {x, x})}, {}),
                 UnavailableError);
  EXPECT_THAT(floats_of(failing.sending[0]), ElementsAre(2, 2));
  EXPECT_THAT(floats_of(failing.sending[1]), ElementsAre(10, 10));
}

TEST_F(Executor, AFailedCheckNamesTheStepAndTheVariableAndPushesNothing) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  Variable good = variable("good", tensor({2}, {1, 2}), {kSgd}),
           bad = variable("bad", tensor({2}, {1, nan}), {kSgd});
  auto message = message_of([&] {
    run_function({}, {}, [&](const auto&) {
      Array loss = check_numerics(sum(good.read() * bad.read()), "the loss");
      for (const auto& gradient : variable_gradients(loss))
        gradient.variable.update(kSgd, gradient.dense, 0.1f);
      return loss;
    });
  });
  EXPECT_THAT(message,
              AllOf(HasSubstr("the loss is nan"), HasSubstr("step 12"), HasSubstr("\"bad\"")));
  EXPECT_THAT(store.kinds(), ElementsAre("pull"));
}

TEST_F(Executor, AFailedCheckNamesTheUpdateThatIsNotFiniteWhereTheVariablesAre) {
  Variable w = variable("w", tensor({1}, {0}), {kSgd});
  auto message = message_of([&] {
    run_function({}, {}, [&](const auto&) {
      Array loss = check_numerics(sum(log(w.read())), "the loss");
      w.update(kSgd, variable_gradients(loss)[0].dense, 0.1f);
      return loss;
    });
  });
  EXPECT_THAT(message, AllOf(HasSubstr("the loss"), HasSubstr("update"), HasSubstr("\"w\"")));
}

TEST_F(Executor, ShapesThatDoNotFitInARunNameOperationNodeAndShapes) {
  auto message = message_of([&] {
    run_function({floats({kAny}), floats({kAny})}, {tensor({2}, {1, 2}), tensor({3}, {1, 2, 3})},
                 [&](const auto& in) { return arg(in, 0) + arg(in, 1); });
  });
  EXPECT_THAT(message, AllOf(HasSubstr("add"), HasSubstr("node"), HasSubstr("float32[2]"),
                             HasSubstr("float32[3]")));
  message = message_of([&] {
    run_function({floats({kAny, 2}), ints({kAny})}, {tensor({1, 2}, {1, 2}), ids_of({1})},
                 [&](const auto& in) { return gather(arg(in, 0), arg(in, 1)); });
  });
  EXPECT_THAT(message, AllOf(HasSubstr("gather"), HasSubstr("node"), HasSubstr("float32[1, 2]"),
                             HasSubstr("id 1")));
}

TEST_F(Executor, ArgumentsAndElementsThatDoNotFitTheSignatureAreRefused) {
  auto made = plan(trace_function({floats({kAny, 2})}, [&](const auto& in) { return arg(in, 0); }));
  EXPECT_THAT(
      message_of([&] {
        run(made, workspace, store, context, {tensor({2, 3}, {1, 2, 3, 4, 5, 6})}, {});
      }),
      AllOf(HasSubstr("argument 0"), HasSubstr("float32[2, 3]"), HasSubstr("float32[?, 2]")));
  EXPECT_THROW(run(made, workspace, store, context, {}, {}), InvalidArgumentError);
}

TEST_F(Executor, OutputsStayAsTheyAreWhenTheWorkspaceIsUsedAgain) {
  auto made = plan(trace_function({floats({kAny})}, [&](const auto& in) {
    return std::vector<Array>{arg(in, 0) * 2.0f, arg(in, 0)};
  }));
  auto first = run(made, workspace, store, context, {tensor({2}, {1, 2})}, {});
  run(made, workspace, store, context, {tensor({2}, {8, 9})}, {});
  EXPECT_THAT(floats_of(first[0]), ElementsAre(2, 4));
  EXPECT_THAT(floats_of(first[1]), ElementsAre(1, 2));
}

TEST_F(Executor, ShapesMayChangeFromRunToRun) {
  auto made = plan(trace_function({floats({kAny, 3})}, [&](const auto& in) {
    return softmax(relu(arg(in, 0)) * arg(in, 0) + 1.0f);
  }));
  for (std::int64_t rows : {1, 700, 0, 33, 700}) {
    Tensor x(DType::kFloat32, {rows, 3});
    auto values = x.mutable_values<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 5) - 2;
    Tensor out = run(made, workspace, store, context, {x}, {})[0];
    ASSERT_EQ(out.shape(), (Shape{rows, 3}));
    for (std::int64_t r = 0; r < rows; ++r) {
      auto row = out.rows(r, r + 1).values<float>();
      EXPECT_NEAR(row[0] + row[1] + row[2], 1, 1e-5);
    }
  }
}

TEST_F(Executor, EqualRunsGiveEqualBits) {
  auto made = plan(trace_function({floats({kAny, 37})}, [&](const auto& in) {
    return std::vector<Array>{reduce_sum(tanh(arg(in, 0)) * exp(arg(in, 0)), {0}),
                              matmul(arg(in, 0), arg(in, 0), true, false)};
  }));
  Tensor x(DType::kFloat32, {129, 37});
  auto values = x.mutable_values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  auto once = run(made, workspace, store, context, {x}, {});
  Workspace other;
  auto again = run(made, other, store, context, {x}, {});
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(floats_of(once[i]), floats_of(again[i]));
}

TEST(ExecutorLimits, ARunThatNeedsMoreMemoryThanItsPlanAllowsIsRefused) {
  auto traced = trace_function({floats({kAny, 100})}, [](const auto& in) {
    return sum(matmul(std::get<Array>(in[0]), std::get<Array>(in[0]), false, true));
  });
  const auto plan = make_plan(traced.graph, {}, {.bytes_max = 64 << 10});
  Workspace workspace;
  LocalStore store;
  run(plan, workspace, store, {}, {Tensor::zeros(DType::kFloat32, {10, 100})}, {});
  try {
    run(plan, workspace, store, {}, {Tensor::zeros(DType::kFloat32, {1000, 100})}, {});
    ADD_FAILURE() << "4 MB were taken";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("65536"), HasSubstr("smaller batches")));
  }
}

TEST(PlacedIntervals, ThatMeetInTimeAreApartInSpace) {
  std::vector<Interval> all;
  for (int i = 0; i < 200; ++i)
    all.push_back({i % 23, i % 23 + i % 7, static_cast<std::size_t>(i * 37 % 500), 0});
  std::size_t total = place_intervals(all), sum = 0;
  for (std::size_t a = 0; a < all.size(); ++a) {
    EXPECT_EQ(all[a].offset % 64, 0);
    EXPECT_LE(static_cast<std::size_t>(all[a].offset) + all[a].bytes, total);
    sum += all[a].bytes;
    for (std::size_t b = 0; b < a; ++b) {
      bool meet = all[a].first <= all[b].last && all[b].first <= all[a].last;
      bool overlap = all[a].offset < all[b].offset + static_cast<std::int64_t>(all[b].bytes) &&
                     all[b].offset < all[a].offset + static_cast<std::int64_t>(all[a].bytes);
      EXPECT_FALSE(meet && overlap) << a << " and " << b;
    }
  }
  EXPECT_LT(total, sum);  // places are used again
}

}  // namespace
}  // namespace cairn
