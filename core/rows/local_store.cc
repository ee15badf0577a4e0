#include "core/rows/local_store.h"

#include <algorithm>
#include <utility>

namespace cairn {
namespace {

// The ids come from a function's arguments or data, and every id is an index into memory from here
// on.
void check_ids(const VariableSpec& spec, const Tensor& ids) {
  if (ids.dtype() != DType::kInt64 || ids.shape().rank() != 1)
    throw InvalidArgumentError(
        str("ids of \"", spec.name, "\" are ", ids.type().to_string(), "; int64[n] is wanted"));
  for (std::int64_t id : ids.values<std::int64_t>())
    if (id < 0 || id >= spec.rows())
      throw InvalidArgumentError(
          str("the id ", id, " is not in [0, ", spec.rows(), "), the rows of \"", spec.name, "\""));
}

}  // namespace

// Holders would look for the store when they end.
LocalStore::~LocalStore() {
  for (VariableId id = 0; id < holders_.size(); ++id)
    if (holders_[id] != nullptr) holders_[id]->forget(*this, id);
}

const RowMemory& LocalStore::at_home(VariableId id) const {
  if (id >= variables_.size())
    throw InvalidArgumentError(str("there is no variable ", id, "; there are ", variables_.size()));
  return variables_[id];
}

const RowMemory& LocalStore::memory(VariableId id) const {
  const RowMemory& home = at_home(id);
  if (holders_[id] != nullptr) holders_[id]->bring_home(*this, id, variables_[id]);
  return home;
}

RowMemory& LocalStore::memory(VariableId id) {
  at_home(id);
  take_back(id);
  return variables_[id];
}

RowMemory* LocalStore::lend(VariableId id, RowHolder& holder) {
  const RowMemory& home = at_home(id);
  if (home.hashed() || home.spec().dtype == DType::kString) return nullptr;
  if (holders_[id] != &holder) take_back(id);
  holders_[id] = &holder;
  return &variables_[id];
}

void LocalStore::take_back(VariableId id) {
  RowHolder* const holder = std::exchange(holders_[id], nullptr);
  if (holder == nullptr) return;
  holder->bring_home(*this, id, variables_[id]);
  holder->forget(*this, id);
}

VariableId LocalStore::create(std::shared_ptr<const VariableSpec> spec) {
  verify_spec(*spec);
  const RowRange all{0, spec->rows()};
  variables_.emplace_back(std::move(spec), UpdateRule{}, all, seed_);
  holders_.push_back(nullptr);
  turnovers_.push_back(nullptr);
  renew_turnover(static_cast<VariableId>(variables_.size() - 1));
  return static_cast<VariableId>(variables_.size() - 1);
}

// Slots are kept beside their rows, with one layout for a variable, so there is one rule with
// slots.
void LocalStore::add_slots(VariableId id, const UpdateRule& rule) {
  verify_rule(rule);
  RowMemory& to = memory(id);
  if (!is_kept(rule) || rule == to.rule()) return;
  if (is_kept(to.rule()))
    throw InvalidArgumentError(str("the variable \"", to.spec().name, "\" is updated by \"",
                                   rule_name(to.rule()), "\"; it cannot have the slots of \"",
                                   rule_name(rule), "\" or of other constants as well"));
  if (to.spec().dtype != DType::kFloat32)
    throw InvalidArgumentError(str("the variable \"", to.spec().name, "\" is ",
                                   dtype_name(to.spec().dtype), "; optimizers want float32"));
  to.set_rule(rule);
}

// A loan goes on: what is lent is not hashed, and finding its rows changes nothing.
void LocalStore::read(Read& read) {
  std::as_const(*this).memory(read.variable);
  RowMemory& from = variables_[read.variable];
  const VariableSpec& spec = from.spec();
  if (!read.ids.defined()) {
    verify_whole_read(spec);
    read.value = Tensor(spec.dtype, spec.shape);
    return from.read_all(read.value.mutable_raw());
  }
  check_ids(spec, read.ids);
  read.value = Tensor(spec.dtype, spec.shape.with_dim(0, read.ids.shape()[0]));
  from.read(from.find(read.ids.values<std::int64_t>()), read.value.mutable_raw());
}

void LocalStore::pull(const StepContext&, std::span<Read> reads) {
  for (Read& one : reads) read(one);
}

void LocalStore::check(const Update& update) const {
  const RowMemory& to = at_home(update.variable);
  const VariableSpec& spec = to.spec();
  verify_rule(update.rule);
  verify_learning_rate(update.rule, update.learning_rate);
  bool sparse = update.ids.defined();
  verify_update(spec, update.rule, sparse);
  if (sparse && spec.shape.rank() == 0)
    throw InvalidArgumentError(str("the variable \"", spec.name, "\" is a scalar and has no rows"));
  if (sparse) check_ids(spec, update.ids);
  TensorType wanted{spec.dtype,
                    sparse ? spec.shape.with_dim(0, update.ids.shape()[0]) : spec.shape};
  if (!update.value.defined() || update.value.type() != wanted)
    throw InvalidArgumentError(str("an update of \"", spec.name, "\" is ",
                                   update.value.type().to_string(), "; ", wanted.to_string(),
                                   " is wanted"));
  if (is_kept(update.rule) && update.rule != to.rule())
    throw FailedPreconditionError(str("the slots of \"", rule_name(update.rule),
                                      "\" were not declared for \"", spec.name,
                                      "\"; call add_slots() with the very rule first"));
}

void LocalStore::apply(const Update& update) {
  RowHolder* const holder = holders_[update.variable];
  if (holder != nullptr && holder->apply(*this, update.variable, update)) return;
  RowMemory& to = memory(update.variable);
  if (!update.ids.defined())
    return to.update_all(update.rule, update.learning_rate, update.value.raw());
  RowTurnover::Rows wanted{update.ids.values<std::int64_t>(), update.value.raw()};
  RowTurnover* const turnover = turnovers_[update.variable].get();
  if (update.rule == eviction_rule()) return let_go(to, *turnover, to.present(wanted.rows));
  if (turnover != nullptr && !is_assignment(update.rule.kind))
    wanted = turnover->admit(to.find(wanted.rows), wanted.values);
  const Places places = to.make(to.find(wanted.rows));
  to.update(update.rule, update.learning_rate, places, wanted.values);
  if (turnover == nullptr) return;
  turnover->update(places.at);
  turn_over(to, *turnover);
}

void LocalStore::turn_over(RowMemory& memory, RowTurnover& turnover) {
  constexpr std::size_t kRowsAtOnce = 1024;
  for (;;) {
    const std::vector<std::int64_t> places = turnover.choose(kRowsAtOnce);
    if (places.empty()) return;
    let_go(memory, turnover, places);
  }
}

// Rows move into the places of those that go, so that all places have one.
void LocalStore::let_go(RowMemory& memory, RowTurnover& turnover,
                        const std::vector<std::int64_t>& places) {
  turnover.left(places);
  for (const std::int64_t place : places) memory.let_go(place);
  while (memory.used() < memory.held()) {
    const std::int64_t last = memory.held() - 1;
    if (const std::int64_t to = memory.drop_last_place(); to != IdIndex::kAbsent)
      turnover.moved(last, to);
  }
}

// All updates are checked before the first is applied, so that a wrong one leaves everything as it
// was.
void LocalStore::push(const StepContext&, std::span<Update> updates) {
  for (const Update& one : updates) check(one);
  for (const Update& one : updates) apply(one);
}

// ---- saving and restoring ----

void LocalStore::set_seed(std::uint64_t seed) {
  if (seed == seed_) return;
  if (!variables_.empty())
    throw FailedPreconditionError(
        str("the variables were made from seed ", seed_, ", the checkpoint's from seed ", seed,
            ": restore before variables are made, or give the strategy the checkpoint's seed"));
  seed_ = seed;
}

std::span<const std::int64_t> LocalStore::rows_held(VariableId id) const {
  return memory(id).rows_held();
}

void LocalStore::reset(VariableId id) {
  memory(id).reset();
  renew_turnover(id);
}

// It knows where the rows are.
void LocalStore::renew_turnover(VariableId id) {
  const RowMemory& rows = variables_[id];
  if (!rows.spec().policy.keeps_all()) turnovers_[id] = std::make_unique<RowTurnover>(rows);
}

// A checkpoint may have been written under another rule. Its slots then mean something else, and
// only the rows are taken; the slots keep their initial values.
void LocalStore::put(VariableId id, const SavedContents& saved, Take what) {
  RowMemory& to = memory(id);
  const RowLayout& layout = to.layout();
  const bool same = same_slots(saved.rule, to.rule()) || saved.rule.kind != RuleKind::kCustom;
  for (const SavedRows& block : saved.blocks) {
    const std::size_t slot_bytes =
        static_cast<std::size_t>(slot_width(block.rule, layout.dim)) * layout.element_bytes;
    const std::size_t row_bytes = layout.row_bytes() + block.slots * slot_bytes;
    CAIRN_CHECK(block.data.size() == row_bytes * block.rows.size(), "saved rows of \"",
                to.spec().name, "\"");
    const std::uint32_t slots =
        same && block.rule == to.rule().kind ? std::min(block.slots, layout.slots) : 0;
    const Places places = to.make(to.find(block.rows));
    for (std::size_t i = 0; i < places.at.size(); ++i)
      to.restore(places.at[i], block.data.data() + i * row_bytes, slots, what);
    if (turnovers_[id] != nullptr) turnovers_[id]->update(places.at);
  }
  for (const SavedContents::Seen& seen : saved.seen)
    if (turnovers_[id] != nullptr) turnovers_[id]->restore(seen.dropped, seen.sketch);
  if (same_slots(saved.rule, to.rule())) to.set_updates(std::max(to.updates(), saved.updates));
}

}  // namespace cairn
