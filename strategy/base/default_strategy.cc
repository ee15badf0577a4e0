// The default strategy: what a program that opens no scope trains under.
#include "core/exec/local_runtime.h"
#include "strategy/base/local_strategy.h"

namespace cairn {
namespace {

// Its variables are those that core makes without a scope, so that a layer finds the same ones
// whether or not it is called by run(). A scope of it is therefore core's own creator, in whatever
// place the thread is: nothing changes.
class DefaultStrategy final : public LocalStrategy {
 public:
  DefaultStrategy() : LocalStrategy(LocalRuntime::of_this_process()) {}

  Scope scope() override {
    if (has_strategy())
      throw FailedPreconditionError(
          "Must not nest tf.distribute.Strategy scopes: that of another strategy is open");
    return Scope(variable_creator(), current_scope_place());
  }

 private:
  VariableCreator& variable_creator() override { return runtime(); }
};

}  // namespace

// After the runtime, which it therefore does not outlive.
Strategy& default_strategy() {
  static DefaultStrategy strategy;
  return strategy;
}

}  // namespace cairn
