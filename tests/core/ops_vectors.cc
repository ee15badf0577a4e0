// Operations, forward and backward, against the recorded reference: every case of ops.json, on the
// CPU and on a device with memory of its own that fuses or does not, by shapes known when traced,
// by leading dimensions known only when run, and, of lookups and scatters, on a variable. A case
// that nothing knows is a failure.
//
// Tolerance: 2e-6 of the recorded number, and 2e-6 of the largest number of its tensor (counted as
// at least 1/4 and at most 2), for what is left where large numbers cancel; of normalisations four
// times that, since they divide by deviations that are small. Integers, shapes, dtypes and the
// class of an error are exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/exec/executor.h"
#include "core/graph/ops.h"
#include "core/rows/local_store.h"
#include "tests/core/ops_cases.h"
#include "tests/core/ops_vectors.h"

namespace cairn {
namespace {

using testing::CaseInputs;
using Results = std::map<std::string, Tensor>;

Device* computing = &cpu_device();  // the device under test
double tolerance_factor = 1;        // by this factor

struct Tolerance {
  double relative, absolute;
};

Tolerance tolerance(const std::string& kind, const Json& want) {
  double unit = kind == "batch_norm_train" || kind == "layer_norm" ? 8e-6 : 2e-6, largest = 0.25;
  unit *= tolerance_factor;
  for (const Json& datum : want.at("data"))
    if (double size = std::fabs(testing::number(datum)); std::isfinite(size))
      largest = std::max(largest, size);
  return {unit, unit * std::min(largest, 2.0)};
}

enum class Shapes { kKnown, kLeadingUnknown };

Results run_traced(const ConcreteFunction& traced, LocalStore& store,
                   std::vector<VariableId> variables, std::vector<Tensor> arguments) {
  Workspace workspace(*computing);
  std::vector<Tensor> values = run(make_plan(parse_graph(traced.bytes), std::move(variables)),
                                   workspace, store, {}, std::move(arguments), {});
  Results results;
  for (std::size_t i = 0; i < values.size(); ++i) results[traced.graph.output_names[i]] = values[i];
  return results;
}

Array weighted(const Array& out, const Json& in) {
  return sum(out * Array(testing::tensor_of(in.at("dout"))));
}

// The case's outputs and, where it has an upstream gradient, "d<input>" for each that is recorded.
Outputs with_gradients(const Json& test, const CaseInputs& inputs) {
  Outputs outputs = testing::record_case(testing::case_key(test), inputs);
  if (!test.at("in").contains("dout")) return outputs;
  std::vector<Array> wrt;
  std::vector<std::string> names;
  for (const auto& [name, input] : inputs.all()) {
    if (!test.at("out").contains("d" + name)) continue;
    wrt.push_back(input);
    names.push_back("d" + name);
  }
  std::vector<Array> gradients = grad(weighted(outputs.at(0).second, test.at("in")), wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i)
    outputs.emplace_back(names[i], gradients[i].defined() ? gradients[i] : zeros_like(wrt[i]));
  return outputs;
}

Results run_case(const Json& test, Shapes shapes) {
  std::vector<Tensor> arguments;
  std::vector<SignatureEntry> signature;
  for (const auto& [name, json] : test.at("in").at("inputs").items()) {
    arguments.push_back(testing::tensor_of(json));
    TensorType type = arguments.back().type();
    if (shapes == Shapes::kLeadingUnknown && type.shape.rank() > 0)
      type.shape = type.shape.with_dim(0, Shape::kUnknown);
    signature.emplace_back(type);
  }
  auto traced = trace(
      [&](const std::vector<TraceArgument>& in) {
        std::vector<Array> arrays;
        for (const TraceArgument& one : in) arrays.push_back(std::get<Array>(one));
        return with_gradients(test, CaseInputs(test.at("in"), arrays));
      },
      signature);
  LocalStore store;
  return run_traced(traced, store, {}, std::move(arguments));
}

// ---- comparing ----

template <typename T>
void expect_exact(const Tensor& got, const Tensor& want, const std::string& name) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(got.elements()); ++i)
    EXPECT_EQ(got.values<T>()[i], want.values<T>()[i]) << name << " element " << i;
}

void expect_equal(const Tensor& got, const Json& want, const std::string& name,
                  const std::string& kind = "") {
  ASSERT_EQ(got.shape(), testing::shape_of(want.at("shape"))) << name;
  ASSERT_EQ(dtype_name(got.dtype()), want.at("dtype").get<std::string>()) << name;
  Tensor recorded = testing::tensor_of(want);
  if (got.dtype() == DType::kInt32) return expect_exact<std::int32_t>(got, recorded, name);
  if (got.dtype() == DType::kInt64) return expect_exact<std::int64_t>(got, recorded, name);
  if (got.dtype() == DType::kBool) return expect_exact<bool>(got, recorded, name);
  Tolerance within = tolerance(kind, want);
  for (std::size_t i = 0; i < static_cast<std::size_t>(got.elements()); ++i) {
    float value = got.values<float>()[i];
    double expected = testing::number(want.at("data").at(i));
    EXPECT_TRUE(testing::near(value, expected, within.relative, within.absolute))
        << name << " element " << i << ": " << value << ", recorded " << expected;
  }
}

void expect_results(const Results& got, const Json& test) {
  for (const auto& [name, want] : test.at("out").items()) {
    ASSERT_TRUE(got.contains(name)) << "no output \"" << name << "\"";
    expect_equal(got.at(name), want.contains("dense") ? want.at("dense") : want, name,
                 test.at("kind"));
  }
}

