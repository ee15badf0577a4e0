#include "nn/layers/safe_lookup.h"

#include <utility>

namespace cairn::nn {
namespace {

// The ids to look up, and the weight with which each row counts.
struct Asked {
  Array ids, weights, counts;
};

// A graph cannot drop ids, for a shape does not depend on values. So those that do not count become
// one that does, which is pulled anyway, and whose gradient a share of 0 does not change: row 0
// would be moved by optimizers whose slots decay. The last candidate is for batches without any.
Array stand_in(const Array& ids, const Array& counts) {
  const Array flat = reshape(ids, {Shape::kUnknown});
  const Array none = ids.dtype() == DType::kInt32 ? Tensor::zeros(DType::kInt32, {1})
                                                  : Tensor::zeros(DType::kInt64, {1});
  const float half = 0.5f;
  const Array last = Tensor::of<float>({1}, std::span<const float>(&half, 1));
  const Array ranks = concat({reshape(cast(counts, DType::kFloat32), {Shape::kUnknown}), last}, 0);
  return gather(concat({flat, none}, 0), argmax(ranks, 0));
}

Asked asked(const Array& ids, const SafeLookupOptions& options) {
  const bool weighted = options.weights.defined();
  Array counts = ids >= 0;
  if (weighted && options.combiner != Combiner::kSum)
    counts = logical_and(counts, options.weights > 0.0f);
  const Array given = weighted ? options.weights : cast(counts, DType::kFloat32);
  return {where(counts, ids, stand_in(ids, counts)), where(counts, given, zeros_like(given)),
          counts};
}

void verify(const Variable& table, const Array& ids, int rank, const SafeLookupOptions& options) {
  if (!table.defined() || table.shape().rank() != 2 || table.spec().dtype != DType::kFloat32)
    throw InvalidArgumentError("a safe lookup wants a table of float32 [rows, dim]");
  const bool integers =
      ids.defined() && (ids.dtype() == DType::kInt32 || ids.dtype() == DType::kInt64);
  if (!integers || ids.rank() != rank)
    throw InvalidArgumentError(str("a safe lookup in \"", table.name(), "\" wants int32 or int64 ",
                                   "ids of rank ", rank, ", got ",
                                   ids.defined() ? ids.type().to_string() : "nothing"));
  if (options.weights.defined() &&
      (options.weights.dtype() != DType::kFloat32 || options.weights.rank() != rank))
    throw InvalidArgumentError(str("a safe lookup in \"", table.name(), "\": the weights are ",
                                   options.weights.type().to_string(), ", the ids ",
                                   ids.type().to_string()));
}

// `counted`, [b, 1]: how many ids of an example count.
Array with_default(const Variable& table, const Array& combined, const Array& counted,
                   const SafeLookupOptions& options) {
  if (!options.default_id) return combined;
  const Array id =
      Tensor::of<std::int64_t>({1}, std::span<const std::int64_t>(&*options.default_id, 1));
  return where(counted > 0.0f, combined, table.gather(id));
}

}  // namespace

Array safe_embedding_lookup_sparse(const Variable& table, const Array& ids, const Array& row_splits,
                                   const SafeLookupOptions& options) {
  verify(table, ids, 1, options);
  const Asked of = asked(ids, options);
  const Array combined =
      combine_rows(table.gather(of.ids), row_splits, options.combiner, of.weights);
  if (!options.default_id) return combined;
  const Array counts = reshape(cast(of.counts, DType::kFloat32), {Shape::kUnknown, 1});
  return with_default(table, combined, combine_rows(counts, row_splits, Combiner::kSum), options);
}

Array safe_embedding_lookup(const Variable& table, const Array& ids,
                            const SafeLookupOptions& options) {
  verify(table, ids, 2, options);
  if (ids.shape()[1] == Shape::kUnknown)
    throw InvalidArgumentError(str("a safe lookup in \"", table.name(), "\" wants a known number ",
                                   "of ids per example, got ", ids.type().to_string(),
                                   "; ragged ids go to safe_embedding_lookup_sparse()"));
  const Asked of = asked(ids, options);
  Array combined = reduce_sum(table.gather(of.ids) * expand_dims(of.weights, 2), {1});
  if (options.combiner != Combiner::kSum) {
    Array divisor = options.combiner == Combiner::kMean
                        ? reduce_sum(of.weights, {1}, true)
                        : sqrt(reduce_sum(square(of.weights), {1}, true));
    combined = combined / where(divisor == 0.0f, ones_like(divisor), divisor);
  }
  return with_default(table, combined, reduce_sum(cast(of.counts, DType::kFloat32), {1}, true),
                      options);
}

}  // namespace cairn::nn
