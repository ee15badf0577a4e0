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

#include "coordinator/closure.h"

namespace cairn {

class FunctionRegistry {
 public:
  // The function whose graph is `concrete`'s. `name` is used if there was none yet.
  std::shared_ptr<const RegisteredFunction> add(std::shared_ptr<const ConcreteFunction> concrete,
                                                const std::string& name);

 private:
  std::mutex mutex_;  // guards functions_
  // by the hash of the graph
  std::unordered_map<std::string, std::shared_ptr<const RegisteredFunction>> functions_;
};

}  // namespace cairn
