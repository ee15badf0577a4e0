// A creator that makes variables and remembers what was asked of it: for tests of what layers and
// optimizers record.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/variable.h"

namespace cairn::nn {

class RecordingCreator final : public VariableCreator {
 public:
  Variable create_variable(VariableSpec spec) override {
    specs.push_back(std::make_shared<const VariableSpec>(std::move(spec)));
    return Variable(specs.back());
  }
  void add_slots(const Variable& variable, const UpdateRule& rule) override {
    slots.emplace_back(variable.name(), rule);
  }

  std::vector<std::shared_ptr<const VariableSpec>> specs;
  std::vector<std::pair<std::string, UpdateRule>> slots;
};

}  // namespace cairn::nn
