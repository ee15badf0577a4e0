// cairn.Loss.
#pragma once
#include "kept.h"
#include "nn/losses/loss.h"
#include "values.h"

namespace cairn::python {

// A loss for Python, with the function of Python's that it may call.
class LossObject {
 public:
  LossObject(nn::Loss loss, Kept kept) : kept_(std::move(kept)), loss_(std::move(loss)) {}
  //   Errors  FailedPrecondition: the collector of cycles took it.
  const nn::Loss& get() const {
    if (!loss_.defined()) throw FailedPreconditionError("the loss was let go of");
    return loss_;
  }
  int traverse(visitproc visit, void* argument) const { return kept_.traverse(visit, argument); }
  void clear() {
    loss_ = {};
    kept_.clear();
    drop_references();
  }

 private:
  Kept kept_;
  nn::Loss loss_;  // goes first
};

// By its name, a LossObject, or a function of prediction and label; None: no loss.
//   Errors  TypeError: something else.
nn::Loss loss_of(nb::handle loss, Kept& kept);
// The name of a function of Python's, for logs.
std::string name_of_function(nb::handle function, const char* otherwise);

void bind_loss_functions(nb::module_& m);

}  // namespace cairn::python
