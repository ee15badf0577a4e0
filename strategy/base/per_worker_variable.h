// A worker's own state: its number, and variables that have a value for each worker.
//
//   PerWorkerVariable seen({.name = "seen", .dtype = DType::kInt64});        // in strategy.scope()
//   Function step = strategy.function([&](Iterator batches) {
//     seen.assign_add(1);                                                    // this worker's
//     ...
//   });
//   for (const Array& one : seen.read_all()) ...                             // by worker
//
// Workers run functions side by side: under parameter servers there are as many as the cluster has,
// under a multi-worker strategy as many as its group, else there is one, whose number is 0. The
// same code runs under all.
//   Thread  as all recording; read_all() as any use of a variable outside of a function.
#pragma once
#include <cstdint>
#include <vector>

#include "core/graph/variable.h"

namespace cairn {

// The number of the worker that runs the function, [0, num workers): an int64 scalar. Under
// parameter servers it is known when a worker takes the closure, and of the worker that runs it
// again if that one is lost. All lanes of a worker have its number.
//   Errors  FailedPrecondition: under parameter servers, outside of a function.
Array current_worker_index();
// How many there are in the strategy whose scope is open.
std::int64_t current_num_workers();

// A value per worker, never combined with the others': counters, sums that the program adds up, a
// cursor. It is not trained. Worker i's value is row i of one variable of the strategy, so that it
// outlives its worker, closures that run again change it once, and checkpoints hold it; a
// checkpoint of another number of workers does not match.
//   Shape   that of one worker's value.
//   Errors  those of the variable, whose aggregation says what several replicas of a worker make of
//           a change. FailedPrecondition: read or changed outside of a function under parameter
//           servers, where there is no worker.
//   Cost    a row pulled per read, a row pushed per change. A closure that changes it has its lane
//           to itself, as every one that assigns.
class PerWorkerVariable {
 public:
  // `spec` is of one worker's value. An initial value that is given is every worker's; random ones
  // are drawn for each.
  //   Errors  InvalidArgument: those of create_variable().  Unimplemented: several workers in step,
  //           whose copies of a variable are one.
  explicit PerWorkerVariable(VariableSpec spec);

  Array read() const;  // this worker's
  operator Array() const { return read(); }
  void assign(const Array& value) const;
  void assign_add(const Array& value) const;
  void assign_sub(const Array& value) const;
  // Every worker's, by number.
  std::vector<Array> read_all() const;

  // All of them: [num workers, shape].
  const Variable& rows() const { return rows_; }

 private:
  Array own_row(const Array& value) const;
  Variable rows_;
};

}  // namespace cairn
