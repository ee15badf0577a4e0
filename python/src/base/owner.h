// Ownership: a strategy may be closed while Python still has its variables, its functions and
// what they gave. Each of these holds the strategy's Owner, and asks it.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/graph/variable.h"
#include "interpreter.h"
#include "strategy/base/strategy.h"

namespace cairn::python {

class TablesFolder;  // data/tables_folder.h

// A strategy, from when it is made until it is closed and no call uses it any more.
struct OpenStrategy {
  explicit OpenStrategy(std::unique_ptr<Strategy> made) : strategy(std::move(made)) {}
  ~OpenStrategy();
  OpenStrategy(const OpenStrategy&) = delete;
  OpenStrategy& operator=(const OpenStrategy&) = delete;

  std::unique_ptr<Strategy> strategy;
  std::atomic<bool> closed{false};
};

//   Thread  any.
class Owner {
 public:
  explicit Owner(std::unique_ptr<Strategy> strategy, nb::object beside = {});
  ~Owner();
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  // It lives at least until the call of the module that this thread is in returns, also if another
  // thread closes it meanwhile.
  //   Errors  FailedPrecondition: it has been closed.
  Strategy& strategy() const;
  template <typename T>
  T& as() const {
    auto* found = dynamic_cast<T*>(&strategy());
    CAIRN_CHECK(found != nullptr, "a strategy of another kind");
    return *found;
  }
  // Where tables are written that are too large to travel to workers; null: data does not travel.
  const std::shared_ptr<TablesFolder>& tables() const { return tables_; }
  void set_tables(std::shared_ptr<TablesFolder> tables) { tables_ = std::move(tables); }
  bool closed() const;
  // Ends it, and what it is connected to. Calls of other threads that wait for it raise an error
  // within 100 ms. Again: nothing.
  void close();

 private:
  mutable std::mutex mutex_;  // open_
  std::shared_ptr<OpenStrategy> open_;
  SharedReference beside_;  // a cluster that must live as long
  std::shared_ptr<TablesFolder> tables_;
};
using SharedOwner = std::shared_ptr<Owner>;

// While a call of the module runs: keeps the strategies that it uses. They nest.
class CallOfModule {
 public:
  CallOfModule();
  ~CallOfModule();
  CallOfModule(const CallOfModule&) = delete;
  CallOfModule& operator=(const CallOfModule&) = delete;

 private:
  const std::size_t before_;  // used by the calls around it
};
// FailedPrecondition: a strategy that this call uses has been closed meanwhile.
void require_open_strategies();

// Lets the owner be found by its strategy.
void remember(const SharedOwner& owner);
// The owner of a creator of variables; null: the process's own, which is never closed.
SharedOwner owner_of(const VariableCreator& creator);
// Closes all, the newest first: before the interpreter ends.
void close_all();

// cairn.Strategy; its kinds derive from it.
struct StrategyObject : SharedOwner {
  explicit StrategyObject(SharedOwner owner) : SharedOwner(std::move(owner)) {}
};

// A variable for Python.
struct OwnedVariable {
  Variable variable;
  SharedOwner owner;
  // Errors  FailedPrecondition: its strategy has been closed.
  const Variable& get() const;
};
// The same of a variable that somebody else has made in the scope that is open.
OwnedVariable owned(Variable variable);

}  // namespace cairn::python
