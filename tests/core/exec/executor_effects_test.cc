// The reads and updates of a step: which, in which order, and in how few calls.
#include <gmock/gmock.h>

#include "tests/core/executor_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST_F(Executor, AnUpdateBeforeAReadOfTheSameIdsFindsItsOwn) {
  Variable table = variable("table", tensor({3, 1}, {1, 2, 3}));
  for (std::int64_t id : {2, 0}) {
    auto out = run_function({ints({kAny})}, {ids_of({id})}, [&](const auto& in) {
      table.scatter_add(arg(in, 0), tensor({1, 1}, {10}));
      return table.gather(arg(in, 0));
    });
    EXPECT_EQ(out[0].item<float>(), static_cast<float>(id) + 11);
  }
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

}  // namespace
}  // namespace cairn
