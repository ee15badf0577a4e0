// FunctionRegistry: every function that was scheduled, each under one number.
//
// Functions of equal graphs are one function: a worker is sent a graph once, however often the
// program traced it.
//   Thread  any.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "coordinator/cluster/closure.h"
#include "coordinator/cluster/variable_registry.h"
#include "coordinator/journal/journal_event.h"

namespace cairn {

// How often a step of this graph pushes to a shard: once for each wave of its updates, as a
// worker's plan cuts it; at least 1.
std::uint64_t count_pushes(const Graph& graph);

class FunctionRegistry {
 public:
  // `verify` throws where a function cannot be run; called once for each, from any thread.
  explicit FunctionRegistry(std::function<void(const RegisteredFunction&)> verify)
      : verify_(std::move(verify)) {}

  // The function whose graph is `concrete`'s. `name` is used if there was none yet.
  //   Errors  FailedPrecondition: it uses a variable that is none of `variables`. Those of
  //           `verify`.
  std::shared_ptr<const RegisteredFunction> add(std::shared_ptr<const ConcreteFunction> concrete,
                                                const std::string& name,
                                                const VariableRegistry& variables);
  // A function of an earlier coordinator, under its number; `graph` is its serialised graph.
  //   Errors  DataLoss: it is none, or uses a variable that is not there.
  std::shared_ptr<const RegisteredFunction> find_again(const journal::FunctionMade& made,
                                                       const Layout& layout);

 private:
  std::shared_ptr<const RegisteredFunction> keep(std::uint32_t id,
                                                 std::shared_ptr<const ConcreteFunction> concrete,
                                                 const std::string& name);

  const std::function<void(const RegisteredFunction&)> verify_;
  std::mutex mutex_;  // guards all below
  std::uint32_t next_ = 0;
  // by the hash of the graph
  std::unordered_map<std::string, std::shared_ptr<const RegisteredFunction>> functions_;
};

}  // namespace cairn
