#include "core/rows/local_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cairn {
namespace {

// From here on slots stand beside their row, since few rows are touched at a time; below, in
// planes, which read faster whole.
constexpr std::int64_t kRowsBeside = 1 << 14;
constexpr std::size_t kPrefetchAhead = 8;

std::byte* row_at(const RowBlock& block, std::int64_t row) {
  return block.base + static_cast<std::size_t>(row * block.row_stride) * dtype_bytes(block.dtype);
}
std::size_t row_bytes(const RowBlock& block) {
  return static_cast<std::size_t>(block.dim) * dtype_bytes(block.dtype);
}

void check_ids(const VariableSpec& spec, const Tensor& ids) {
  if (ids.dtype() != DType::kInt64 || ids.shape().rank() != 1)
    throw InvalidArgumentError(
        str("ids of \"", spec.name, "\" are ", ids.type().to_string(), "; int64[n] is wanted"));
  for (std::int64_t id : ids.values<std::int64_t>())
    if (id < 0 || id >= spec.rows())
      throw InvalidArgumentError(
          str("the id ", id, " is not in [0, ", spec.rows(), "), the rows of \"", spec.name, "\""));
}

void copy_row_range(const RowBlock& from, std::byte* to) {
  std::size_t bytes = row_bytes(from);
  if (from.row_stride == from.dim) {
    std::memcpy(to, from.base, bytes * static_cast<std::size_t>(from.rows));
    return;
  }
  for (std::int64_t r = 0; r < from.rows; ++r)
    std::memcpy(to + static_cast<std::size_t>(r) * bytes, row_at(from, r), bytes);
}

void copy_rows(const RowBlock& from, std::span<const std::int64_t> ids, std::byte* to) {
  std::size_t bytes = row_bytes(from);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i + kPrefetchAhead < ids.size()) __builtin_prefetch(row_at(from, ids[i + kPrefetchAhead]));
    std::memcpy(to + i * bytes, row_at(from, ids[i]), bytes);
  }
}

// Initial values for the slots of rows [first, end).
void fill_slots(const RowBlock& block, const UpdateRule& rule, std::int64_t first,
                std::int64_t end) {
  const auto slots = rule_slots(rule);
  auto* base = reinterpret_cast<float*>(block.base);
  for (std::int64_t r = first; r < end; ++r)
    for (std::size_t k = 0; k < slots.size(); ++k)
      std::fill_n(
          base + r * block.row_stride + static_cast<std::int64_t>(k + 1) * block.slot_offset,
          slot_width(rule.kind, block.dim), slots[k].initial_value);
}

}  // namespace

const LocalStore::Entry& LocalStore::entry(VariableId id) const {
  if (id >= entries_.size())
    throw InvalidArgumentError(str("there is no variable ", id, "; there are ", entries_.size()));
  return entries_[id];
}

// Memory for so many rows and the rule's slots; the caller fills it.
void LocalStore::lay_out(Entry& entry, std::int64_t rows) {
  const VariableSpec& spec = *entry.spec;
  const std::int64_t dim = spec.dim(), width = slot_width(entry.rule.kind, dim);
  const std::int64_t row = dim + width * static_cast<std::int64_t>(rule_slots(entry.rule).size());
  entry.memory = Tensor(spec.dtype, {rows, row});
  // planes are as wide as the parameters, and do not grow
  const bool beside = spec.hashed || rows >= kRowsBeside || width != dim;
  entry.block = {spec.dtype, entry.memory.mutable_raw(), rows,
                 dim,        beside ? row : dim,         beside ? dim : rows * dim};
}

VariableId LocalStore::create(std::shared_ptr<const VariableSpec> spec) {
  verify_spec(*spec);
  Entry made{std::move(spec), {}, {}, {}, 0, {}};
  if (made.spec->hashed) made.index.emplace();
  lay_out(made, made.spec->hashed ? 0 : made.spec->rows());
  initialize_rows(*made.spec, seed_, 0, made.block.rows, made.block.row_stride, made.block.base);
  entries_.push_back(std::move(made));
  return static_cast<VariableId>(entries_.size() - 1);
}

