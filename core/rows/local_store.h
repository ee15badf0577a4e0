// LocalStore: variables and their slots in this process's memory. What one device trains on, and
// the yardstick for what distribution costs.
//
//   Thread  one at a time. Every call answers before it returns.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/graph/update_rule.h"
#include "core/graph/variable.h"
#include "core/rows/lending.h"
#include "core/rows/row_memory.h"
#include "core/rows/row_turnover.h"
#include "core/rows/saved_contents.h"
#include "core/rows/variable_store.h"

namespace cairn {

class LocalStore final : public VariableStore, private RowLender {
 public:
  // `seed` keys the initial values.
  explicit LocalStore(std::uint64_t seed = 0) : seed_(seed) {}
  ~LocalStore() override;
  LocalStore(const LocalStore&) = delete;
  LocalStore& operator=(const LocalStore&) = delete;

  // Makes the variable with its initial values; ids count from 0. InvalidArgument: see
  // verify_spec().
  VariableId create(std::shared_ptr<const VariableSpec> spec);
  // Puts the rule's slots beside the rows, at their initial values; again for the same rule:
  // nothing. InvalidArgument: the variable has slots of another rule.
  void add_slots(VariableId id, const UpdateRule& rule);

  // Copies out. InvalidArgument: no such variable, or an id out of range.
  void pull(const StepContext& step, std::span<Read> reads) override;
  // Applies in order. An update that does not fit is refused (InvalidArgument; FailedPrecondition
  // if its rule's slots were not declared) before any update of the call is applied.
  void push(const StepContext& step, std::span<Update> updates) override;

  // Whole variables are lent, but for hashed ones. Updates are made where the variable is; every
  // other call brings home first what it is about, and one that changes a variable ends its loan.
  RowLender* lender() override { return this; }

  std::size_t size() const { return variables_.size(); }
  const VariableSpec& spec(VariableId id) const { return at_home(id).spec(); }
  // an assignment if no slots were declared
  const UpdateRule& rule(VariableId id) const { return at_home(id).rule(); }
  // the rows held, with their slots, in place
  RowBlock block(VariableId id) const { return memory(id).block({0, memory(id).held()}); }
  // by optimizers so far: the `t` of Adam
  std::int64_t updates(VariableId id) const { return memory(id).updates(); }
  void set_updates(VariableId id, std::int64_t count) { memory(id).set_updates(count); }

  // ---- saving and restoring ----
  std::uint64_t seed() const { return seed_; }
  // FailedPrecondition: variables were made from another seed.
  void set_seed(std::uint64_t seed);
  // For a hashed variable, the row that lies at each place of its block. For others it is empty:
  // their row r lies at place r.
  std::span<const std::int64_t> rows_held(VariableId id) const;
  // Knows which rows it saw and did not admit; nullptr: it keeps all of its rows.
  const RowTurnover* turnover(VariableId id) const { return turnovers_.at(id).get(); }
  // Back to the initial values of rows and slots; of a hashed variable no row is held.
  void reset(VariableId id);
  // Slots are taken over from a rule of the same kind only.
  using Take = RowMemory::Take;
  void put(VariableId id, const SavedContents& saved, Take what);

 private:
  RowMemory* lend(VariableId id, RowHolder& holder) override;
  void take_back(VariableId id) override;
  const RowMemory& at_home(VariableId id) const override;
  const RowMemory& memory(VariableId id) const;
  RowMemory& memory(VariableId id);
  void read(Read& read);
  void check(const Update& update) const;
  void apply(const Update& update);
  static void turn_over(RowMemory& memory, RowTurnover& turnover);
  static void let_go(RowMemory& memory, RowTurnover& turnover,
                     const std::vector<std::int64_t>& places);
  void renew_turnover(VariableId id);

  std::uint64_t seed_;
  // Rows that are lent are brought home into it when they are looked at.
  mutable std::deque<RowMemory> variables_;
  std::vector<RowHolder*> holders_;  // by variable; nullptr: not lent
  // by variable; nullptr: it keeps all of its rows
  std::vector<std::unique_ptr<RowTurnover>> turnovers_;
};

}  // namespace cairn
