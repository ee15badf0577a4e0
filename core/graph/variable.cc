#include "core/graph/variable.h"

#include <compare>
#include <map>
#include <optional>

#include "core/graph/cached_reads.h"
#include "core/graph/eager.h"
#include "core/graph/lowering.h"
#include "core/graph/ops.h"
#include "core/graph/recording.h"

namespace cairn {
namespace {

thread_local VariableCreator* current_creator = nullptr;
thread_local const ScopePlace* current_place = nullptr;  // of the same scope

// A read belongs to one trace, and there to one place: each replica has its own copy.
struct CachedRead {
  std::shared_ptr<const VariableSpec> variable;
  std::uint64_t trace;
  const ScopePlace* place;
  auto operator<=>(const CachedRead&) const = default;
};
thread_local std::optional<std::map<CachedRead, Array>> cached_reads;  // set within CachedReads

const VariableSpec& checked(const Variable& variable) {
  if (!variable.defined())
    throw FailedPreconditionError("the Variable is empty: no strategy has made it");
  return variable.spec();
}

TensorType type_of(const Variable& variable) { return {checked(variable).dtype, variable.shape()}; }

// Outside of a traced function an effect happens now: the node is lowered as a function of its own
// and run by the strategy that made the variable.
std::vector<Tensor> happen(const std::shared_ptr<ArrayNode>& node) {
  if (node->runtime == nullptr)
    throw FailedPreconditionError(str("the variable \"", node->variable->name,
                                      "\" is used outside of a function, and no strategy ",
                                      "of this process made it; use it inside a function"));
  Lowering request;
  if (node->op->effect == Effect::kUpdate)
    request.effects = {node};
  else
    request.outputs = {{"", Array(node, 0)}};
  return node->runtime->run_now(lower(request));
}

// Outside of a trace the read happens now, and the node keeps the value for all who use it.
Array record_read(const Variable& variable, std::string_view op, std::vector<Array> inputs) {
  TensorType type = type_of(variable);
  auto node = record_effect(
      {op, std::move(inputs), {}, {std::move(type)}, variable.shared_spec(), variable.runtime()});
  if (node->trace == 0) node->value = happen(node)[0];
  const Array own(node, 0);
  return variable.runtime() == nullptr ? own : variable.runtime()->read_here(variable, own);
}

// Checked here as well as on the ps, so that the error shows where the update is written. An update
// in which no other replica has a share is the operation that it always was, so that the graphs of
// one replica stay as they are.
void record_update(const Variable& variable, VariableChange change, std::vector<Array> inputs) {
  TensorType type = type_of(variable);
  verify_update(variable.spec(), change.rule, change.sparse);
  Array& value = inputs[change.sparse ? 1 : 0];
  change.value = value;
  if (variable.runtime() != nullptr)
    change = variable.runtime()->change_here(variable, std::move(change));
  value = change.value;
  Attributes attributes{{"rule", change.rule}, {"sparse", change.sparse}};
  const bool shared = change.shares != Aggregation::kNone;
  if (shared) attributes.set("shares", std::string(aggregation_name(change.shares)));
  try {
    auto node = record_effect({shared ? "update_shared" : "update_variable",
                               std::move(inputs),
                               std::move(attributes),
                               {std::move(type)},
                               variable.shared_spec(),
                               variable.runtime(),
                               change.mirrored});
    if (node->trace == 0) happen(node);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str("variable \"", variable.name(), "\": ", error.what()));
  }
}

// `value`, or, where it is a C++ integer, the same number in the variable's type.
Array of_type(const Variable& variable, const Array& value) {
  return value.defined() ? value.beside(checked(variable).dtype) : value;
}

// A zero for each element of the rows of these ids, int64[n].
Array zeros_of_rows(const VariableSpec& spec, const Array& ids) {
  Array zeros = cast(zeros_like(ids), spec.dtype);
  for (int i = 1; i < spec.shape.rank(); ++i) zeros = expand_dims(zeros, -1);
  return zeros + Array(Tensor::zeros(spec.dtype, spec.shape.with_dim(0, 1)));
}

// Ids of any shape mean a list of rows.
void record_scatter(const Variable& variable, RuleKind kind, const Array& ids, const Array& rows) {
  const VariableSpec& spec = checked(variable);
  if (spec.shape.rank() == 0)
    throw InvalidArgumentError(str("the variable \"", spec.name, "\" is a scalar and has no rows"));
  Array flat_ids = cast(ids, DType::kInt64), flat_rows = rows;
  if (ids.rank() != 1) {
    flat_ids = reshape(flat_ids, {Shape::kUnknown});
    flat_rows = reshape(rows, spec.shape.with_dim(0, Shape::kUnknown));
  }
  record_update(variable, {.rule = {kind, {}}, .sparse = true}, {flat_ids, flat_rows});
}

}  // namespace