void LocalStore::add_slots(VariableId id, const UpdateRule& rule) {
  verify_rule(rule);
  Entry& old = entry(id);
  auto slots = rule_slots(rule);
  if (slots.empty() || rule == old.rule) return;
  if (!rule_slots(old.rule).empty())
    throw InvalidArgumentError(str("the variable \"", old.spec->name, "\" is updated by \"",
                                   rule_name(old.rule.kind), "\"; it cannot have the slots of \"",
                                   rule_name(rule.kind), "\" or of other constants as well"));
  if (old.spec->dtype != DType::kFloat32)
    throw InvalidArgumentError(str("the variable \"", old.spec->name, "\" is ",
                                   dtype_name(old.spec->dtype), "; optimizers want float32"));
  Entry made{old.spec, rule, {}, {}, old.updates, std::move(old.index)};
  lay_out(made, old.block.rows);
  for (std::int64_t r = 0; r < made.block.rows; ++r)
    std::memcpy(row_at(made.block, r), row_at(old.block, r), row_bytes(old.block));
  fill_slots(made.block, rule, 0, made.block.rows);
  old = std::move(made);
}

// Rows that are not here yet are created, with their initial values.
void LocalStore::make_places(Entry& entry, std::span<const std::int64_t> ids,
                             std::vector<std::int64_t>& places) {
  const std::int64_t before = entry.index->size();
  places.resize(ids.size());
  entry.index->find_or_add(ids, places.data());
  const std::int64_t held = entry.index->size();
  if (held > entry.block.rows) {
    const Tensor old = entry.memory;
    lay_out(entry, std::max(held, entry.block.rows + entry.block.rows / 2));
    if (before > 0)
      std::memcpy(entry.memory.mutable_raw(), old.raw(),
                  static_cast<std::size_t>(before * entry.block.row_stride) *
                      dtype_bytes(entry.block.dtype));
  }
  for (std::int64_t place = before; place < held; ++place)
    initialize_rows(*entry.spec, seed_, entry.index->ids()[static_cast<std::size_t>(place)], 1,
                    entry.block.row_stride, row_at(entry.block, place));
  fill_slots(entry.block, entry.rule, before, held);
}

void LocalStore::read(Read& read) const {
  const Entry& from = entry(read.variable);
  if (!read.ids.defined()) {
    verify_whole_read(*from.spec);
    read.value = Tensor(from.spec->dtype, from.spec->shape);
    copy_row_range(from.block, read.value.mutable_raw());
    return;
  }
  check_ids(*from.spec, read.ids);
  read.value = Tensor(from.spec->dtype, from.spec->shape.with_dim(0, read.ids.shape()[0]));
  const auto ids = read.ids.values<std::int64_t>();
  if (!from.index) return copy_rows(from.block, ids, read.value.mutable_raw());
  std::vector<std::int64_t> places(ids.size());
  from.index->find(ids, places.data());
  const std::size_t bytes = row_bytes(from.block);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::byte* to = read.value.mutable_raw() + i * bytes;
    if (places[i] != IdIndex::kAbsent)
      std::memcpy(to, row_at(from.block, places[i]), bytes);
    else
      initialize_rows(*from.spec, seed_, ids[i], 1, from.block.dim, to);
  }
}

void LocalStore::pull(const StepContext&, std::span<Read> reads) {
  for (Read& one : reads) read(one);
}

