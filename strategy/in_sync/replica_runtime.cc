#include "strategy/in_sync/replica_runtime.h"

#include <bit>
#include <cstring>

#include "core/graph/ops.h"
#include "core/graph/recording.h"
#include "strategy/base/strategy.h"
#include "strategy/in_sync/worker_group.h"

namespace cairn {
namespace {

bool being_traced() { return TraceContext::current() != nullptr; }

Tensor evaluated(Array value) { return value.eval(); }

InvalidArgumentError nothing_combines(const VariableSpec& spec) {
  return InvalidArgumentError(str(
      "the variable \"", spec.name,
      "\" has synchronization ON_READ and aggregation NONE, so that nothing says how its copies "
      "become one value: read it on the replicas, or give it an aggregation"));
}

}  // namespace

ReplicaRuntime::ReplicaRuntime(std::uint64_t seed, int replicas, Rows rows,
                               std::unique_ptr<Collective> group)
    : LocalRuntime(seed, cpu_device(), rows == Rows::kCopies ? replicas : 1),
      group_(std::move(group)),
      local_(replicas),
      replicas_(group_ ? replicas * group_->size() : replicas),
      first_(group_ ? replicas * group_->rank() : 0),
      rows_(rows) {}

// ---- making ----

Variable ReplicaRuntime::create_variable(VariableSpec spec) {
  if (rows_ == Rows::kCopies && spec.synchronization == Synchronization::kNone)
    throw InvalidArgumentError(
        str("the variable \"", spec.name,
            "\" has synchronization NONE, which copies cannot have: AUTO, ON_WRITE or ON_READ"));
  if (rows_ == Rows::kCopies && spec.aggregation == Aggregation::kMean &&
      spec.dtype != DType::kFloat32)
    throw InvalidArgumentError(str("the variable \"", spec.name, "\" is ", dtype_name(spec.dtype),
                                   ", and aggregation MEAN is of float32: choose another"));
  if (rows_ == Rows::kCopies && spec.hashed && spec.synchronization == Synchronization::kOnRead)
    throw InvalidArgumentError(
        str("the variable \"", spec.name,
            "\" is hashed, and cannot be combined when it is read: leave synchronization at AUTO"));
  if (!traced_.given_here()) agree(spec);
  return traced_.make(std::move(spec), [this](VariableSpec own) {
    return LocalRuntime::create_variable(std::move(own));
  });
}

// The initializer travels, not the value: tables that no message could hold are made from a seed. A
// value that the program computed itself is the exception.
void ReplicaRuntime::agree(VariableSpec& spec) const {
  if (group_ == nullptr) return;
  Initializer& own = spec.initializer;
  const std::string name =
      str('"', spec.name, "\" of ", TensorType{spec.dtype, spec.shape}.to_string());
  const Tensor first_name = group_->broadcast(Tensor::strings({1}, {name}), 0);
  if (first_name.string_values()[0] != name) {
    const FailedPreconditionError differs(
        str("worker ", group_->rank(), " makes the variable ", name, " where worker 0 makes ",
            first_name.string_values()[0], ": all must run the same program"));
    group_->abort({differs.code(), differs.what(), {}});
    throw differs;
  }
  const std::vector<std::int64_t> numbers = {
      static_cast<std::int64_t>(own.kind), std::bit_cast<std::int32_t>(own.a),
      std::bit_cast<std::int32_t>(own.b), static_cast<std::int64_t>(own.seed)};
  const Tensor of_first = group_->broadcast(Tensor::of<std::int64_t>({4}, numbers), 0);
  const auto all = of_first.values<std::int64_t>();
  own.kind = static_cast<Initializer::Kind>(all[0]);
  own.a = std::bit_cast<float>(static_cast<std::int32_t>(all[1]));
  own.b = std::bit_cast<float>(static_cast<std::int32_t>(all[2]));
  own.seed = static_cast<std::uint64_t>(all[3]);
  own.value = own.kind == Initializer::Kind::kValue ? group_->broadcast(own.value, 0) : Tensor();
}

// ---- contents of copies ----

VariableId ReplicaRuntime::number(const Variable& variable) const {
  for (VariableId id = 0; id < variables().size(); ++id)
    if (variables()[id].shared_spec() == variable.shared_spec()) return id;
  throw FailedPreconditionError(
      str("the variable \"", variable.name(), "\" was made by another strategy"));
}

Tensor ReplicaRuntime::value_of(int copy, VariableId id) {
  std::vector<Read> reads{{.variable = id}};
  store(copy).pull({}, reads);
  return reads[0].value;
}

void ReplicaRuntime::set_value(int copy, VariableId id, const Tensor& value) {
  std::vector<Update> updates{{.variable = id, .rule = {RuleKind::kAssign, {}}, .value = value}};
  store(copy).push({}, updates);
}

// Added in the order of replicas, as the group adds them where a function reads the variable.
Tensor ReplicaRuntime::combined_copies(VariableId id) {
  const VariableSpec& spec = store().spec(id);
  Array all = value_of(0, id);
  if (spec.aggregation == Aggregation::kNone && replicas_ > 1) throw nothing_combines(spec);
  if (spec.aggregation == Aggregation::kOnlyFirstReplica)
    return group_ ? group_->broadcast(evaluated(all), 0) : evaluated(all);
  for (int i = 1; i < copies(); ++i) all = all + Array(value_of(i, id));
  if (group_) all = Array(sum_of_members(*group_, evaluated(all)));
  if (spec.aggregation == Aggregation::kMean) all = all / Array(static_cast<float>(replicas_));
  return evaluated(all);
}

// Each copy's part of a sum. Integers are rounded towards zero, as in the reference.
Array ReplicaRuntime::share_of(const VariableSpec& spec, const Array& value) const {
  if (spec.aggregation != Aggregation::kSum || replicas_ == 1) return value;
  return value / Array(replicas_).beside(spec.dtype);
}

// A checkpoint has what a cross-replica read gave.
void ReplicaRuntime::restored(VariableId id) {
  const VariableSpec& spec = store().spec(id);
  if (!on_read(spec) || spec.aggregation != Aggregation::kSum || replicas_ == 1) return;
  const Tensor share = evaluated(share_of(spec, value_of(0, id)));
  for (int i = 0; i < copies(); ++i) set_value(i, id, share);
}

ReplicaRuntime::SavedValues::SavedValues(ReplicaRuntime& runtime) : runtime_(runtime) {
  for (VariableId id = 0; id < runtime.variables().size(); ++id) {
    const VariableSpec& spec = runtime.store().spec(id);
    if (!runtime.on_read(spec) || spec.aggregation == Aggregation::kNone) continue;
    const Tensor combined = runtime.combined_copies(id);
    own_.emplace(id, runtime.value_of(0, id));
    runtime.set_value(0, id, combined);
  }
}
ReplicaRuntime::SavedValues::~SavedValues() {
  for (const auto& [id, value] : own_) runtime_.set_value(0, id, value);
}

// ---- reading and changing ----

// If a read is computed at once, `own` has one copy's value, and the other copies are read beside
// it. A function meets the other replicas whenever it runs.
Array ReplicaRuntime::read_here(const Variable& variable, const Array& own) {
  const VariableSpec& spec = variable.spec();
  if (!on_read(spec) || context() != ContextHere::kCross) return own;
  if (spec.aggregation == Aggregation::kNone) throw nothing_combines(spec);
  if (replicas_ == 1) return own;
  if (!being_traced()) return Array(combined_copies(number(variable)));
  switch (spec.aggregation) {
    case Aggregation::kMean: return all_reduce(ReduceOp::kMean, own);
    case Aggregation::kSum: return all_reduce(ReduceOp::kSum, own);
    default: {
      const bool first = place_here()->part() == 0;
      return all_reduce(ReduceOp::kSum, where(Array(first), own, zeros_like(own)));
    }
  }
}

int ReplicaRuntime::gradients_here() const { return gradients_of(context(), replicas_); }

// An optimizer's update is the same for all aggregations: the sum of all replicas' gradients. Dense
// gradients come summed, rows are summed when they are pushed. Of an eviction the rows are those
// that any replica names.
VariableChange ReplicaRuntime::change_here(const Variable& variable, VariableChange change) {
  if (context() == ContextHere::kElsewhere) return change;
  if (change.rule == eviction_rule()) {
    if (context() == ContextHere::kReplica && replicas_ > 1) change.shares = Aggregation::kSum;
    return change;
  }
  if (!is_assignment(change.rule.kind)) {
    if (gradients_here() > 1 && !change.of_all_replicas) change.shares = Aggregation::kSum;
    return change;
  }
  if (on_read(variable.spec()) && change.sparse)
    throw UnimplementedError(str("rows of the variable \"", variable.name(),
                                 "\" cannot be changed: its synchronization is ON_READ"));
  return context() == ContextHere::kReplica ? change_of_replica(variable.spec(), std::move(change))
                                            : change_of_all(variable, std::move(change));
}

// Rows that are assigned have no sum: which of the values would a row get that one replica names?
// Nor have bounds, of which the reference takes neither sum nor mean.
VariableChange ReplicaRuntime::change_of_replica(const VariableSpec& spec, VariableChange change) {
  const bool copies = rows_ == Rows::kCopies;
  const bool sums = spec.aggregation == Aggregation::kSum || spec.aggregation == Aggregation::kMean;
  const EqualIds how = equal_ids(change.rule.kind);
  if (copies && change.sparse && sums && how != EqualIds::kSum && how != EqualIds::kProduct)
    throw UnimplementedError(str(how == EqualIds::kLast  ? "scatter_update"
                                 : how == EqualIds::kMin ? "scatter_min"
                                                         : "scatter_max",
                                 " of the variable \"", spec.name,
                                 "\" needs aggregation NONE or ONLY_FIRST_REPLICA, and has ",
                                 aggregation_name(spec.aggregation)));
  if (replicas_ == 1) return change;
  if (on_read(spec) || (copies && spec.aggregation == Aggregation::kNone)) {
    apart_.insert(spec.name);
    return change;
  }
  return shared_by_replicas(spec, std::move(change), replicas_);
}

// Adding to a variable that is combined when it is read changes what is read, and so assigns to all
// copies. To a sum that would make every copy's part of it the same, so the reference refuses it.
VariableChange ReplicaRuntime::change_of_all(const Variable& variable, VariableChange change) {
  const VariableSpec& spec = variable.spec();
  if (!on_read(spec)) return change;
  if (spec.aggregation == Aggregation::kNone) throw nothing_combines(spec);
  if (change.rule.kind != RuleKind::kAssign) {
    if (spec.aggregation == Aggregation::kSum)
      throw InvalidArgumentError(
          str("the variable \"", spec.name,
              "\" is the sum of its copies: assign_add and assign_sub are not for cross-replica "
              "context, assign is"));
    const bool adds = change.rule.kind == RuleKind::kAssignAdd;
    if (!adds && change.rule.kind != RuleKind::kAssignSub)
      throw UnimplementedError(str(rule_name(change.rule), " of the variable \"", spec.name,
                                   "\", whose synchronization is ON_READ"));
    change.value = adds ? variable.read() + change.value : variable.read() - change.value;
    change.rule = {RuleKind::kAssign, {}};
  }
  change.value = share_of(spec, change.value);
  return change;
}

// Outside of functions: reads come from the first copy, updates go to all.
std::vector<Tensor> ReplicaRuntime::run_now(const ConcreteFunction& function) {
  std::vector<Tensor> outputs = run_on(0, function);
  if (function.graph.updates_variables())
    for (int i = 1; i < copies(); ++i) run_on(i, function);
  return outputs;
}

// ---- copies that drift ----

namespace {

const std::byte* part_of_row(const RowBlock& block, std::int64_t row, std::size_t part) {
  const std::int64_t at =
      row * block.row_stride + static_cast<std::int64_t>(part) * block.slot_offset;
  return block.base + static_cast<std::size_t>(at) * dtype_bytes(block.dtype);
}

// Compares parameters and slots; the bytes between them mean nothing.
bool same_row(const RowBlock& a, const RowBlock& b, const UpdateRule& rule, std::int64_t row) {
  const std::size_t element = dtype_bytes(a.dtype);
  const std::size_t slots = rule_slots(rule).size();
  for (std::size_t part = 0; part <= slots; ++part) {
    const std::int64_t width = part == 0 ? a.dim : slot_width(rule.kind, a.dim);
    if (std::memcmp(part_of_row(a, row, part), part_of_row(b, row, part),
                    static_cast<std::size_t>(width) * element) != 0)
      return false;
  }
  return true;
}

// FNV-1a over the same bytes.
std::uint64_t fingerprint(const RowBlock& block, const UpdateRule& rule) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const std::size_t slots = rule_slots(rule).size();
  for (std::int64_t row = 0; row < block.rows; ++row)
    for (std::size_t part = 0; part <= slots; ++part) {
      const std::int64_t width = part == 0 ? block.dim : slot_width(rule.kind, block.dim);
      const std::byte* const from = part_of_row(block, row, part);
      const std::size_t bytes = static_cast<std::size_t>(width) * dtype_bytes(block.dtype);
      for (std::size_t i = 0; i < bytes; ++i)
        hash = (hash ^ std::to_integer<std::uint64_t>(from[i])) * 0x100000001b3;
    }
  return hash;
}

}  // namespace

