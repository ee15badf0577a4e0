// Function: a C++ callable that becomes a graph, once for each signature of its arguments.
//
//   Function step([&](Iterator input) {
//     auto [features, label] = input.get_next();
//     ...
//     return loss;
//   });
//
// The callable takes Arrays and Iterators, and returns nothing, an Array, a vector of Arrays, named
// Arrays (Outputs), or a nest of vectors, maps, pairs and tuples, whose leaves are named by their
// way: "b/1/0". It is called with recording arrays; what it records is the function. It must not
// depend on values: they are not there.
//   Thread  one at a time per Function object.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/graph/array.h"
#include "core/graph/graph.h"
#include "core/graph/variable.h"
#include "core/tensor/element.h"

namespace cairn {

// Named Arrays in their order.
class Outputs : public std::vector<std::pair<std::string, Array>> {
 public:
  using vector::vector;
  using vector::operator[];
  // The first of that name.
  //   Errors  InvalidArgument: there is none; names the nearest.
  const Array& operator[](const std::string& name) const;
};

// The columns of an element apart from its label, by name.
class Features {
 public:
  Features() = default;
  Features(std::shared_ptr<const ElementSpec> spec, std::vector<Array> columns)
      : spec_(std::move(spec)), columns_(std::move(columns)) {}
  // InvalidArgument: no such column; names the nearest
  const Array& operator[](const std::string& name) const;
  // The two halves of a ragged column.
  const Array& values(const std::string& name) const { return (*this)[name]; }
  const Array& row_splits(const std::string& name) const { return (*this)[name + "/row_splits"]; }
  const ElementSpec& spec() const { return *spec_; }

 private:
  std::shared_ptr<const ElementSpec> spec_;
  std::vector<Array> columns_;
};

// One element of a dataset, as a model sees it.
struct Batch {
  Features features;
  Array label;  // undefined if the spec names none
};

// An iterator argument while a function is traced (or, eagerly, an iterator of this process).
class Iterator {
 public:
  // Takes the next element. Run at the end of the data: OutOfRange.
  Batch get_next() const { return get_next_(); }
  explicit Iterator(std::function<Batch()> get_next) : get_next_(std::move(get_next)) {}

 private:
  std::function<Batch()> get_next_;
};

// The dataset behind an iterator argument, wherever it is read. Strategies derive their own.
class IteratorSource {
 public:
  virtual ~IteratorSource() = default;
  virtual const ElementSpec& element_spec() const = 0;
};

using Argument = std::variant<Tensor, std::shared_ptr<const IteratorSource>>;
using TraceArgument = std::variant<Array, Iterator>;

// A function traced for one signature.
struct ConcreteFunction {
  Graph graph;
  std::vector<std::byte> bytes;  // serialize(graph)
  GraphHash hash{};
  std::vector<std::shared_ptr<const VariableSpec>> variables;  // beside graph.variables
  // The graph has one argument more than the callable takes, the last: see recorded_worker_index().
  bool takes_worker_index = false;
  // How many replicas in sync it runs (core/graph/join_replicas.h), each of which takes elements.
  int replicas = 1;
};

// The number of the worker that will run the function being traced, an int64 scalar. It is not
// known while tracing, so it is an argument that the strategy fills in when it sends the function.
// Programs call current_worker_index() (strategy/base/per_worker_variable.h) instead.
//   Errors  FailedPrecondition: nothing is being traced.
Array recorded_worker_index();

class Function {
 public:
  using Body = std::function<Outputs(const std::vector<TraceArgument>&)>;

  Function() = default;
  // For a callable whose parameters are known only when the program runs, as a front-end in another
  // language has it: `arguments` of them, each an Array or an Iterator as what is passed says.
  static Function of(Body body, std::size_t arguments, std::string name = "function");
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Function>) explicit Function(
      F callable, std::string name = "function");