void LocalStore::check(const Update& update) const {
  const Entry& to = entry(update.variable);
  verify_rule(update.rule);
  verify_learning_rate(update.rule, update.learning_rate);
  bool sparse = update.ids.defined();
  verify_update(*to.spec, update.rule, sparse);
  if (sparse && to.spec->shape.rank() == 0)
    throw InvalidArgumentError(
        str("the variable \"", to.spec->name, "\" is a scalar and has no rows"));
  if (sparse) check_ids(*to.spec, update.ids);
  TensorType wanted{to.spec->dtype,
                    sparse ? to.spec->shape.with_dim(0, update.ids.shape()[0]) : to.spec->shape};
  if (!update.value.defined() || update.value.type() != wanted)
    throw InvalidArgumentError(str("an update of \"", to.spec->name, "\" is ",
                                   update.value.type().to_string(), "; ", wanted.to_string(),
                                   " is wanted"));
  if (!rule_slots(update.rule).empty() && update.rule != to.rule)
    throw FailedPreconditionError(str("the slots of \"", rule_name(update.rule.kind),
                                      "\" were not declared for \"", to.spec->name,
                                      "\"; call add_slots() with the very rule first"));
}

void LocalStore::apply(const Update& update) {
  Entry& to = entry(update.variable);
  if (!is_assignment(update.rule.kind)) ++to.updates;
  RuleInputs inputs{update.learning_rate, to.updates};
  if (to.index) {
    std::vector<std::int64_t> places;
    make_places(to, update.ids.values<std::int64_t>(), places);
    apply_rule(update.rule, inputs, to.block, places, update.value.raw());
  } else if (update.ids.defined())
    apply_rule(update.rule, inputs, to.block, update.ids.values<std::int64_t>(),
               update.value.raw());
  else
    apply_rule_dense(update.rule, inputs, to.block, update.value.raw());
}

void LocalStore::push(const StepContext&, std::span<Update> updates) {
  for (const Update& one : updates) check(one);
  for (const Update& one : updates) apply(one);
}

// ---- saving and restoring ----

void LocalStore::set_seed(std::uint64_t seed) {
  if (seed == seed_) return;
  if (!entries_.empty())
    throw FailedPreconditionError(
        str("the variables were made from seed ", seed_, ", the checkpoint's from seed ", seed,
            ": restore before variables are made, or give the strategy the checkpoint's seed"));
  seed_ = seed;
}

std::span<const std::int64_t> LocalStore::rows_held(VariableId id) const {
  const Entry& of = entry(id);
  return of.index && of.index->size() > 0 ? of.index->ids() : std::span<const std::int64_t>();
}

void LocalStore::reset(VariableId id) {
  Entry& old = entry(id);
  Entry made{old.spec, old.rule, {}, {}, 0, {}};
  if (made.spec->hashed) made.index.emplace();
  lay_out(made, made.spec->hashed ? 0 : made.spec->rows());
  initialize_rows(*made.spec, seed_, 0, made.block.rows, made.block.row_stride, made.block.base);
  fill_slots(made.block, made.rule, 0, made.block.rows);
  old = std::move(made);
}

void LocalStore::put(VariableId id, const SavedContents& saved, Take what) {
  Entry& to = entry(id);
  const std::size_t element = dtype_bytes(to.spec->dtype),
                    parameters = static_cast<std::size_t>(to.block.dim) * element;
  const auto own = static_cast<std::uint32_t>(rule_slots(to.rule).size());
  for (const SavedRows& block : saved.blocks) {
    std::vector<std::int64_t> places = block.rows;
    if (to.index) make_places(to, block.rows, places);
    const std::size_t slot =
        static_cast<std::size_t>(slot_width(block.rule, to.block.dim)) * element;
    const std::size_t stride = parameters + block.slots * slot;
    const std::uint32_t slots = block.rule == to.rule.kind ? std::min(block.slots, own) : 0;
    CAIRN_CHECK(block.data.size() == stride * places.size(), "saved rows of \"", to.spec->name,
                "\"");
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::byte* from = block.data.data() + i * stride;
      std::byte* row = row_at(to.block, places[i]);
      if (what == Take::kRowsAndSlots) std::memcpy(row, from, parameters);
      for (std::uint32_t k = 0; k < slots; ++k)
        std::memcpy(row + static_cast<std::size_t>((k + 1) * to.block.slot_offset) * element,
                    from + parameters + k * slot, slot);
    }
  }
  if (saved.rule == to.rule.kind) to.updates = std::max(to.updates, saved.updates);
}

}  // namespace cairn
