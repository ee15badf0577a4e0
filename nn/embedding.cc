#include "nn/embedding.h"

#include <cmath>
#include <utility>

namespace cairn::nn {

Embedding::Embedding(EmbeddingOptions options) : options_(std::move(options)) {
  if (options_.rows < 1 || options_.dim < 1)
    throw InvalidArgumentError(str("embedding \"", options_.name,
                                   "\": rows and dim must be at least 1, got ", options_.rows,
                                   " x ", options_.dim));
}

// gather() on a variable is what makes the lookup sparse: the executor pulls the rows of the
// batch's distinct ids, and the gradient is rows again. Reading the variable and gathering from the
// array would pull the table.
Array Embedding::lookup(const Array& ids) const {
  if (!ids.defined() || (ids.dtype() != DType::kInt32 && ids.dtype() != DType::kInt64))
    throw InvalidArgumentError(str("embedding \"", options_.name,
                                   "\" wants int32 or int64 ids, got ",
                                   ids.defined() ? ids.type().to_string() : "nothing"));
  const auto& variables = variables_.in_scope([&](VariableCreator& creator) {
    VariableSpec table{
        .name = options_.name, .shape = {options_.rows, options_.dim}, .hashed = options_.hashed};
    table.initializer =
        options_.initializer.value_or(Initializer::uniform(-0.05f, 0.05f, options_.seed));
    return std::vector<Variable>{creator.create_variable(std::move(table))};
  });
  return variables[0].gather(ids);
}

Array Embedding::operator()(const Array& ids) const {
  Array rows = lookup(ids);
  if (!options_.combiner || ids.rank() < 2) return rows;
  if (ids.rank() > 2)
    throw InvalidArgumentError(str("embedding \"", options_.name,
                                   "\" combines ids of shape [b, k], got ",
                                   ids.type().to_string()));
  // A rectangular [b, k] needs no row splits: the combiner is a reduction over k.
  switch (*options_.combiner) {
    case Combiner::kSum: return reduce_sum(rows, {1});
    case Combiner::kMean: return reduce_mean(rows, {1});
    case Combiner::kSqrtn: break;
  }
  if (ids.shape()[1] == Shape::kUnknown)
    throw InvalidArgumentError(str("embedding \"", options_.name,
                                   "\": sqrtn wants a known number of ids per example, got ",
                                   ids.type().to_string()));
  return reduce_sum(rows, {1}) * Array(1.0f / std::sqrt(static_cast<float>(ids.shape()[1])));
}

Array Embedding::operator()(const Array& values, const Array& row_splits) const {
  if (!options_.combiner)
    throw InvalidArgumentError(
        str("embedding \"", options_.name, "\": ragged ids need a combiner (sum, mean or sqrtn)"));
  return combine_rows(lookup(values), row_splits, *options_.combiner);
}

Array Embedding::operator()(const Ids& ids) const {
  if (!ids.are_bags()) return (*this)(ids.values);
  if (!ids.weights.defined()) return (*this)(ids.values, ids.row_splits);
  if (!options_.combiner)
    throw InvalidArgumentError(
        str("embedding \"", options_.name, "\": bags need a combiner (sum, mean or sqrtn)"));
  return combine_rows(lookup(ids.values) * expand_dims(ids.weights, 1), ids.row_splits,
                      *options_.combiner);
}

}  // namespace cairn::nn