  // The graph for these arguments, traced at the first call for their signature (dtypes, ranks and
  // dimensions with axis 0 of tensors of rank >= 1 unknown; element specs) in `creator`'s scope:
  // the one that is open, if it is that creator's, and else a new one. Each place of the scope
  // (ScopePlace) has a graph of its own. Errors while tracing are the callable's own.
  std::shared_ptr<const ConcreteFunction> concrete(const std::vector<Argument>& arguments,
                                                   VariableCreator& creator);
  // Calls the callable within the function that is being traced on this thread: what it records
  // becomes part of that one. It is called again for each such use.
  //   Errors  FailedPrecondition: nothing is being traced. InvalidArgument: other arguments than it
  //           takes, or it is being traced already: it would run itself without end. Else the
  //           callable's own.
  Outputs inlined(const std::vector<TraceArgument>& arguments) const;
  const std::string& name() const;
  bool defined() const { return state_ != nullptr; }

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Traces `body` once: for Function, and for tests.
using SignatureEntry = std::variant<TensorType, ElementSpec>;
ConcreteFunction trace(const Function::Body& body, const std::vector<SignatureEntry>& signature);

// The gradients of scalar `loss` with respect to `wrt`, recorded as further operations (reverse
// mode, graph to graph). A gather contributes IndexedSlices: ask by variable. Zero where the loss
// does not depend on it (undefined Array).
std::vector<Array> grad(const Array& loss, const std::vector<Array>& wrt);
struct VariableGradient {
  Variable variable;
  Array dense;           // defined if the variable was read whole
  IndexedSlices sparse;  // sparse.ids defined if it was only gathered from
  Array loss = {};       // the loss differentiated; undefined if the caller made it otherwise
  bool is_sparse() const { return sparse.ids.defined(); }
};
// The variables that the values are computed from, trainable or not, in the order of first use.
std::vector<Variable> variables_read(const std::vector<Array>& values);
// With respect to every trainable variable (or just those given) that `loss` depends on, in order
// of first use. A variable both read whole and gathered gets a dense gradient.
std::vector<VariableGradient> variable_gradients(const Array& loss,
                                                 const std::vector<Variable>& variables = {});

// ---- templates ----
namespace detail {
// The leaves of nested vectors, maps, pairs and tuples in order, each named by its way there:
// "b/1/0".
struct Flattener {
  Outputs leaves;

