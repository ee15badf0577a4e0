// cairn.Function: a callable of Python's that is recorded once for each kind of arguments.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/function.h"
#include "nest.h"
#include "owner.h"
#include "refusing.h"

namespace cairn::python {

// The nests that the traces of a function have returned, by the names of their leaves.
class Results {
 public:
  // Returns a suffix for the names of the leaves, by which a list and a dict whose leaves have the
  // same names can be told apart; usually empty.
  //   Errors  InvalidArgument: another nest without leaves, which no name can tell from the first.
  std::string add(Nest nest, const std::string& function);
  // The same where the latest trace is the one that runs: the nest takes the place of another.
  void replace(Nest nest);
  // The values in the nest that was returned with those names.
  nb::object around(const std::vector<std::string>& names,
                    const std::vector<nb::object>& leaves) const;

 private:
  std::map<std::vector<std::string>, Nest> nests_;
};

class TracedFunction {
 public:
  TracedFunction(nb::object callable, std::string name, SharedOwner owner);

  // The function that C++ runs for arguments of this shape, and the leaves that it is to be given.
  struct Call {
    Function* function = nullptr;
    std::vector<nb::object> leaves;
    std::shared_ptr<const Results> results;
  };
  //   Errors  TypeError: an argument that cannot be recorded.
  Call call(const nb::args& args, const nb::kwargs& kwargs);
  // The function as it is recorded for these arguments. A dataset stands for an iterator over it.
  std::shared_ptr<const ConcreteFunction> concrete(const nb::args& args, const nb::kwargs& kwargs);
  // The place of a leaf among the arguments of such a call, for errors: the function "step",
  // argument "x/a/0".
  std::string place_of(const nb::args& args, const nb::kwargs& kwargs, std::size_t leaf) const;
  // The leaves of the call, each turned into an argument of C++'s by `one`.
  template <typename Argument, typename One>
  std::vector<Argument> arguments(const Call& call, const nb::args& args, const nb::kwargs& kwargs,
                                  One one) const {
    std::vector<Argument> all;
    all.reserve(call.leaves.size());
    for (const nb::object& leaf : call.leaves)
      at_place([&] { return place_of(args, kwargs, all.size()); },
               [&] { all.push_back(one(leaf)); });
    return all;
  }

  const std::string& name() const { return name_; }
  nb::object callable() const;
  const SharedOwner& owner() const { return owner_; }
  // For the collector of cycles.
  int traverse(visitproc visit, void* argument) const;
  void clear();

 private:
  struct Variant {
    Function function;
    std::shared_ptr<Results> results;
  };
  Variant& variant(Nest shape, std::size_t leaves);

  SharedReference callable_;
  std::string name_;
  SharedOwner owner_;
  Variant* plain_ = nullptr;  // of no arguments, which is asked for most
  std::map<std::string, Variant> variants_;
};

// Arrays for what a function of Python's has returned. `function`: how errors name it.
//   Errors  TypeError: something that is no array; it names the line that returns it.
Outputs outputs_of(nb::handle returned, const std::string& function, nb::handle callable,
                   Nest* shape);

}  // namespace cairn::python