Array Variable::read() const {
  verify_whole_read(checked(*this));
  if (!cached_reads) return record_read(*this, "read_variable", {});
  const TraceContext* trace = TraceContext::current();
  Array& cached =
      (*cached_reads)[{spec_, trace == nullptr ? 0 : trace->id(), current_scope_place()}];
  if (!cached.defined()) cached = record_read(*this, "read_variable", {});
  return cached;
}
Array Variable::gather(const Array& ids) const {
  return record_read(*this, "gather_variable", {ids});
}
void Variable::assign(const Array& value) const {
  record_update(*this, {.rule = {RuleKind::kAssign, {}}}, {of_type(*this, value)});
}
void Variable::assign_add(const Array& value) const {
  record_update(*this, {.rule = {RuleKind::kAssignAdd, {}}}, {of_type(*this, value)});
}
void Variable::assign_sub(const Array& value) const {
  record_update(*this, {.rule = {RuleKind::kAssignSub, {}}}, {of_type(*this, value)});
}
void Variable::scatter_add(const Array& ids, const Array& rows) const {
  record_scatter(*this, RuleKind::kAssignAdd, ids, rows);
}
void Variable::scatter_sub(const Array& ids, const Array& rows) const {
  record_scatter(*this, RuleKind::kAssignSub, ids, rows);
}
void Variable::scatter_mul(const Array& ids, const Array& rows) const {
  record_scatter(*this, RuleKind::kAssignMul, ids, rows);
}
void Variable::scatter_div(const Array& ids, const Array& rows) const {
  record_scatter(*this, RuleKind::kAssignDiv, ids, rows);
}
void Variable::scatter_min(const Array& ids, const Array& rows) const {
  record_scatter(*this, RuleKind::kAssignMin, ids, rows);
}
void Variable::scatter_max(const Array& ids, const Array& rows) const {
  record_scatter(*this, RuleKind::kAssignMax, ids, rows);
}
void Variable::scatter_update(const Array& ids, const Array& rows) const {
  record_scatter(*this, RuleKind::kAssign, ids, rows);
}

void Variable::evict(const Array& ids) const {
  const VariableSpec& spec = checked(*this);
  verify_update(spec, eviction_rule(), true);
  const Array flat = reshape(cast(ids, DType::kInt64), {Shape::kUnknown});
  record_update(*this, {.rule = eviction_rule(), .sparse = true},
                {flat, zeros_of_rows(spec, flat)});
}

void Variable::update(const UpdateRule& rule, const Array& gradient, const Array& learning_rate,
                      GradientOf whose) const {
  std::vector<Array> inputs{gradient};
  if (!is_assignment(rule.kind)) inputs.push_back(learning_rate);
  record_update(*this, {.rule = rule, .of_all_replicas = whose == GradientOf::kAllReplicas},
                std::move(inputs));
}

void Variable::update(const UpdateRule& rule, const IndexedSlices& gradient,
                      const Array& learning_rate) const {
  std::vector<Array> inputs{gradient.ids, gradient.rows};
  if (!is_assignment(rule.kind)) inputs.push_back(learning_rate);
  record_update(*this, {.rule = rule, .sparse = true}, std::move(inputs));
}

CachedReads::CachedReads() {
  if (cached_reads) throw InvalidArgumentError("cache_variable_reads: one is open already");
  cached_reads.emplace();
}
CachedReads::~CachedReads() { cached_reads.reset(); }

// ---- several replicas ----

Array EagerRuntime::read_here(const Variable&, const Array& own) { return own; }
VariableChange EagerRuntime::change_here(const Variable&, VariableChange change) { return change; }

Array sum_over_replicas(const Variable& variable, const Array& x) {
  EagerRuntime* runtime = variable.runtime();
  return runtime == nullptr || runtime->gradients_here() == 1 ? x : all_reduce(ReduceOp::kSum, x);
}

// A program without a strategy works as if a scope of this process's own runtime were open.
VariableCreator& current_variable_creator() {
  return current_creator != nullptr ? *current_creator : default_variable_creator();
}

const ScopePlace* current_scope_place() { return current_place; }

// Scopes nest on a thread: each one remembers what it hides.
Scope::Scope(VariableCreator& creator, const ScopePlace* place)
    : previous_(current_creator), previous_place_(current_place) {
  current_creator = &creator;
  current_place = place;
}
Scope::~Scope() {
  current_creator = previous_;
  current_place = previous_place_;
}

}  // namespace cairn
