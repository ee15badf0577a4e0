// The same variables in the host's memory and in a device's, so that runs on both can be compared.
#pragma once
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/core/executor_testing.h"
#include "tests/core/kernels/cuda/some_gpu.h"
#include "tests/core/noise.h"

namespace cairn::testing {

struct DeviceRowsTest : ::testing::Test, SomeGpu {
  struct Side {
    explicit Side(Device& device) : workspace(device) {}
    LocalStore store;
    Workspace workspace;
  };
  std::vector<Variable> variables;
  Side host{cpu_device()}, device{*gpu};

  Variable variable(const std::string& name, const Tensor& value, const UpdateRule& rule) {
    auto spec = std::make_shared<VariableSpec>();
    spec->name = name;
    spec->dtype = value.dtype();
    spec->shape = value.shape();
    spec->initializer = Initializer::from(value);
    for (Side* side : {&host, &device}) side->store.add_slots(side->store.create(spec), rule);
    return variables.emplace_back(spec);
  }

  std::shared_ptr<const Plan> plan_of(const ConcreteFunction& function,
                                      const PlanOptions& options = {}) const {
    std::vector<VariableId> ids;
    for (const auto& used : function.variables)
      for (VariableId id = 0; id < variables.size(); ++id)
        if (variables[id].shared_spec() == used) ids.push_back(id);
    return make_plan(function.graph, ids, options);
  }
  std::vector<Tensor> run_on(Side& side, const ConcreteFunction& function,
                             const std::vector<Tensor>& arguments) {
    return run(plan_of(function), side.workspace, side.store, {}, arguments, {});
  }

  static void expect_near(const Tensor& got, const Tensor& want, const std::string& what) {
    ASSERT_EQ(got.type(), want.type()) << what;
    for (std::size_t i = 0; i < static_cast<std::size_t>(got.elements()); ++i) {
      EXPECT_NEAR(got.values<float>()[i], want.values<float>()[i], 1e-5f)
          << what << " element " << i;
    }
  }
  Tensor read(Side& side, VariableId id) {
    Read one{id, {}, {}};
    side.store.pull({}, {&one, 1});
    return one.value;
  }
  void expect_equal_stores() {
    for (VariableId id = 0; id < variables.size(); ++id) {
      expect_near(read(device, id), read(host, id), variables[id].name());
      EXPECT_EQ(device.store.updates(id), host.store.updates(id)) << variables[id].name();
    }
  }
};

}  // namespace cairn::testing
