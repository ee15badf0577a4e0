// The step of DLRM on a device that has all its tables: of how many pieces of work it is made, and
// that it computes what the CPU does.
#include "tests/core/cuda/device_rows_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

struct DlrmSizes {
  std::int64_t batch = 6, tables = 3, rows = 9, dim = 8, numbers = 5, rows_of_first = 9;
  std::vector<std::int64_t> bottom = {16}, top = {24, 1};  // units, but for the bottom's last
};

class DlrmStep : public DeviceRowsTest {
 protected:
  struct Layer {
    Variable kernel, bias;
  };
  std::vector<Layer> layers(const std::string& name, const std::vector<std::int64_t>& units) {
    std::vector<Layer> made;
    for (std::size_t i = 0; i + 1 < units.size(); ++i) {
      const auto seed = 20 + 2 * i + units.size();
      made.push_back({variable(prefix_ + name + "k" + std::to_string(i),
                               noise({units[i], units[i + 1]}, seed), kSgd),
                      variable(prefix_ + name + "b" + std::to_string(i),
                               noise({units[i + 1]}, seed + 1), kSgd)});
    }
    return made;
  }
  static bool trains(const Variable& one) {
    return !one.name().ends_with("numbers") && !one.name().ends_with("label");
  }
  static Array through(Array h, const std::vector<Layer>& all, bool relu_last) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      h = matmul(h, all[i].kernel) + all[i].bias;
      if (relu_last || i + 1 < all.size()) h = relu(h);
    }
    return h;
  }
  // With variables of its own, in every call.
  ConcreteFunction trace_step(const DlrmSizes& s) {
    prefix_ += "again.";
    const Variable numbers = variable(prefix_ + "numbers", noise({s.batch, s.numbers}, 1), kSgd),
                   label = variable(prefix_ + "label", noise({s.batch, 1}, 2), kSgd);
    std::vector<Variable> tables, ids;
    for (std::int64_t t = 0; t < s.tables; ++t) {
      const std::string number = std::to_string(t);
      const std::int64_t rows = t == 0 ? s.rows_of_first : s.rows;
      tables.push_back(variable(prefix_ + "table" + number, noise({rows, s.dim}, 100 + t), kSgd));
      std::vector<std::int64_t> some;
      for (std::int64_t i = 0; i < s.batch; ++i) some.push_back((i * i + 3 * t) % s.rows);
      ids.push_back(variable(prefix_ + "ids" + number, ids_of(some), kSgd));
    }
    std::vector<std::int64_t> units = s.bottom;
    units.insert(units.begin(), s.numbers);
    units.push_back(s.dim);
    const auto bottom = layers("bottom", units);
    units = s.top;
    units.insert(units.begin(), (s.tables + 1) * s.tables / 2 + s.dim);
    const auto top = layers("top", units);
    return trace_function({}, [&](auto&) {
      const Array dense = through(numbers.read(), bottom, true);
      std::vector<Array> vectors = {dense};
      for (std::size_t t = 0; t < tables.size(); ++t)
        vectors.push_back(tables[t].gather(ids[t].read()));
      const Array crossed = dot_interaction(stack(vectors, 1));
      const Array logits = through(concat({dense, crossed}, 1), top, false);
      const Array loss = mean(sigmoid_cross_entropy_with_logits(label.read(), logits));
      for (const auto& gradient : variable_gradients(loss)) {
        if (!trains(gradient.variable)) continue;
        if (gradient.is_sparse())
          gradient.variable.update(kSgd, gradient.sparse, 0.1f);
        else
          gradient.variable.update(kSgd, gradient.dense, 0.1f);
      }
      return std::vector<Array>{};
    });
  }

 private:
  std::string prefix_;
};

// So often that the step is recorded and replayed.
constexpr int kSteps = 4;

TEST_F(DlrmStep, TrainsAsOnTheHost) {
  const auto plan = plan_of(trace_step({}));
  for (int i = 0; i < kSteps; ++i)
    for (Side* side : {&host, &device}) run(plan, side->workspace, side->store, {}, {}, {});
  EXPECT_EQ(driver.counts().replays, kSteps - 1);
  expect_equal_stores();
}

