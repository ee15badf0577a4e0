#include "core/exec/step_updates.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "core/base/clones.h"
#include "core/exec/step_reads.h"
#include "core/graph/op_def.h"

namespace cairn {
namespace {

// Rows are added in the order in which they occur, so equal inputs give equal bits.
CAIRN_CLONES void sum_floats(const std::int32_t* places, std::int64_t n, std::int64_t dim,
                             const float* rows, float* sums) {
  if (dim == 1) {
    for (std::int64_t i = 0; i < n; ++i) sums[places[i]] += rows[i];
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    float* __restrict to = sums + places[i] * dim;
    const float* __restrict from = rows + i * dim;
    for (std::int64_t j = 0; j < dim; ++j) to[j] += from[j];
  }
}

// T is unsigned, since overflow is defined there: the sum wraps around.
template <typename T>
void sum_integers(const std::int32_t* places, std::int64_t n, std::int64_t dim,
                  const std::byte* rows, std::byte* sums) {
  const T* from = reinterpret_cast<const T*>(rows);
  T* to = reinterpret_cast<T*>(sums);
  for (std::int64_t i = 0; i < n * dim; ++i) to[places[i / dim] * dim + i % dim] += from[i];
}

// Rows of equal ids become one, element by element, from `first` on, which leaves any other number
// as it is.
template <typename T, typename F>
void fold_elements(const std::int32_t* places, std::int64_t n, std::int64_t dim,
                   const std::byte* rows, std::byte* folded, std::int64_t count, T first, F fold) {
  const T* from = reinterpret_cast<const T*>(rows);
  T* const to = reinterpret_cast<T*>(folded);
  std::fill_n(to, count * dim, first);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < dim; ++j) {
      T& one = to[places[i] * dim + j];
      one = fold(one, from[i * dim + j]);
    }
}

// Products of integers wrap around, so they are computed unsigned.
template <typename T, typename Unsigned = T>
void fold_rows(EqualIds how, const std::int32_t* places, std::int64_t n, std::int64_t dim,
               const std::byte* rows, std::byte* folded, std::int64_t count) {
  using Limits = std::numeric_limits<T>;
  constexpr bool kInfinite = Limits::has_infinity;
  switch (how) {
    case EqualIds::kProduct:
      return fold_elements<Unsigned>(places, n, dim, rows, folded, count, Unsigned{1},
                                     [](Unsigned a, Unsigned b) { return a * b; });
    case EqualIds::kMin:
      return fold_elements<T>(places, n, dim, rows, folded, count,
                              kInfinite ? Limits::infinity() : Limits::max(),
                              [](T a, T b) { return b < a ? b : a; });
    case EqualIds::kMax:
      return fold_elements<T>(places, n, dim, rows, folded, count,
                              kInfinite ? -Limits::infinity() : Limits::lowest(),
                              [](T a, T b) { return b > a ? b : a; });
    default: CAIRN_CHECK(false, "summed rows have a loop of their own, and the last needs none");
  }
}

void fold_rows(DType dtype, EqualIds how, const std::int32_t* places, std::int64_t n,
               std::int64_t dim, const std::byte* rows, std::byte* folded, std::int64_t count) {
  switch (dtype) {
    case DType::kFloat32: return fold_rows<float>(how, places, n, dim, rows, folded, count);
    case DType::kInt32:
      return fold_rows<std::int32_t, std::uint32_t>(how, places, n, dim, rows, folded, count);
    case DType::kInt64:
      return fold_rows<std::int64_t, std::uint64_t>(how, places, n, dim, rows, folded, count);
    default: throw UnimplementedError(str("a sparse update of rows of ", dtype_name(dtype)));
  }
}

}  // namespace

bool StepUpdates::is_read_within(const BoundWave& wave, const Instruction& instruction) const {
  if (instruction.for_update < 0 || device_ == nullptr) return false;
  const BoundUpdate& reader = wave.updates[static_cast<std::size_t>(instruction.for_update)];
  return device_->updates.makes(reader) || device_->updates.sums(reader);
}

