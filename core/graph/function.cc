#include "core/graph/function.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/graph/lowering.h"
#include "core/graph/recording.h"
#include "core/graph/wire/graph_files.h"

namespace cairn {

const Array& Outputs::operator[](const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& [each, value] : *this) {
    if (each == name) return value;
    names.push_back(each);
  }
  const std::string near = nearest_name(name, names);
  throw InvalidArgumentError(str("there is no output \"", name, "\"",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

const Array& Features::operator[](const std::string& name) const {
  if (!spec_)
    throw InvalidArgumentError(str("no column \"", name, "\": the batch has no features"));
  return columns_[spec_->find(name)];
}

namespace {

// The element's columns as features and label.
Batch make_batch(const ElementSpec& spec, const std::vector<Array>& columns) {
  auto features = std::make_shared<ElementSpec>();
  std::vector<Array> values;
  Batch batch;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!spec.label.empty() && spec.columns[i].name == spec.label) {
      batch.label = columns[i];
      continue;
    }
    features->columns.push_back(spec.columns[i]);
    values.push_back(columns[i]);
  }
  batch.features = Features(std::move(features), std::move(values));
  return batch;
}

// An iterator stands for an argument of one trace, and it may have been kept beyond it.
Batch record_next(const ElementSpec& spec, std::size_t index, std::uint64_t trace) {
  const TraceContext* current = TraceContext::current();
  if (current == nullptr || current->id() != trace)
    throw FailedPreconditionError(
        "get_next: the iterator is an argument of a function whose tracing is over");
  if (const ScopePlace* place = current_scope_place(); place != nullptr && !place->takes_elements())
    throw FailedPreconditionError(
        "get_next: in cross-replica context, where each of several replicas would get another "
        "element: pass the iterator to Strategy::run, and take from it there");
  std::vector<TensorType> types;
  for (const ColumnSpec& column : spec.columns) types.push_back(column.type);
  auto node = record_effect({"iterator_next",
                             {},
                             {{"iterator", static_cast<std::int64_t>(index)}},
                             std::move(types),
                             nullptr,
                             nullptr});
  std::vector<Array> columns;
  for (std::size_t i = 0; i < spec.columns.size(); ++i)
    columns.emplace_back(node, static_cast<int>(i));
  return make_batch(spec, columns);
}

// An iterator records nothing by itself: each get_next() becomes a node of its own.
TraceArgument record_argument(const SignatureEntry& entry, Lowering& request) {
  if (const auto* type = std::get_if<TensorType>(&entry)) {
    auto index = static_cast<std::int64_t>(request.arguments.size());
    request.arguments.push_back(*type);
    return Array(record_effect({"argument", {}, {{"index", index}}, {*type}, nullptr, nullptr}), 0);
  }
  const auto& spec = std::get<ElementSpec>(entry);
  std::size_t index = request.iterators.size();
  request.iterators.push_back(spec);
  return Iterator([spec, index, trace = request.trace] { return record_next(spec, index, trace); });
}

// The first axis is left open, for it counts the batch: a last batch that is smaller runs by the
// graph that is there.
SignatureEntry signature_entry(const Argument& argument) {
  if (const auto* source = std::get_if<std::shared_ptr<const IteratorSource>>(&argument))
    return (*source)->element_spec();
  TensorType type = std::get<Tensor>(argument).type();
  if (type.shape.rank() > 0) type.shape = type.shape.with_dim(0, Shape::kUnknown);
  return type;
}

}  // namespace

// The body runs once, with arrays that record. What it returns and the effects that it had are
// lowered to a graph; all else that it computed is dropped.
ConcreteFunction trace(const Function::Body& body, const std::vector<SignatureEntry>& signature) {
  TraceContext context;
  Lowering request;
  request.trace = context.id();
  std::vector<TraceArgument> arguments;
  for (const SignatureEntry& entry : signature)
    arguments.push_back(record_argument(entry, request));
  context.set_arguments(request.arguments.size());
  request.outputs = body(arguments);
  request.effects = context.effects();
  if (context.takes_worker_index()) request.arguments.push_back({DType::kInt64, {}});
  ConcreteFunction made = lower(request);
  made.takes_worker_index = context.takes_worker_index();
  made.bytes = serialize(made.graph);
  made.hash = content_hash(made.bytes);
  return made;
}

Array recorded_worker_index() {
  if (TraceContext::current() == nullptr)
    throw FailedPreconditionError(
        "the number of the worker is asked for outside of a function: no worker runs this");
  return TraceContext::current()->worker_index();
}

struct Function::State {
  // While the callable is called; it must not be called by itself.
  class [[nodiscard]] Tracing {
   public:
    explicit Tracing(State& state) : state_(state) {
      if (std::exchange(state_.tracing, true))
        throw InvalidArgumentError(str("the function \"", state_.name,
                                       "\" runs itself while it is traced, which has no end"));
    }
    ~Tracing() { state_.tracing = false; }
    Tracing(const Tracing&) = delete;
    Tracing& operator=(const Tracing&) = delete;

