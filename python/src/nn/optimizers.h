// cairn.Optimizer.
#pragma once
#include <memory>
#include <utility>

#include "kept.h"
#include "nn/optimizers/optimizer.h"

namespace cairn::python {

class OptimizerObject {
 public:
  OptimizerObject(std::shared_ptr<nn::Optimizer> optimizer, Kept kept)
      : kept_(std::move(kept)), optimizer_(std::move(optimizer)) {}
  //   Errors  FailedPrecondition: the collector of cycles took it.
  nn::Optimizer& get() const { return *shared(); }
  const std::shared_ptr<nn::Optimizer>& shared() const {
    if (optimizer_ == nullptr) throw FailedPreconditionError("the optimizer was let go of");
    return optimizer_;
  }
  // Steps that are recorded from now on have the rate that it has now, as a constant.
  void use() { used_ = true; }
  bool used() const { return used_; }
  int traverse(visitproc visit, void* argument) const { return kept_.traverse(visit, argument); }
  void clear() {
    optimizer_.reset();
    kept_.clear();
    drop_references();
  }

 private:
  Kept kept_;
  std::shared_ptr<nn::Optimizer> optimizer_;  // goes first
  bool used_ = false;
};

struct LearningRateLike {
  nb::handle object;
  // A number, a schedule, or a function of the step.
  //   Errors  TypeError: none of these.
  nn::LearningRate in(Kept& kept) const;
};

void bind_schedules(nb::module_& m);

}  // namespace cairn::python

namespace nanobind::detail {
template <>
struct type_caster<cairn::python::LearningRateLike> {
  NB_TYPE_CASTER(cairn::python::LearningRateLike, const_name("cairn.typing.LearningRateLike"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    value.object = source;
    return true;
  }
  static handle from_cpp(cairn::python::LearningRateLike made, rv_policy, cleanup_list*) {
    return made.object.inc_ref();
  }
};
}  // namespace nanobind::detail
