#include "strategy/base/per_worker_variable.h"

#include <cstring>
#include <utility>

#include "core/graph/ops.h"
#include "strategy/base/replica_context.h"
#include "strategy/base/strategy.h"

namespace cairn {
namespace {

// The value as often as there are workers.
Initializer for_each_worker(Initializer one, std::int64_t workers) {
  if (one.kind != Initializer::Kind::kValue || !one.value.defined()) return one;
  const std::size_t bytes = one.value.bytes();
  Tensor all(one.value.dtype(), one.value.shape().with_front(workers));
  for (std::size_t i = 0; i < static_cast<std::size_t>(workers); ++i)
    std::memcpy(all.mutable_raw() + i * bytes, one.value.raw(), bytes);
  one.value = std::move(all);
  return one;
}

Variable rows_of_workers(VariableSpec spec) {
  if (spec.dtype == DType::kString)
    throw InvalidArgumentError(
        str("the per-worker variable \"", spec.name, "\": variables do not hold strings"));
  const Strategy& strategy = get_strategy();
  const std::int64_t workers = strategy.num_workers();
  if (workers > 1 && strategy.workers_in_step())
    throw UnimplementedError(str("the per-worker variable \"", spec.name, "\" of ", workers,
                                 " workers in step: they have one copy of all variables; use a "
                                 "Variable with synchronization ON_READ"));
  spec.initializer = for_each_worker(std::move(spec.initializer), workers);
  spec.shape = spec.shape.with_front(workers);
  spec.trainable = false;
  spec.one_part = true;
  return current_variable_creator().create_variable(std::move(spec));
}

}  // namespace

Array current_worker_index() { return get_strategy().worker_index(); }
std::int64_t current_num_workers() { return get_strategy().num_workers(); }

PerWorkerVariable::PerWorkerVariable(VariableSpec spec) : rows_(rows_of_workers(std::move(spec))) {}

Array PerWorkerVariable::read() const { return rows_.gather(current_worker_index()); }

// A row is changed where it lies, so that the lanes of one worker lose nothing of one another's.
Array PerWorkerVariable::own_row(const Array& value) const {
  if (!value.defined())
    throw InvalidArgumentError(str("an undefined Array for \"", rows_.name(), "\""));
  const Array typed = value.beside(rows_.spec().dtype);
  if (typed.shape() != rows_.shape().without_front())
    throw InvalidArgumentError(str("one worker's value of \"", rows_.name(), "\" is ",
                                   rows_.shape().without_front().to_string(), ", not ",
                                   typed.shape().to_string()));
  return typed;
}

void PerWorkerVariable::assign(const Array& value) const {
  rows_.scatter_update(current_worker_index(), own_row(value));
}
void PerWorkerVariable::assign_add(const Array& value) const {
  rows_.scatter_add(current_worker_index(), own_row(value));
}
void PerWorkerVariable::assign_sub(const Array& value) const {
  rows_.scatter_sub(current_worker_index(), own_row(value));
}

std::vector<Array> PerWorkerVariable::read_all() const {
  const Array all = rows_.read();
  std::vector<Array> each;
  for (std::int64_t i = 0; i < rows_.shape()[0]; ++i) each.push_back(subscript(all, {i}));
  return each;
}

}  // namespace cairn
