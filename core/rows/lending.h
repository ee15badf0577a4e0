// Lending: rows of a store that lie in a device's memory while steps compute on them there.
//
// A store lends a variable to one holder at a time. From then on the holder has its newest rows,
// and the store asks for them before it reads or changes the variable itself, or lends it to
// another. Updates that come to the store it passes on to the holder.
//   Thread  that of the store and of the holder, which is one.
#pragma once
#include "core/rows/row_memory.h"
#include "core/rows/variable_store.h"

namespace cairn {

class RowLender;

class RowHolder {
 public:
  virtual ~RowHolder() = default;
  // Makes the update where the rows are; false: it cannot, and nothing has changed. The update fits
  // the variable and its slots.
  virtual bool apply(const RowLender& lender, VariableId id, const Update& update) = 0;
  // Copies rows, slots and the count of updates into `home` if they have changed since they were
  // lent or brought home last.
  virtual void bring_home(const RowLender& lender, VariableId id, RowMemory& home) = 0;
  // The variable is no longer lent: its rows here are worth nothing.
  virtual void forget(const RowLender& lender, VariableId id) = 0;
};

class RowLender {
 public:
  // The variable as it lies at home, whatever a holder has made of it.
  //   Errors  InvalidArgument: no such variable.
  virtual const RowMemory& at_home(VariableId id) const = 0;
  // The rows at home, which are the newest; nullptr: this variable cannot be lent.
  virtual RowMemory* lend(VariableId id, RowHolder& holder) = 0;
  // Brings them home, and ends the loan.
  virtual void take_back(VariableId id) = 0;

 protected:
  ~RowLender() = default;
};

}  // namespace cairn
