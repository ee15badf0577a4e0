// What a step asks for: which rows it reads, how they are dealt out, and what it pushes.
#include <algorithm>
#include <cstring>

#include "core/exec/step.h"
#include "core/graph/op_def.h"

namespace cairn {

namespace {

// Copies of known size are moves, not calls; these are the commonest rows.
template <std::size_t kBytes>
void copy_rows_of(const std::int32_t* places, std::int64_t n, const std::byte* from,
                  std::byte* to) {
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(to + static_cast<std::size_t>(i) * kBytes,
                from + static_cast<std::size_t>(places[i]) * kBytes, kBytes);
}

void copy_rows(const std::int32_t* places, std::int64_t n, std::size_t bytes, const std::byte* from,
               std::byte* to) {
  switch (bytes) {
    case 4: return copy_rows_of<4>(places, n, from, to);
    case 32: return copy_rows_of<32>(places, n, from, to);
    case 64: return copy_rows_of<64>(places, n, from, to);
    default:
      for (std::int64_t i = 0; i < n; ++i)
        std::memcpy(to + static_cast<std::size_t>(i) * bytes,
                    from + static_cast<std::size_t>(places[i]) * bytes, bytes);
  }
}

void add_ids(UniqueIds& ids, const TensorType& type, const std::byte* data) {
  std::int64_t n = type.shape.elements();
  if (type.dtype == DType::kInt32)
    ids.add(reinterpret_cast<const std::int32_t*>(data), n);
  else
    ids.add(reinterpret_cast<const std::int64_t*>(data), n);
}

// An id is verified before it is used: from here on it is an index.
void find_ids(UniqueIds& ids, const GraphVariable& variable) {
  std::int64_t bound = variable.type.shape[0];
  if (std::int64_t at = ids.first_outside(bound); at >= 0)
    throw InvalidArgumentError(str("variable \"", variable.name, "\": id ", ids.id(at),
                                   " at position ", at, " is outside [0, ", bound, ")"));
  ids.find(bound);
}

}  // namespace

const GraphVariable& Step::variable_of(std::int32_t i) const {
  return plan_->graph
      .variables[static_cast<std::size_t>(node(i).attributes.get<std::int64_t>("variable"))];
}

VariableId Step::stored_variable(std::int32_t i) const {
  return plan_->bound[static_cast<std::size_t>(node(i).attributes.get<std::int64_t>("variable"))];
}

// The owner that keeps a value's memory while a request refers to it: that of the place which the
// store chose for the value, or else the arena.
const std::shared_ptr<std::byte>& Step::owner_of(std::int32_t value) const {
  for (const auto& [placed, place] : placed_)
    if (placed == bound_->root(value)) return place;
  return arena_;
}

// ---- pull ----

// Those that the device serves from its own memory are not asked for.
std::span<Read> Step::reads() {
  BoundWave& wave = bound_->waves[wave_];
  space_.asked.clear();
  space_.asked_by.clear();
  // The previous run may have used a store that lends its variables.
  for (ReadHere& here : wave.here) here.served = false;
  for (std::size_t g = 0; g < wave.reads.size(); ++g) {
    // The ids were computed from the value that failed the check: such rows must not be asked for.
    if (failed_ && std::any_of(plan_->waves[wave_].reads[g].nodes.begin(),
                               plan_->waves[wave_].reads[g].nodes.end(),
                               [&](std::int32_t i) { return by_stopped_ids(i); }))
      raise_failed_check();
    if (lender_ != nullptr && serve(g)) continue;
    request(g);
    if (lender_ == nullptr) continue;
    space_.asked.push_back(wave.reads[g]);
    space_.asked_by.push_back(g);
  }
  enqueue_lookups(wave.lookups);
  return lender_ == nullptr ? std::span<Read>(wave.reads) : std::span<Read>(space_.asked);
}

// The ids of all reads of one variable in the wave are joined, so that a row is asked for once,
// however often it is used.
void Step::request(std::size_t g) {
  const ReadGroup& group = plan_->waves[wave_].reads[g];
  Read& read = bound_->waves[wave_].reads[g];
  read.variable = plan_->bound[static_cast<std::size_t>(group.variable)];
  read.value = {};
  if (group.whole) return;
  UniqueIds& ids = bound_->waves[wave_].ids[g];
  ids.clear();
  for (std::int32_t i : group.nodes) add_ids(ids, bound_->type(input(i, 0)), on_host(input(i, 0)));
  find_ids(ids, plan_->graph.variables[static_cast<std::size_t>(group.variable)]);
  read.ids = ids.tensor();
}

void Step::after_pull() {
  for (std::size_t k = 0; k < space_.asked.size(); ++k)
    bound_->waves[wave_].reads[space_.asked_by[k]] = std::move(space_.asked[k]);
  for (std::size_t g = 0; g < bound_->waves[wave_].reads.size(); ++g) {
    if (bound_->waves[wave_].here[g].served) continue;
    const ReadGroup& group = plan_->waves[wave_].reads[g];
    const GraphVariable& variable =
        plan_->graph.variables[static_cast<std::size_t>(group.variable)];
    const Read& read = bound_->waves[wave_].reads[g];
    TensorType want = variable.type;
    if (!group.whole) want.shape = want.shape.with_dim(0, read.ids.shape()[0]);
    CAIRN_CHECK(read.value.defined() && read.value.type() == want, "the store gave ",
                read.value.defined() ? read.value.type().to_string() : "nothing", " for variable ",
                variable.name, "; ", want.to_string(), " was asked for");
    if (deals_here(group))
      deal_out(g);
    else if (!group.whole)
      expand(g);
    else
      for (std::int32_t i : group.nodes) give(plan_->value({i, 0}), read.value);
  }
  enqueue_lookups(bound_->waves[wave_].dealt, DType::kInt32);
}

// Deals the distinct rows out to everybody who asked for them.
void Step::expand(std::size_t g) {
  const ReadGroup& group = plan_->waves[wave_].reads[g];
  const TensorType& type = plan_->graph.variables[static_cast<std::size_t>(group.variable)].type;
  std::size_t bytes = static_cast<std::size_t>(type.shape.row_elements()) * dtype_bytes(type.dtype);
  const std::int32_t* places = bound_->waves[wave_].ids[g].inverse().data();
  for (std::int32_t i : group.nodes) {
    std::int64_t n = bound_->type(input(i, 0)).shape.elements();
    std::byte* const wanted = const_cast<std::byte*>(data(plan_->value({i, 0})));
    const std::size_t all = static_cast<std::size_t>(n) * bytes;
    if (!space_.on_host) space_.staging.resize(std::max(space_.staging.size(), all));
    std::byte* const to = space_.on_host ? wanted : space_.staging.data();
    copy_rows(places, n, bytes, bound_->waves[wave_].reads[g].value.raw(), to);
    if (!space_.on_host) space_.device.copy(Device::Direction::kIn, wanted, to, all);
    places += n;
  }
}

// ---- push ----

// Updates that a failed check stops are left out; the others are made, and the error follows.
std::span<Update> Step::updates() {
  space_.updates.clear();
  space_.made.updates.clear();
  for (BoundUpdate& update : bound_->waves[wave_].updates) {
    if (stops(update.node)) continue;
    const bool here = made_here(update);
    if (here) space_.made.updates.push_back(&update);
    if (!here || places_.wants_told())
      space_.updates.push_back(here ? told_update(update) : make_update(update));
  }
  if (!places_.wants_told()) make_updates_here();
  pushed_ = pushed_ || !space_.updates.empty();
  return space_.updates;
}

Update Step::make_update(BoundUpdate& update) {
  const Node& n = node(update.node);
  const UpdateRule& rule = n.attributes.get<UpdateRule>("rule");
  bool sparse = n.attributes.get<bool>("sparse");
  Update made{stored_variable(update.node), rule, 0, {}, {}};
  if (is_shared_update(n))
    made.shares = parse_aggregation(n.attributes.get<std::string>("shares"));
  if (!is_assignment(rule.kind)) made.learning_rate = learning_rate(update.node);
  if (!sparse) {
    made.value = dense_value(update.node);
    return made;
  }
  const bool of_read = has_ids_of_read(update);
  if (!of_read) find_own_ids(update);
  UniqueIds& ids = of_read ? ids_of_source(update) : update.own_ids;
  made.ids = ids.tensor();
  made.value = update.summed ? space_.host.take(update.node) : sum_rows(update, ids, rule);
  return made;
}

UniqueIds& Step::ids_of_source(const BoundUpdate& update) {
  const UpdateIds& source = plan_->update_ids[static_cast<std::size_t>(update.node)];
  return bound_->waves[static_cast<std::size_t>(source.wave)]
      .ids[static_cast<std::size_t>(source.group)];
}

// Whether the update's ids are those of a pull of this run.
bool Step::has_ids_of_read(const BoundUpdate& update) const {
  const UpdateIds& source = plan_->update_ids[static_cast<std::size_t>(update.node)];
  return source.wave >= 0 && !bound_->waves[static_cast<std::size_t>(source.wave)]
                                  .here[static_cast<std::size_t>(source.group)]
                                  .served;
}

void Step::find_own_ids(BoundUpdate& update) {
  UniqueIds& ids = update.own_ids;
  ids.clear();
  const std::span<const std::int32_t> readers = id_readers(update.node);
  if (readers.empty())
    add_ids(ids, bound_->type(input(update.node, 0)), on_host(input(update.node, 0)));
  for (std::int32_t i : readers) add_ids(ids, bound_->type(input(i, 0)), on_host(input(i, 0)));
  find_ids(ids, variable_of(update.node));
}

// The gathers whose ids, one behind another, are the update's, which are then not computed; none:
// the update's input is.
std::span<const std::int32_t> Step::id_readers(std::int32_t update) const {
  const UpdateIds& source = plan_->update_ids[static_cast<std::size_t>(update)];
  if (source.wave < 0) return {};
  return plan_->waves[static_cast<std::size_t>(source.wave)]
      .reads[static_cast<std::size_t>(source.group)]
      .nodes;
}

float Step::learning_rate(std::int32_t update) {
  float rate = 0;
  std::memcpy(&rate, on_host(input(update, node(update).inputs.size() - 1)), sizeof rate);
  return rate;
}

Tensor Step::dense_value(std::int32_t update) {
  const std::int32_t value = input(update, 0);
  const TensorType& type = bound_->type(value);
  if (!space_.on_host) return space_.host.take(update);
  Tensor made = Tensor::borrowed(type.dtype, type.shape, data(value), owner_of(value));
  // not ours: a value as read, an argument
  if (bound_->offset(value) == BoundPlan::kOutside) return made.clone();
  return made;
}

// For an update's values, of a device that cannot make them there: where the store wants them.
Tensor Step::host_tensor(std::int32_t update, const TensorType& type) {
  auto place = places_.update_place(
      stored_variable(update),
      static_cast<std::size_t>(type.shape.elements()) * dtype_bytes(type.dtype));
  if (place == nullptr) return Tensor(type.dtype, type.shape);
  const std::byte* const at = place.get();
  return Tensor::borrowed(type.dtype, type.shape, at, std::move(place));
}

}  // namespace cairn