// What is learnt differs by a small part of itself.
TEST_F(DlrmStep, TrainsNearlyAsOnTheHostUnderMixedBfloat16) {
  PlanOptions options;
  options.products = Arithmetic::kMixedBfloat16;
  const auto plan = plan_of(trace_step({}), options);
  std::vector<Tensor> before;
  for (VariableId id = 0; id < variables.size(); ++id) before.push_back(read(host, id).clone());
  for (int i = 0; i < kSteps; ++i)
    for (Side* side : {&host, &device}) run(plan, side->workspace, side->store, {}, {}, {});
  for (VariableId id = 0; id < variables.size(); ++id) {
    if (variables[id].spec().dtype != DType::kFloat32) continue;
    const Tensor here = read(device, id), there = read(host, id);
    double learnt = 0, off = 0;
    for (std::size_t i = 0; i < here.values<float>().size(); ++i) {
      learnt += std::abs(there.values<float>()[i] - before[id].values<float>()[i]);
      off += std::abs(there.values<float>()[i] - here.values<float>()[i]);
    }
    EXPECT_LE(off, 0.05 * learnt) << variables[id].name();
  }
}

// A table for which the device has no room: its rows come from the host, and are copied into the
// stack.
TEST_F(DlrmStep, RowsOfATableOnTheHostComeIntoTheStackAsWell) {
  DlrmSizes sizes;
  sizes.rows_of_first = 100'000;
  for (Arithmetic arithmetic : {Arithmetic::kFloat32, Arithmetic::kMixedBfloat16}) {
    PlanOptions options;
    options.products = arithmetic;
    const auto plan = plan_of(trace_step(sizes), options);
    driver.limit(driver.used_bytes() + 2'000'000);
    for (int i = 0; i < kSteps; ++i)
      for (Side* side : {&host, &device}) run(plan, side->workspace, side->store, {}, {}, {});
    EXPECT_EQ(driver.counts().replays, 0);
    if (arithmetic == Arithmetic::kFloat32) expect_equal_stores();
  }
}

// The pieces of work of a step's operations, as a profiler sees them.
class DlrmPieces : public DlrmStep {
 protected:
  void step_under(Arithmetic arithmetic) {
    driver.attach_profiler();
    Side watched(*gpu);
    const ConcreteFunction step = trace_step({});
    for (const Variable& one : variables) watched.store.create(one.shared_spec());
    PlanOptions options;
    options.products = arithmetic;
    run(plan_of(step, options), watched.workspace, watched.store, {}, {}, {});
  }
};

TEST_F(DlrmPieces, AllTablesAreLookedUpInOneWhichWritesIntoTheStack) {
  for (Arithmetic arithmetic : {Arithmetic::kFloat32, Arithmetic::kMixedBfloat16}) {
    step_under(arithmetic);
    EXPECT_EQ(driver.pieces_of(">rows of 3 variables"), 1);
    EXPECT_EQ(driver.pieces_of(">rows of"), 1);
    EXPECT_EQ(driver.pieces_of(">stack("), 1);  // for the dense vector
    driver.forget_ranges();
  }
}

// The products of pairs are picked from the square of all, or spread over it, in the form in which
// a product reads them.
TEST_F(DlrmPieces, AnInteractionIsAProductAndAPassAndSoIsItsGradient) {
  step_under(Arithmetic::kMixedBfloat16);
  EXPECT_EQ(driver.pieces_of(">dot_interaction("), 2);
  EXPECT_EQ(driver.pieces_of(">dot_interaction_grad("), 2);
  EXPECT_THAT(driver.ranges(), Contains(HasSubstr("dot_interaction(bfloat16")));
  EXPECT_THAT(driver.ranges(), Contains(HasSubstr("concat(bfloat16")));
}

// The fault names the variable, and the place among its own ids.
TEST_F(DlrmStep, AnIdOutOfRangeAmongThoseOfSeveralTablesIsRaisedWithItsPlace) {
  const Variable first = variable("first", noise({9, 4}, 1), kSgd),
                 second = variable("second", noise({7, 4}, 2), kSgd);
  const auto lookups = trace_function({ints({kAny}), ints({kAny})}, [&](auto& in) {
    return std::vector<Array>{stack({first.gather(arg(in, 0)), second.gather(arg(in, 1))}, 1)};
  });
  EXPECT_THAT(
      [&] {
        run_on(device, lookups, {ids_of({1, 8, 2}), ids_of({1, 6, 7})});
      },
      ::testing::ThrowsMessage<InvalidArgumentError>(
          AllOf(HasSubstr("float32[7, 4]"), HasSubstr("id 7 at position 2"))));
}

}  // namespace
}  // namespace cairn
