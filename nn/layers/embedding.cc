#include "nn/layers/embedding.h"

#include <cmath>
#include <utility>

namespace cairn::nn {
namespace {

Array bags_of(const Array& row_splits) { return dim_size(row_splits, 0) - 1; }

}  // namespace

Embedding::Embedding(EmbeddingOptions options)
    : options_(std::move(options)), name_(options_.name, "embedding") {
  if (options_.rows < 1 || options_.dim < 1)
    throw InvalidArgumentError(str("embedding \"", name_.get(),
                                   "\": rows and dim must be at least 1, got ", options_.rows,
                                   " x ", options_.dim));
}

// gather() on a variable is what makes the lookup sparse: the executor pulls the rows of the
// batch's distinct ids, and the gradient is rows again. Reading the variable and gathering from the
// array would pull the table.
Array Embedding::lookup(const Array& ids, const Array& examples) const {
  if (!ids.defined() || (ids.dtype() != DType::kInt32 && ids.dtype() != DType::kInt64))
    throw InvalidArgumentError(str("embedding \"", name_.get(), "\" wants int32 or int64 ids, got ",
                                   ids.defined() ? ids.type().to_string() : "nothing"));
  const auto& variables = variables_.in_scope([&](VariableCreator& creator) {
    VariableSpec table{.name = name_.get(),
                       .shape = {options_.rows, options_.dim},
                       .hashed = options_.hashed,
                       .policy = options_.policy};
    table.initializer =
        options_.initializer.value_or(Initializer::uniform(-0.05f, 0.05f, options_.seed));
    return std::vector<Variable>{creator.create_variable(std::move(table))};
  });
  Array rows = variables[0].gather(ids);
  add_activity_loss(options_.rows_regularizer, name_.get() + "/rows", rows, examples);
  return rows;
}

// Axis 0 of `y` is the examples, whatever ids were asked for.
Array Embedding::regularized(Array y) const {
  add_activity_loss(options_.activity_regularizer, name_.get(), y);
  return y;
}

Array Embedding::operator()(const Array& ids) const {
  return regularized(combine(ids, lookup(ids, {})));
}

Array Embedding::combine(const Array& ids, const Array& rows) const {
  if (!options_.combiner || ids.rank() < 2) return rows;
  if (ids.rank() > 2)
    throw InvalidArgumentError(str("embedding \"", name_.get(),
                                   "\" combines ids of shape [b, k], got ",
                                   ids.type().to_string()));
  // A rectangular [b, k] needs no row splits: the combiner is a reduction over k.
  switch (*options_.combiner) {
    case Combiner::kSum: return reduce_sum(rows, {1});
    case Combiner::kMean: return reduce_mean(rows, {1});
    case Combiner::kSqrtn: break;
  }
  if (ids.shape()[1] == Shape::kUnknown)
    throw InvalidArgumentError(str("embedding \"", name_.get(),
                                   "\": sqrtn wants a known number of ids per example, got ",
                                   ids.type().to_string()));
  return reduce_sum(rows, {1}) * Array(1.0f / std::sqrt(static_cast<float>(ids.shape()[1])));
}

Array Embedding::operator()(const Array& values, const Array& row_splits) const {
  if (!options_.combiner)
    throw InvalidArgumentError(
        str("embedding \"", name_.get(), "\": ragged ids need a combiner (sum, mean or sqrtn)"));
  return regularized(
      combine_rows(lookup(values, bags_of(row_splits)), row_splits, *options_.combiner));
}

Array Embedding::operator()(const Ids& ids) const {
  if (!ids.are_bags()) return (*this)(ids.values);
  if (!ids.weights.defined()) return (*this)(ids.values, ids.row_splits);
  if (!options_.combiner)
    throw InvalidArgumentError(
        str("embedding \"", name_.get(), "\": bags need a combiner (sum, mean or sqrtn)"));
  const Array rows = lookup(ids.values, bags_of(ids.row_splits));
  return regularized(
      combine_rows(rows * expand_dims(ids.weights, 1), ids.row_splits, *options_.combiner));
}

}  // namespace cairn::nn
