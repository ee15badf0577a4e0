#include "coordinator/strategy.h"

#include "core/graph/recording.h"

namespace cairn {
namespace {

// A dataset's elements come one per run of the traced function, through its own argument. One that
// is taken from elsewhere would have to be read now, once, and its element would be frozen into the
// function.
TraceArgument traced_argument(const RunArgument& argument, std::size_t index) {
  if (auto* iterator = std::get_if<Iterator>(&argument)) return *iterator;
  if (auto* array = std::get_if<Array>(&argument)) return *array;
  if (auto* tensor = std::get_if<Tensor>(&argument)) return Array(*tensor);
  throw InvalidArgumentError(str("run: argument ", index,
                                 " is a dataset, and a function is being traced: pass the dataset ",
                                 "to that function, and here the Iterator that it gets for it"));
}

Argument argument_now(const RunArgument& argument, std::size_t index) {
  if (auto* tensor = std::get_if<Tensor>(&argument)) return *tensor;
  if (auto* array = std::get_if<Array>(&argument)) return array->eval();
  if (auto* source = std::get_if<std::shared_ptr<const IteratorSource>>(&argument)) return *source;
  throw InvalidArgumentError(str("run: argument ", index,
                                 " is the Iterator of a function whose tracing is over; pass the ",
                                 "dataset itself"));
}

}  // namespace

const Tensor& RunValue::tensor() const {
  if (const Tensor* value = defined() ? constant_value(*this) : nullptr) return *value;
  throw FailedPreconditionError(
      "run() was recorded into the function being traced: its result is an Array, and has a value "
      "only when that function "
      "runs. Return it from there");
}

RunResult::operator std::vector<Tensor>() const {
  std::vector<Tensor> tensors;
  for (const RunValue& value : values_) tensors.push_back(value.tensor());
  return tensors;
}

RunResult Strategy::run(Function& function, const std::vector<RunArgument>& arguments) {
  if (TraceContext::current() != nullptr) return record_run(function, arguments);
  std::vector<Argument> now;
  for (const RunArgument& argument : arguments) now.push_back(argument_now(argument, now.size()));
  std::vector<RunValue> values;
  for (Tensor& tensor : run_step(function, now)) values.emplace_back(Array(std::move(tensor)));
  return RunResult(std::move(values));
}

RunResult Strategy::record_run(Function& function, const std::vector<RunArgument>& arguments) {
  if (&current_variable_creator() != this)
    throw FailedPreconditionError(
        str("run: the function being traced is not of this strategy, so \"", function.name(),
            "\" cannot become part of it; wrap both with the same strategy's function()"));
  std::vector<TraceArgument> traced;
  for (const RunArgument& argument : arguments)
    traced.push_back(traced_argument(argument, traced.size()));
  std::vector<RunValue> values;
  for (auto& [name, output] : function.inlined(traced)) values.emplace_back(std::move(output));
  return RunResult(std::move(values));
}

}  // namespace cairn