// Variables that replicas change each for itself may differ, and are left out. Hashed rows lie in
// the order in which they were made, which is the same in all copies as long as none drifts.
void ReplicaRuntime::require_equal_copies() {
  for (int copy = 1; copy < copies(); ++copy)
    for (VariableId id = 0; id < variables().size(); ++id) {
      const VariableSpec& spec = store().spec(id);
      if (apart_.count(spec.name) > 0) continue;
      const RowBlock first = store().block(id), other = store(copy).block(id);
      const std::int64_t rows = std::min(first.rows, other.rows);
      std::int64_t row = 0;
      while (row < rows && same_row(first, other, store().rule(id), row)) ++row;
      const bool counted = store().updates(id) == store(copy).updates(id);
      if (row == rows && first.rows == other.rows && counted) continue;
      const FailedPreconditionError differs(str("replica ", first_ + copy,
                                                "'s copy of the variable \"", spec.name,
                                                "\" differs from replica ", first_, "'s at row ",
                                                row, ": something changed one of them alone"));
      if (group_) group_->abort({differs.code(), differs.what(), {}});
      throw differs;
    }
  if (group_) require_equal_processes();
}

// Processes tell one another a number for each variable: a copy is as large as a model.
void ReplicaRuntime::require_equal_processes() {
  std::vector<std::int64_t> own;
  for (VariableId id = 0; id < variables().size(); ++id) {
    const bool apart = apart_.count(store().spec(id).name) > 0;
    const std::uint64_t print = fingerprint(store().block(id), store().rule(id));
    own.push_back(apart ? 0 : static_cast<std::int64_t>(print) ^ store().updates(id));
  }
  const Tensor prints = Tensor::of<std::int64_t>({static_cast<std::int64_t>(own.size())}, own);
  const std::vector<Tensor> all = group_->all_gather(prints);
  const auto first = all[0].values<std::int64_t>();
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const auto other = all[rank].values<std::int64_t>();
    for (std::size_t id = 0; id < std::min(first.size(), other.size()); ++id)
      if (first[id] != other[id])
        throw FailedPreconditionError(
            str("worker ", rank, "'s copy of the variable \"", variables()[id].name(),
                "\" differs from worker 0's: something changed one of them alone"));
  }
}

}  // namespace cairn
