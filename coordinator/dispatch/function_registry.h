// FunctionRegistry: every function that was scheduled, each under one number.
//
// Functions of equal graphs are one function: a worker is sent a graph once, however often the
// program traced it.
//   Thread  any.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "coordinator/cluster/closure.h"
#include "coordinator/cluster/variable_registry.h"

namespace cairn {

// How often a step of this graph pushes to a shard: once for each wave of its updates, as a
// worker's plan cuts it; at least 1.
std::uint64_t count_pushes(const Graph& graph);

class FunctionRegistry {
 public:
  // Whether the pushes of functions that update are counted, which takes a plan for each.
  explicit FunctionRegistry(bool counts_pushes = false) : counts_pushes_(counts_pushes) {}

  // The function whose graph is `concrete`'s. `name` is used if there was none yet.
  //   Errors  FailedPrecondition: it uses a variable that is none of `variables`.
  std::shared_ptr<const RegisteredFunction> add(std::shared_ptr<const ConcreteFunction> concrete,
                                                const std::string& name,
                                                const VariableRegistry& variables);

 private:
  const bool counts_pushes_;
  std::mutex mutex_;  // guards functions_
  // by the hash of the graph
  std::unordered_map<std::string, std::shared_ptr<const RegisteredFunction>> functions_;
};

}  // namespace cairn
