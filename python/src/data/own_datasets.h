// Functions of Python's that make datasets, one for each input pipeline.
#pragma once
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "data/dataset/dataset.h"
#include "refusing.h"
#include "tables_folder.h"

namespace cairn::python {

// C++ wraps what such a function throws in an error of its own. run() raises the function's own
// exception instead, whose traceback has the line.
class OwnDatasets {
 public:
  // `owner`: the strategy whose workers read them.
  //   Errors  TypeError: it is no function. `what` begins the messages: "fit: the function".
  OwnDatasets(nb::handle function, std::string what, SharedOwner owner)
      : what_(std::move(what)), function_(share(nb::borrow(function))), owner_(std::move(owner)) {
    require_function(function, what_ + " that makes the data takes an InputContext");
  }
  std::function<Dataset(const InputContext&)> function() const {
    return [what = what_, function = function_, owner = owner_,
            raised = raised_](const InputContext& context) {
      const Acquired here;
      try {
        const nb::object made = nb::borrow(function->get())(context);
        if (!nb::isinstance<Dataset>(made))
          type_error(str(what, " that makes the data returned ", described(made),
                         ", where a cairn.Dataset is wanted"));
        return travelling(nb::cast<Dataset>(made), owner);
      } catch (...) {
        *raised = std::current_exception();
        throw;
      }
    };
  }
  template <typename F>
  auto run(F&& f) const {
    try {
      return std::forward<F>(f)();
    } catch (...) {
      if (*raised_) std::rethrow_exception(*raised_);
      throw;
    }
  }

 private:
  std::string what_;
  SharedReference function_;
  SharedOwner owner_;
  std::shared_ptr<std::exception_ptr> raised_ = std::make_shared<std::exception_ptr>();
};

}  // namespace cairn::python