// The class of the error that `act` throws, "" if none.
template <typename F>
std::string error_of(F act) {
  try {
    act();
  } catch (const Error& error) {
    return std::string(code_name(error.code())) + "Error";
  }
  return "";
}

// Python's own errors say only that the call is refused there.
std::string class_of(const std::string& recorded) {
  for (const char* python : {"ValueError", "TypeError", "IndexError", "AttributeError",
                             "AssertionError", "ZeroDivisionError"})
    if (recorded == python) return "InvalidArgumentError";
  return recorded;
}

// ---- on a variable ----

Variable variable_of(LocalStore& store, const Json& value, std::vector<VariableId>& ids) {
  auto spec = std::make_shared<VariableSpec>();
  spec->name = "v";
  spec->shape = testing::shape_of(value.at("shape"));
  spec->initializer = Initializer::from(testing::tensor_of(value));
  ids.push_back(store.create(spec));
  return Variable(spec);
}

// The gradient of a lookup is a pair as recorded: ids in their order, repeated ones too.
void expect_sparse_gradient(const Json& test, const std::string& ids_name) {
  const Json &in = test.at("in"), &want = test.at("out").at("dparams");
  LocalStore store;
  std::vector<VariableId> variables;
  Variable params = variable_of(store, in.at("inputs").at("params"), variables);
  auto traced = trace(
      [&](const std::vector<TraceArgument>&) -> Outputs {
        Array rows = params.gather(testing::tensor_of(in.at("inputs").at(ids_name)));
        VariableGradient gradient = variable_gradients(weighted(rows, in)).at(0);
        // as given there, always int64 here
        DType ids = parse_dtype(want.at("indices").at("dtype").get<std::string>());
        return {
            {"out", rows}, {"ids", cast(gradient.sparse.ids, ids)}, {"rows", gradient.sparse.rows}};
      },
      {});
  Results results = run_traced(traced, store, variables, {});
  expect_equal(results.at("out"), test.at("out").at("out"), "out of a variable");
  expect_equal(results.at("ids"), want.at("indices"), "the gradient's ids");
  expect_equal(results.at("rows"), want.at("values"), "the gradient's rows");
}

void expect_scatter_into_variable(const Json& test, bool subtract) {
  const Json& inputs = test.at("in").at("inputs");
  LocalStore store;
  std::vector<VariableId> variables;
  Variable x = variable_of(store, inputs.at("x"), variables);
  auto traced = trace(
      [&](const std::vector<TraceArgument>&) -> Outputs {
        Array rows = testing::tensor_of(inputs.at("updates"));
        x.scatter_add(testing::tensor_of(inputs.at("indices")), subtract ? -rows : rows);
        return {{"out", x.read()}};
      },
      {});
  expect_equal(run_traced(traced, store, variables, {}).at("out"), test.at("out").at("out"),
               "the variable");
}

void check_on_variable(const Json& test) {
  std::string key = testing::case_key(test);
  const Json& inputs = test.at("in").at("inputs");
  bool lookup = key == "embedding_lookup" || key == "gather";
  if (lookup && test.at("out").at("dparams").contains("indices"))
    expect_sparse_gradient(test, inputs.contains("ids") ? "ids" : "indices");
  if (key == "scatter add" || key == "scatter sub")
    expect_scatter_into_variable(test, key == "scatter sub");
}

// ---- the file ----

// Tracing refuses these while leading dimensions are unknown: two that differ (infer::broadcast),
// pieces of an unknown whole (split).
bool wants_leading_dimension(const Json& test) {
  if (test.at("kind") == "split") {
    int axis = test.at("in").at("attrs").at("axis");
    return axis == 0 ||
           axis == -testing::shape_of(test.at("in").at("inputs").at("x").at("shape")).rank();
  }
  if (test.at("kind") != "binary_broadcast") return false;
  const Json& inputs = test.at("in").at("inputs");
  Shape x = testing::shape_of(inputs.at("x").at("shape")),
        y = testing::shape_of(inputs.at("y").at("shape"));
  return x.rank() > 0 && x.rank() == y.rank() && x[0] != y[0];
}

void check_case(const Json& test) {
  for (Shapes shapes : {Shapes::kKnown, Shapes::kLeadingUnknown}) {
    SCOPED_TRACE(shapes == Shapes::kKnown ? "known shapes"
                                          : "leading dimensions unknown when traced");
    if (test.at("out").contains("error")) {
      EXPECT_EQ(error_of([&] { run_case(test, shapes); }), class_of(test.at("out").at("error")));
    } else if (shapes == Shapes::kLeadingUnknown && wants_leading_dimension(test)) {
      EXPECT_EQ(error_of([&] { run_case(test, shapes); }), "InvalidArgumentError");
    } else {
      expect_results(run_case(test, shapes), test);
    }
  }
  if (!test.at("out").contains("error")) check_on_variable(test);
}

}  // namespace

void testing::check_all_ops(Device& device, double tolerances) {
  computing = &device;
  tolerance_factor = tolerances;
  Json vectors = testing::load_vectors("ops");
  ASSERT_FALSE(vectors.at("cases").empty());
  for (const Json& test : vectors.at("cases")) {
    SCOPED_TRACE(test.at("id").get<std::string>());
    try {
      check_case(test);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  computing = &cpu_device();
}

}  // namespace cairn
