// Runs a function of two arrays that is traced, so that their leading dimensions are unknown while
// it is recorded: what a step of a strategy sees.
#pragma once
#include <utility>

#include "core/exec/executor.h"
#include "core/exec/local_runtime.h"
#include "core/graph/function.h"

namespace cairn::nn {

template <typename Body>
Tensor run_traced(Body body, const Tensor& a, const Tensor& b) {
  LocalRuntime runtime;
  Scope scope(runtime);
  Function function([body](Array x, Array y) { return body(x, y); });
  ConcreteFunction traced = *function.concrete({a, b}, runtime);
  auto plan = make_plan(traced.graph, runtime.bind(traced));
  Workspace workspace(cpu_device());
  StepContext context;
  return run(plan, workspace, runtime.store(), context, {a, b}, {})[0];
}

}  // namespace cairn::nn