  void add(const Array& leaf, const std::string& path) { leaves.emplace_back(path, leaf); }
  void add(const Outputs& named, const std::string& path) {
    for (const auto& [name, value] : named) add(value, below(path, name));
  }
  template <typename T>
  void add(const std::map<std::string, T>& named, const std::string& path) {
    for (const auto& [name, value] : named) add(value, below(path, name));
  }
  template <typename T>
  void add(const std::vector<T>& list, const std::string& path) {
    std::size_t i = 0;
    for (const auto& value : list) add(value, below(path, std::to_string(i++)));
  }
  template <typename A, typename B>
  void add(const std::pair<A, B>& two, const std::string& path) {
    add(two.first, below(path, "0"));
    add(two.second, below(path, "1"));
  }
  template <typename... T>
  void add(const std::tuple<T...>& all, const std::string& path) {
    std::size_t i = 0;
    std::apply([&](const auto&... value) { (add(value, below(path, std::to_string(i++))), ...); },
               all);
  }
  static std::string below(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "/" + name;
  }
};

// Whether a function may return a T.
template <typename T>
struct IsStructure : std::is_convertible<T, Array> {};
template <>
struct IsStructure<Outputs> : std::true_type {};
template <typename T>
struct IsStructure<std::vector<T>> : IsStructure<T> {};
template <typename T>
struct IsStructure<std::map<std::string, T>> : IsStructure<T> {};
template <typename A, typename B>
struct IsStructure<std::pair<A, B>>
    : std::bool_constant<IsStructure<A>::value && IsStructure<B>::value> {};
template <typename... T>
struct IsStructure<std::tuple<T...>> : std::bool_constant<(IsStructure<T>::value && ...)> {};

template <typename R>
Outputs to_outputs(R&& result) {
  using T = std::remove_cvref_t<R>;
  static_assert(IsStructure<T>::value,
                "A traced function returns nothing, an Array, Outputs, or vectors, maps, pairs and "
                "tuples of such");
  if constexpr (std::is_same_v<T, Outputs>) {
    return std::forward<R>(result);
  } else if constexpr (std::is_same_v<T, std::vector<Array>>) {
    Outputs all;
    for (auto& array : result) all.emplace_back("", array);
    return all;
  } else if constexpr (std::is_convertible_v<T, Array>) {
    return {{"", Array(std::forward<R>(result))}};
  } else {
    Flattener flat;
    if constexpr (IsStructure<T>::value) flat.add(result, "");
    return std::move(flat.leaves);
  }
}
template <typename F>
struct CallableTraits : CallableTraits<decltype(&F::operator())> {};
template <typename R, typename... A>
struct CallableTraits<R (*)(A...)> {
  using Result = R;
  using Arguments = std::tuple<std::remove_cvref_t<A>...>;
  // Arrays and Iterators, by value or by const reference.
  template <typename T>
  static constexpr bool kTraced =
      (std::is_same_v<std::remove_cvref_t<T>, Array> ||
       std::is_same_v<std::remove_cvref_t<T>,
                      Iterator>)&&(!std::is_lvalue_reference_v<T> ||
                                   std::is_const_v<std::remove_reference_t<T>>);
  static constexpr bool kTakesWhatIsTraced = (kTraced<A> && ...);
};
template <typename R, typename... A>
struct CallableTraits<R (*)(A...) noexcept> : CallableTraits<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct CallableTraits<R (C::*)(A...) const> : CallableTraits<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct CallableTraits<R (C::*)(A...)> : CallableTraits<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct CallableTraits<R (C::*)(A...) const noexcept> : CallableTraits<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct CallableTraits<R (C::*)(A...) noexcept> : CallableTraits<R (*)(A...)> {};

// A lambda, a function or a function object whose parameter types can be deduced: neither generic
// nor overloaded.
template <typename F>
concept PlainCallable =
    (std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>) || requires {
  &F::operator();
};
template <typename T>
T trace_argument(const TraceArgument& argument, std::size_t index) {
  const T* typed = std::get_if<T>(&argument);
  if (typed == nullptr)
    throw InvalidArgumentError(str("argument ", index, " of the function is ",
                                   std::is_same_v<T, Array> ? "an Array" : "an Iterator",
                                   ", and the other was passed"));
  return *typed;
}
template <typename F, std::size_t... I>
Outputs call_with(F& callable, const std::vector<TraceArgument>& arguments,
                  std::index_sequence<I...>) {
  using Traits = CallableTraits<F>;
  if constexpr (std::is_void_v<typename Traits::Result>) {
    callable(
        trace_argument<std::tuple_element_t<I, typename Traits::Arguments>>(arguments[I], I)...);
    return {};
  } else {
    return to_outputs(callable(
        trace_argument<std::tuple_element_t<I, typename Traits::Arguments>>(arguments[I], I)...));
  }
}
}  // namespace detail

template <typename F>
requires(!std::is_same_v<std::remove_cvref_t<F>, Function>) Function::Function(F callable,
                                                                               std::string name) {
  static_assert(detail::PlainCallable<F>,
                "A Function is made of a lambda or a function that takes Arrays and Iterators. "
                "What was passed cannot be "
                "called, or is generic or overloaded: write the types of its parameters, [](Array "
                "x, Iterator batches) {...}");
  if constexpr (detail::PlainCallable<F>) {
    using Traits = detail::CallableTraits<F>;
    static_assert(Traits::kTakesWhatIsTraced,
                  "A traced function takes Arrays and Iterators, by value or by const reference, "
                  "and nothing else: it is called "
                  "once with recording arrays. Capture other values, or pass them as Tensors and "
                  "take them as Arrays");
    if constexpr (Traits::kTakesWhatIsTraced) {
      constexpr std::size_t kCount = std::tuple_size_v<typename Traits::Arguments>;
      Body body = [callable =
                       std::move(callable)](const std::vector<TraceArgument>& arguments) mutable {
        return detail::call_with(callable, arguments, std::make_index_sequence<kCount>{});
      };
      *this = of(std::move(body), kCount, std::move(name));
    }
  }
}

}  // namespace cairn
