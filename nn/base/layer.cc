#include "nn/base/layer.h"

#include <map>
#include <utility>

#include "core/graph/ops.h"

namespace cairn::nn {

// By the address of the creator, since a creator has no name: see the lifetime in the header.
struct LayerVariables::Sets {
  std::map<const VariableCreator*, std::vector<Variable>> by_creator;
};

LayerVariables::LayerVariables() : sets_(std::make_shared<Sets>()) {}

const std::vector<Variable>& LayerVariables::in_scope(const Make& make) const {
  VariableCreator& creator = current_variable_creator();
  auto found = sets_->by_creator.find(&creator);
  if (found != sets_->by_creator.end()) return found->second;
  // Made before it is stored: if `make` throws, the layer has no variables yet, and a corrected
  // call makes them.
  std::vector<Variable> made = make(creator);
  return sets_->by_creator.emplace(&creator, std::move(made)).first->second;
}

const std::vector<Variable>& LayerVariables::made(const std::string& layer) const {
  auto found = sets_->by_creator.find(&current_variable_creator());
  if (found == sets_->by_creator.end())
    throw InvalidArgumentError(
        str("layer \"", layer,
            "\" has no variables in this scope yet: they are made at its first call"));
  return found->second;
}

Array per_example(const Array& x, const std::string& what) {
  if (!x.defined()) throw InvalidArgumentError(str(what, " is missing"));
  if (x.rank() == 1) return x;
  if (x.rank() == 2 && x.shape()[1] == 1) return squeeze(x, 1);
  throw InvalidArgumentError(
      str(what, " must hold one number per example, as [batch] or [batch, 1]; it is ",
          x.type().to_string()));
}

Array to_float(const Array& x) {
  return x.dtype() == DType::kFloat32 ? x : cast(x, DType::kFloat32);
}

}  // namespace cairn::nn
