// A store with variables, and runs of functions against it.
#pragma once
#include <gmock/gmock.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/exec/plan.h"
#include "core/exec/step.h"
#include "core/graph/op_def.h"
#include "core/rows/local_store.h"
#include "tests/core/graph_testing.h"

namespace cairn::testing {

inline std::vector<float> floats_of(const Tensor& t) {
  return {t.values<float>().begin(), t.values<float>().end()};
}
inline std::vector<std::int64_t> longs_of(const Tensor& t) {
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

  // the only element, as the store has it now
  float value_of(const Variable& variable) {
    for (VariableId id = 0; id < store.local.size(); ++id)
      if (&store.local.spec(id) == &variable.spec()) {
        std::vector<Read> reads{{id, {}, {}}};
        store.local.pull({}, reads);
        return reads[0].value.item<float>();
      }
    return std::numeric_limits<float>::quiet_NaN();
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

inline const UpdateRule kSgd{RuleKind::kSgd, {}};

}  // namespace cairn::testing