// ---- what the host looks at ----

// Copies for updates that a check then stops are wasted.
void StepUpdates::bring(std::size_t w) {
  BoundWave& wave = values_.bound().waves[w];
  if (device_ != nullptr) begin_sums(wave);
  for (const BoundUpdate& update : wave.updates)
    if (!checks_.stops(update.node)) bring(update);
}

// Rows that the device sums come as sums to where the store wants them.
void StepUpdates::begin_sums(BoundWave& wave) {
  std::vector<BoundUpdate*>& updates = values_.space().made.together;
  updates.clear();
  for (BoundUpdate& update : wave.updates) {
    update.summed =
        !checks_.stops(update.node) && !made_here(update) && device_->updates.sums(update);
    if (update.summed) updates.push_back(&update);
  }
  if (!updates.empty()) device_->updates.begin_sums(wave, updates);
}

// Begins to copy what make() reads, or of an update on the device its rate.
void StepUpdates::bring(const BoundUpdate& update) {
  const Node& n = values_.node(update.node);
  if (!is_assignment(n.attributes.get<UpdateRule>("rule").kind))
    values_.bring(values_.input(update.node, n.inputs.size() - 1));
  if (made_here(update)) return;
  if (!n.attributes.get<bool>("sparse")) {
    const std::int32_t value = values_.input(update.node, 0);
    values_.space().host.begin_update(
        update.node, values_.memory_for_update(update.node, values_.bound().type(value)),
        values_.data(value));
    return;
  }
  if (update.summed) return;
  values_.bring(values_.input(update.node, 1));
  if (values_.has_ids_of_pull(update.node)) return;
  const std::span<const std::int32_t> readers = values_.id_readers(update.node);
  if (readers.empty()) values_.bring(values_.input(update.node, 0));
  for (std::int32_t i : readers) values_.bring(values_.input(i, 0));
}

// ---- updates ----

// Updates that a failed check stops are left out; the others are made, and the error follows.
void StepUpdates::gather(std::size_t w) {
  std::vector<Update>& updates = values_.space().updates;
  updates.clear();
  if (device_ != nullptr) device_->updates.clear();
  for (BoundUpdate& update : values_.bound().waves[w].updates) {
    if (checks_.stops(update.node)) continue;
    if (!made_here(update)) {
      updates.push_back(make(update));
      continue;
    }
    device_->updates.add(update);
    if (memory_.wants_announced())
      updates.push_back({values_.stored_variable(update.node),
                         values_.node(update.node).attributes.get<UpdateRule>("rule")});
  }
}

bool StepUpdates::are_announced() const {
  return device_ != nullptr && device_->updates.has_any() && memory_.wants_announced();
}

// The device's were added in the order of announced().
void StepUpdates::leave_out(const std::vector<bool>& left_out) {
  std::vector<Update>& updates = values_.space().updates;
  CAIRN_CHECK(left_out.size() == updates.size(), "the store was told of ", updates.size(),
              " updates, and answers for ", left_out.size());
  std::vector<bool> of_device;
  for (std::size_t i = 0; i < updates.size(); ++i)
    if (!updates[i].value.defined()) of_device.push_back(left_out[i]);
  device_->updates.leave_out(of_device);
  std::size_t at = 0;
  std::erase_if(updates, [&](const Update&) { return left_out[at++]; });
}

std::span<Update> StepUpdates::pushed() {
  std::vector<Update>& updates = values_.space().updates;
  std::erase_if(updates, [](const Update& update) { return !update.value.defined(); });
  return updates;
}