   private:
    State& state_;
  };
  struct Traced {
    std::vector<SignatureEntry> signature;
    const VariableCreator* creator;  // another strategy has other variables
    const ScopePlace* place;         // another replica may record something else
    std::shared_ptr<const ConcreteFunction> function;
  };
  Body body;
  std::size_t arguments;
  std::string name;
  std::vector<Traced> traced;  // few: a signature is a dataset's or a handful of scalars
  bool tracing = false;

  void want_arguments(std::size_t passed) const {
    if (passed != arguments)
      throw InvalidArgumentError(
          str(name, " takes ", arguments, " arguments; ", passed, " were passed"));
  }
};

Function Function::of(Body body, std::size_t arguments, std::string name) {
  Function made;
  made.state_ =
      std::make_shared<State>(State{std::move(body), arguments, std::move(name), {}, false});
  return made;
}

const std::string& Function::name() const {
  if (!state_) throw FailedPreconditionError("the Function is empty");
  return state_->name;
}

std::shared_ptr<const ConcreteFunction> Function::concrete(const std::vector<Argument>& arguments,
                                                           VariableCreator& creator) {
  if (!state_) throw FailedPreconditionError("the Function is empty");
  state_->want_arguments(arguments.size());
  std::vector<SignatureEntry> signature;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* value = std::get_if<Tensor>(&arguments[i]);
    if (value != nullptr ? !value->defined() : std::get<1>(arguments[i]) == nullptr)
      throw InvalidArgumentError(str("argument ", i, " of ", state_->name, " has no value"));
    signature.push_back(signature_entry(arguments[i]));
  }
  // Layers that are made while the body runs take their variables from the creator whose scope is
  // open.
  std::optional<Scope> scope;
  if (&current_variable_creator() != &creator) scope.emplace(creator);
  const ScopePlace* place = current_scope_place();
  // The creator and the place belong to the key, because the body may make or record something else
  // there. A linear search does, since a function has few signatures.
  for (const auto& known : state_->traced)
    if (known.creator == &creator && known.place == place && known.signature == signature)
      return known.function;
  const State::Tracing tracing(*state_);
  auto function = std::make_shared<const ConcreteFunction>(trace(state_->body, signature));
  write_graph_file(state_->name, function->graph, function->hash);
  state_->traced.push_back({std::move(signature), &creator, place, function});
  return function;
}

// Not by the graph that may exist: the nodes belong to the trace of the outer function, in its
// order.
Outputs Function::inlined(const std::vector<TraceArgument>& arguments) const {
  if (!state_) throw FailedPreconditionError("the Function is empty");
  if (TraceContext::current() == nullptr)
    throw FailedPreconditionError(
        str("no function is being traced that \"", state_->name, "\" could become part of"));
  state_->want_arguments(arguments.size());
  const State::Tracing tracing(*state_);
  return state_->body(arguments);
}

}  // namespace cairn
