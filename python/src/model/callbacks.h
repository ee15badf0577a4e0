// Callbacks of fit(): Cairn's own, and objects of Python's.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "kept.h"
#include "model/callback.h"
#include "model/history.h"

namespace cairn::python {

// The base of Cairn's own.
class CallbackObject {
 public:
  CallbackObject(std::shared_ptr<Callback> callback, Kept kept)
      : kept_(std::move(kept)), callback_(std::move(callback)) {}
  //   Errors  FailedPrecondition: the collector of cycles took it.
  const std::shared_ptr<Callback>& get() const {
    if (callback_ == nullptr) throw FailedPreconditionError("the callback was let go of");
    return callback_;
  }
  int traverse(visitproc visit, void* argument) const { return kept_.traverse(visit, argument); }
  void clear() {
    callback_.reset();
    kept_.clear();
    drop_references();
  }

 private:
  Kept kept_;
  std::shared_ptr<Callback> callback_;  // goes first
};

// The fit() that runs, for callbacks in Python; of use while their method runs.
struct PythonRun {
  TrainingRun* run = nullptr;
  SharedReference model;
  //   Errors  FailedPrecondition: the method has returned.
  TrainingRun& get() const {
    if (run == nullptr)
      throw FailedPreconditionError(
          "the fit() of this run is over: use `run` within a callback's methods");
    return *run;
  }
};

nb::dict dict_of(const Logs& logs);

// Each of a list, for a fit() or an evaluate() of `model`, which is Python's.
//   Errors  TypeError: a class in the place of its object, or no list.
std::vector<std::shared_ptr<Callback>> callbacks_of(nb::handle list, nb::handle model);
// Writes to Python's standard output: a line for each epoch, and before it, where `bar` and the
// output is a terminal or a notebook's, how far the epoch has come.
std::shared_ptr<Callback> shown_in_python(std::int64_t epochs, bool bar);

void bind_own_callbacks(nb::module_& m);

}  // namespace cairn::python
