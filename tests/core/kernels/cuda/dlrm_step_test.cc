// The step of DLRM on a device that has all its tables: of how many pieces of work it is made, and
// that it computes what the CPU does.
#include "tests/core/kernels/cuda/rows/device_rows_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// So many that the step is recorded and replayed.
constexpr int kSteps = 4;
// By what part of what is learnt the device may be off.
constexpr std::pair<Arithmetic, double> kParts[] = {{Arithmetic::kFloat32, 1e-3},
                                                    {Arithmetic::kMixedBfloat16, 0.05}};

struct DlrmSizes {
  std::int64_t batch = 6, tables = 3, rows = 9, dim = 8, numbers = 6, rows_of_first = 9;
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
  std::shared_ptr<const Plan> plan_under(Arithmetic arithmetic, const DlrmSizes& sizes) {
    PlanOptions options;
    options.products = arithmetic;
    return plan_of(trace_step(sizes), options);
  }
  void train(const std::shared_ptr<const Plan>& plan) {
    for (int i = 0; i < kSteps; ++i)
      for (Side* side : {&host, &device}) run(plan, side->workspace, side->store, {}, {}, {});
  }
  std::vector<Tensor> values_of(Side& side) {
    std::vector<Tensor> values;
    for (VariableId id = 0; id < variables.size(); ++id) values.push_back(read(side, id).clone());
    return values;
  }
  // Expects device and host to differ by at most `part` of what each variable from `first` learnt.
  void expect_learnt_alike(const std::vector<Tensor>& before, std::size_t first, double part) {
    for (auto id = static_cast<VariableId>(first); id < variables.size(); ++id) {
      if (variables[id].spec().dtype != DType::kFloat32 || !trains(variables[id])) continue;
      const Tensor here = read(device, id), there = read(host, id);
      double learnt = 0, off = 0;
      for (std::size_t i = 0; i < here.values<float>().size(); ++i) {
        learnt += std::abs(there.values<float>()[i] - before[id].values<float>()[i]);
        off += std::abs(there.values<float>()[i] - here.values<float>()[i]);
      }
      EXPECT_GT(learnt, 0) << variables[id].name();
      EXPECT_LE(off, part * learnt) << variables[id].name();
    }
  }

 private:
  std::string prefix_;
};

// Values learnt on the device differ from the host's by a small part of themselves.
TEST_F(DlrmStep, TrainsAsOnTheHost) {
  for (const auto& [arithmetic, part] : kParts) {
    const std::size_t first = variables.size();
    const auto plan = plan_under(arithmetic, {});
    const std::vector<Tensor> before = values_of(host);
    train(plan);
    expect_learnt_alike(before, first, part);
  }
}

#ifndef CAIRN_ON_GPU
// A table for which the device has no room: its rows come from the host, and are copied into the
// stack.
TEST_F(DlrmStep, RowsOfATableOnTheHostComeIntoTheStackAsWell) {
  DlrmSizes sizes;
  sizes.rows_of_first = 100'000;
  for (const auto& [arithmetic, part] : kParts) {
    const std::size_t first = variables.size();
    const auto plan = plan_under(arithmetic, sizes);
    driver.limit(driver.used_bytes() + 2'000'000);
    const std::vector<Tensor> before = values_of(host);
    train(plan);
    EXPECT_EQ(driver.counts().replays, 0);
    expect_learnt_alike(before, first, part);
  }
}

// The pieces of work of a step's operations, as a profiler sees them.
class DlrmPieces : public DlrmStep {
 protected:
  void step_under(Arithmetic arithmetic) {
    driver.attach_profiler();
    Side watched(*gpu);
    const auto plan = plan_under(arithmetic, {});
    for (const Variable& one : variables) watched.store.create(one.shared_spec());
    run(plan, watched.workspace, watched.store, {}, {}, {});
  }
};

TEST_F(DlrmPieces, AllTablesAreLookedUpInOneWhichWritesIntoTheStack) {
  for (Arithmetic arithmetic : {Arithmetic::kFloat32, Arithmetic::kMixedBfloat16}) {
    step_under(arithmetic);
    EXPECT_EQ(driver.pieces_of(">rows of 3 variables"), 1);
    EXPECT_EQ(driver.pieces_of(">rows of float32["), 0);  // one by one
    EXPECT_EQ(driver.pieces_of(">stack("), 1);            // for the dense vector
    driver.forget_ranges();
  }
}

// All variables that are read whole for products: the rounding of those that are made of words of
// four elements is one piece of work, that of the last bias, which has one element, another.
TEST_F(DlrmPieces, WhatProductsReadOfVariablesIsRoundedTogether) {
  step_under(Arithmetic::kMixedBfloat16);
  // The numbers, four kernels and four biases: behind the last product, too, lies a value that is
  // rounded, the gradient of the loss.
  EXPECT_EQ(driver.pieces_of(">rows of 9 variables"), 2);
  EXPECT_EQ(driver.counts().narrowed, 0);
}

// The interaction writes into the concatenation, which copies the dense vector alone, and its
// gradient reads the concatenation's.
TEST_F(DlrmPieces, AnInteractionLiesWithinTheConcatenation) {
  step_under(Arithmetic::kFloat32);
  EXPECT_EQ(driver.pieces_of(">concat("), 1);
  EXPECT_EQ(driver.pieces_of(">slice("), 2);  // the dense vector's, of both gradients
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

#endif

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