Update StepUpdates::make(BoundUpdate& update) {
  const Node& n = values_.node(update.node);
  const UpdateRule& rule = n.attributes.get<UpdateRule>("rule");
  Update made{values_.stored_variable(update.node), rule, 0, {}, {}};
  if (is_shared_update(n)) made.shares = parse_aggregation(n.attributes.get<std::string>("shares"));
  if (!is_assignment(rule.kind)) made.learning_rate = values_.learning_rate(update.node);
  if (!n.attributes.get<bool>("sparse")) {
    made.value = dense_value(update.node);
    return made;
  }
  const std::optional<ReadAt> source = values_.ids_source(update.node);
  const bool of_pull = source && !source->here.served;
  if (!of_pull) find_own_ids(update);
  const UniqueIds& ids = of_pull ? source->ids : update.own_ids;
  made.ids = ids.tensor();
  made.value = update.summed ? values_.space().host.take(update.node) : sum_rows(update, ids, rule);
  return made;
}

void StepUpdates::find_own_ids(BoundUpdate& update) {
  UniqueIds& ids = update.own_ids;
  ids.clear();
  const auto add = [&](std::int32_t value) {
    add_ids(ids, values_.bound().type(value), values_.host_view(value));
  };
  std::span<const std::int32_t> nodes = values_.id_readers(update.node);
  if (nodes.empty()) nodes = {&update.node, 1};
  for (std::int32_t i : nodes) add(values_.input(i, 0));
  find_ids(ids, values_, nodes);
}

Tensor StepUpdates::dense_value(std::int32_t update) {
  if (!values_.on_host()) return values_.space().host.take(update);
  const std::int32_t value = values_.input(update, 0);
  const TensorType& type = values_.bound().type(value);
  Tensor made =
      Tensor::borrowed(type.dtype, type.shape, values_.data(value), values_.owner_of(value));
  // not ours: a value as read, an argument
  if (values_.bound().offset(value) == BoundPlan::kOutside) return made.clone();
  return made;
}

// Where the store wants the sums, or where the arena has room for them.
Tensor StepUpdates::memory_for_sums(const BoundUpdate& update, const TensorType& type) {
  if (!values_.on_host()) return values_.memory_for_update(update.node, type);
  auto place = memory_.update_place(values_.stored_variable(update.node), bytes_of(type));
  std::byte* const to = place != nullptr ? place.get() : values_.arena_at(update.sums_offset);
  return Tensor::borrowed(type.dtype, type.shape, to,
                          place != nullptr ? std::move(place) : values_.arena());
}

Tensor StepUpdates::sum_rows(const BoundUpdate& update, const UniqueIds& ids,
                             const UpdateRule& rule) {
  const std::int32_t value = values_.input(update.node, 1);
  TensorType type = values_.bound().type(value);
  const std::int64_t n = static_cast<std::int64_t>(ids.inverse().size()),
                     dim = type.shape.row_elements();
  type.shape = type.shape.with_dim(0, static_cast<std::int64_t>(ids.unique().size()));
  const std::size_t row_bytes = row_bytes_of(type);
  Tensor summed = memory_for_sums(update, type);
  std::byte* const sums = summed.mutable_raw();
  const std::byte* const rows = values_.host_view(value);
  const std::int32_t* places = ids.inverse().data();
  const EqualIds how = equal_ids(rule.kind);
  if (how == EqualIds::kLast) {
    for (std::int64_t i = 0; i < n; ++i)
      std::memcpy(sums + static_cast<std::size_t>(places[i]) * row_bytes,
                  rows + static_cast<std::size_t>(i) * row_bytes, row_bytes);
    return summed;
  }
  const auto count = static_cast<std::int64_t>(ids.unique().size());
  if (how != EqualIds::kSum) {
    fold_rows(type.dtype, how, places, n, dim, rows, sums, count);
    return summed;
  }
  std::memset(sums, 0, ids.unique().size() * row_bytes);
  switch (type.dtype) {
    case DType::kFloat32:
      sum_floats(places, n, dim, reinterpret_cast<const float*>(rows),
                 reinterpret_cast<float*>(sums));
      break;
    case DType::kInt32: sum_integers<std::uint32_t>(places, n, dim, rows, sums); break;
    case DType::kInt64: sum_integers<std::uint64_t>(places, n, dim, rows, sums); break;
    default: throw UnimplementedError(str("a sparse update of rows of ", dtype_name(type.dtype)));
  }
  return summed;
}

}  // namespace cairn
