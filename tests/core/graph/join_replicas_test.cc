// The functions of several replicas as one: what their meetings become, and what is done once.
#include "core/graph/join_replicas.h"

#include "core/graph/ops_random.h"
#include "tests/core/executor_testing.h"
#include "tests/core/sharing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Joined : public Executor {
 protected:
  // A function of each of two replicas, by `body(replica, arguments)`, of one argument each.
  template <typename F>
  ConcreteFunction joined(const SignatureEntry& type, F body,
                          JoinedOutputs outputs = JoinedOutputs::kOfAll) {
    std::vector<ReplicaPart> parts;
    for (std::size_t replica = 0; replica < 2; ++replica)
      parts.push_back(
          {std::make_shared<const ConcreteFunction>(trace_function(
               {type},
               [&](const auto& in) { return body(static_cast<int>(replica), arg(in, 0)); })),
           {replica}});
    return join_replicas(parts, outputs);
  }
  std::vector<Tensor> run_joined(const ConcreteFunction& function, const Tensor& of_first,
                                 const Tensor& of_second) {
    return run(plan(function), workspace, store, context, {of_first, of_second}, {});
  }
};

TEST_F(Joined, AnAllReduceIsTheSumOrTheMeanOfWhatTheReplicasHave) {
  const ConcreteFunction function = joined(floats({2}), [](int, const Array& x) {
    return std::vector<Array>{all_reduce(ReduceOp::kSum, x), all_reduce(ReduceOp::kMean, x), x};
  });
  EXPECT_EQ(function.replicas, 2);
  EXPECT_EQ(count_ops(function.graph, "all_reduce"), 0);
  const auto out = run_joined(function, tensor({2}, {1, 2}), tensor({2}, {5, 8}));
  ASSERT_EQ(out.size(), 6u);
  for (std::size_t replica : {0, 3}) {
    EXPECT_THAT(floats_of(out[replica]), ElementsAre(6, 10));
    EXPECT_THAT(floats_of(out[replica + 1]), ElementsAre(3, 5));
  }
  EXPECT_THAT(floats_of(out[2]), ElementsAre(1, 2));
  EXPECT_THAT(floats_of(out[5]), ElementsAre(5, 8));
}

TEST_F(Joined, AVariableIsReadOnceAndWhatIsAlikeIsComputedOnce) {
  Variable w = variable("w", tensor({2}, {1, 2}));
  const ConcreteFunction function = joined(floats({2}), [&](int, const Array& x) {
    return all_reduce(ReduceOp::kSum, x * square(w.read())) + exp(w.read());
  });
  EXPECT_EQ(count_ops(function.graph, "read_variable"), 1);
  EXPECT_EQ(count_ops(function.graph, "square"), 1);
  EXPECT_EQ(count_ops(function.graph, "exp"), 1);
}

TEST_F(Joined, SharesBecomeOneUpdateByTheAggregation) {
  for (const auto& [shares, dense, rows] :
       {std::tuple{Aggregation::kSum, std::vector<float>{4, 8}, std::vector<float>{0, 4.5, 3, 0}},
        std::tuple{Aggregation::kMean, std::vector<float>{2, 4},
                   std::vector<float>{0, 2.25, 1.5, 0}},
        std::tuple{Aggregation::kOnlyFirstReplica, std::vector<float>{1, 2},
                   std::vector<float>{0, 3, 0, 0}}}) {
    SCOPED_TRACE(aggregation_name(shares));
    Sharing runtime(shares);
    const Variable v(variable("v", tensor({2}, {0, 0})).shared_spec(), &runtime);
    const Variable table(variable("table", tensor({4, 1}, {0, 0, 0, 0})).shared_spec(), &runtime);
    // The second replica's ids are its own; each has an id twice.
    const ConcreteFunction function = joined(floats({2}), [&](int replica, const Array& x) {
      v.assign_add(x);
      const Array ids = Tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{1, 1 + replica});
      table.scatter_add(ids, reshape(x, {2, 1}) * (replica == 0 ? Array(1.0f) : Array(0.5f)));
      return std::vector<Array>{};
    });
    EXPECT_EQ(count_ops(function.graph, "update_variable"), 2);
    store.calls.clear();
    run_joined(function, tensor({2}, {1, 2}), tensor({2}, {3, 6}));
    ASSERT_THAT(store.kinds(), ElementsAre("push"));
    EXPECT_EQ(floats_of(store.calls[0].updates[0].value), dense);
    std::vector<float> got(4, 0);
    const Update& sparse = store.calls[0].updates[1];
    const auto ids = longs_of(sparse.ids);
    for (std::size_t i = 0; i < ids.size(); ++i)
      got[static_cast<std::size_t>(ids[i])] = floats_of(sparse.value)[i];
    EXPECT_EQ(got, rows);
  }
}

TEST_F(Joined, AnUpdateWithoutSharesIsTheFirstReplicas) {
  Variable v = variable("v", tensor({}, {0}));
  const ConcreteFunction function = joined(floats({}), [&](int, const Array& x) {
    v.assign_add(x);
    return v.read();
  });
  run_joined(function, tensor({}, {3}), tensor({}, {5}));
  EXPECT_EQ(value_of(v), 3.0f);
}

TEST_F(Joined, ReplicasDrawNumbersOfTheirOwnAndThoseOfTheirNumberAmongOthers) {
  const auto draw = [](int, const Array&) { return random_uniform({1}, 0, 1); };
  const ConcreteFunction function = joined(floats({}), draw);
  auto drawn_as = [&](std::int32_t replica) {
    context.replica = replica;
    const auto out = run_joined(function, tensor({}, {0}), tensor({}, {0}));
    return std::vector<float>{out[0].item<float>(), out[1].item<float>()};
  };
  const auto first = drawn_as(0), second = drawn_as(1);
  EXPECT_NE(first[0], first[1]);
  const ConcreteFunction alone =
      trace_function({floats({})}, [&](const auto& in) { return draw(0, arg(in, 0)); });
  std::vector<float> each;
  for (std::int32_t replica = 0; replica < 4; ++replica) {
    context.replica = replica;
    each.push_back(
        run(plan(alone), workspace, store, context, {tensor({}, {0})}, {})[0].item<float>());
  }
  EXPECT_THAT(first, ElementsAre(each[0], each[1]));
  EXPECT_THAT(second, ElementsAre(each[2], each[3]));
}

// The second replica's number stops the update, though it takes the first one's rate alone.
TEST_F(Joined, ACheckThatFailsOnOneReplicaStopsTheUpdateOfAll) {
  Variable v = variable("v", tensor({}, {0}), {kSgd});
  const ConcreteFunction function = joined(floats({}), [&](int, const Array& x) {
    const Array rate = where(is_finite(check_numerics(x, "loss")), Array(0.5f), Array(0.0f));
    v.update(kSgd, Array(1.0f), rate);
    return x;
  });
  EXPECT_THROW(
      run_joined(function, tensor({}, {1}), tensor({}, {std::numeric_limits<float>::infinity()})),
      InvalidArgumentError);
  EXPECT_EQ(value_of(v), 0.0f);
  run_joined(function, tensor({}, {1}), tensor({}, {2}));
  EXPECT_EQ(value_of(v), -0.5f);
}

TEST_F(Joined, ReplicasThatPartAreRefused) {
  try {
    joined(floats({}), [&](int replica, const Array& x) {
      return replica == 0 ? x : all_reduce(ReduceOp::kSum, x);
    });
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("replica 0 has nothing more"),
                                    HasSubstr("replica 1 has all_reduce sum float32[]")));
  }
}

}  // namespace
}  // namespace cairn
