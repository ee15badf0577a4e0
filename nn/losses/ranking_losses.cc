#include "nn/losses/ranking_losses.h"

#include <cmath>
#include <string>
#include <vector>

#include "core/graph/ops.h"
#include "nn/base/example_pairs.h"
#include "nn/base/layer.h"

namespace cairn::nn {
namespace {

// In place of the score of what is left out. An infinity would make 0 · infinity of a gradient.
constexpr float kLeftOut = -1e30f;

[[noreturn]] void refuse_scores(const char* loss, const std::string& first, const Array& a,
                                const std::string& second, const Array& b) {
  throw InvalidArgumentError(str(loss, ": ", first, " is ", a.type().to_string(), ", ", second, " ",
                                 b.type().to_string()));
}

// bool [b, b]: where the column is the row. Of an unknown size there is no such constant; then each
// example draws a number of 62 bits and is equal to itself alone. Two of a batch of 65,536 draw
// equal ones once in two billion batches, and are then each other's positives as well.
Array diagonal(const Array& scores) {
  const std::int64_t size = scores.shape()[0];
  if (size == Shape::kUnknown) {
    Array first = reshape(slice(scores, 1, 0, 1), Shape{-1});
    Array key = random_integers_like(first, 0, std::int64_t{1} << 62);
    return equal(expand_dims(key, 1), expand_dims(key, 0));
  }
  std::vector<std::int64_t> place(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < place.size(); ++i) place[i] = static_cast<std::int64_t>(i);
  const Tensor places = Tensor::of<std::int64_t>(Shape{size}, place);
  return equal(expand_dims(places, 1), expand_dims(places, 0));
}

Array column_of(const char* loss, const std::string& what, const Array& x, const Array& scores) {
  Array values = per_example(x, str(loss, ": ", what));
  if (!fits(values.shape()[0], scores.shape()[0]))
    refuse_scores(loss, what, x, "the scores", scores);
  return expand_dims(values, 1);
}

// [1, s]
Array row_of(const char* loss, const std::string& what, const Array& x, const Array& scores) {
  Array values = per_example(x, str(loss, ": ", what));
  if (!fits(values.shape()[0], scores.shape()[1]))
    refuse_scores(loss, what, x, "the scores", scores);
  return expand_dims(values, 0);
}

void check_ids(const char* loss, const Array& ids) {
  if (ids.dtype() != DType::kInt32 && ids.dtype() != DType::kInt64)
    throw InvalidArgumentError(
        str(loss, ": ids are int32 or int64; these are ", ids.type().to_string()));
}

void check_both_or_none(const char* what, const Array& a, const Array& b) {
  if (a.defined() != b.defined())
    throw InvalidArgumentError(str("sampled_softmax: ", what,
                                   " of the right classes and of the samples go together; one of "
                                   "them is missing"));
}

}  // namespace

Array bpr(const Array& positive, const Array& negative) {
  if (!positive.defined() || !negative.defined())
    throw InvalidArgumentError("bpr: the scores of positives or of negatives are missing");
  Array good = per_example(to_float(positive), "bpr: the score of the positive");
  if (negative.rank() < 1 || negative.rank() > 2 || !fits(good.shape()[0], negative.shape()[0]))
    refuse_scores("bpr", "the positive", positive, "the negative", negative);
  Array bad = to_float(negative);
  if (bad.rank() == 1) return softplus(bad - good);
  return reduce_mean(softplus(bad - expand_dims(good, 1)), {1});
}

namespace {

// The examples of a batch and their lists, [b] each.
struct Grouped {
  Array scores, relevance;
  Array same_list;  // bool [b, b]
};

Grouped grouped(const char* loss, const Array& scores, const Array& relevance,
                const Array& groups) {
  if (!scores.defined() || !relevance.defined() || !groups.defined())
    throw InvalidArgumentError(str(loss, ": scores, relevance or groups are missing"));
  if (groups.dtype() != DType::kInt32 && groups.dtype() != DType::kInt64)
    throw InvalidArgumentError(
        str(loss, ": groups are int32 or int64; these are ", groups.type().to_string()));
  Grouped made;
  made.scores = per_example(to_float(scores), str(loss, ": the scores"));
  made.relevance = per_example(to_float(relevance), str(loss, ": the relevance"));
  const Array ids = per_example(groups, str(loss, ": the groups"));
  if (!fits(made.scores.shape()[0], made.relevance.shape()[0]))
    refuse_scores(loss, "the scores are", scores, "the relevance", relevance);
  if (!fits(made.scores.shape()[0], ids.shape()[0]))
    refuse_scores(loss, "the scores are", scores, "the groups", groups);
  made.same_list = equal(expand_dims(ids, 1), expand_dims(ids, 0));
  return made;
}

}  // namespace

Array grouped_bpr(const Array& scores, const Array& relevance, const Array& groups) {
  const Grouped all = grouped("grouped_bpr", scores, relevance, groups);
  // Row i is an example; its columns are the examples that it is compared with.
  const Array worse = greater(expand_dims(all.relevance, 1), expand_dims(all.relevance, 0));
  const Array pairs = cast(logical_and(all.same_list, worse), DType::kFloat32);
  const Array losses = softplus(expand_dims(all.scores, 0) - expand_dims(all.scores, 1));
  return reduce_sum(losses * pairs, {1}) / maximum(reduce_sum(pairs, {1}), Array(1.0f));
}

Array grouped_softmax(const Array& scores, const Array& relevance, const Array& groups) {
  const Grouped all = grouped("grouped_softmax", scores, relevance, groups);
  const Array of_list = where(all.same_list, expand_dims(all.scores, 0), Array(kLeftOut));
  return all.relevance * (reduce_logsumexp(of_list, {1}) - all.scores);
}

Array in_batch_softmax(const Array& scores, const InBatchSoftmaxOptions& options) {
  const char* const loss = "in_batch_softmax";
  if (!scores.defined() || scores.rank() != 2 || !fits(scores.shape()[0], scores.shape()[1]))
    throw InvalidArgumentError(str(loss,
                                   ": scores are [b, b], each example against each item; got ",
                                   scores.defined() ? scores.type().to_string() : "nothing"));
  if (!(options.temperature > 0) || !std::isfinite(options.temperature))
    throw InvalidArgumentError(
        str(loss, ": a temperature of ", options.temperature, "; above 0 is wanted"));
  Array z = to_float(scores);
  if (options.temperature != 1) z = z * (1.0f / options.temperature);
  if (options.log_probability.defined())
    z = z - row_of(loss, "log_probability", to_float(options.log_probability), scores);
  Array right = diagonal(scores);
  if (options.ids.defined()) {
    check_ids(loss, options.ids);
    Array same = equal(column_of(loss, "ids", options.ids, scores),
                       row_of(loss, "ids", options.ids, scores));
    z = where(logical_and(same, logical_not(right)), kLeftOut, z);
  }
  return softmax_cross_entropy_with_logits(cast(right, DType::kFloat32), z);
}

Array sampled_softmax(const Array& true_logits, const Array& sampled_logits,
                      const SampledSoftmaxOptions& options) {
  const char* const loss = "sampled_softmax";
  if (!true_logits.defined() || !sampled_logits.defined())
    throw InvalidArgumentError(
        "sampled_softmax: the logits of right or sampled classes are missing");
  if (sampled_logits.rank() != 2)
    refuse_scores(loss, "true_logits", true_logits, "sampled_logits", sampled_logits);
  check_both_or_none("log expected counts", options.true_log_expected_count,
                     options.sampled_log_expected_count);
  check_both_or_none("ids", options.true_ids, options.sampled_ids);
  Array right = column_of(loss, "true_logits", to_float(true_logits), sampled_logits);
  Array sampled = to_float(sampled_logits);
  if (options.true_ids.defined()) {
    check_ids(loss, options.true_ids);
    Array hit = equal(column_of(loss, "true_ids", options.true_ids, sampled_logits),
                      row_of(loss, "sampled_ids", options.sampled_ids, sampled_logits));
    sampled = where(hit, kLeftOut, sampled);
  }
  if (options.true_log_expected_count.defined()) {
    right = right - column_of(loss, "true_log_expected_count",
                              to_float(options.true_log_expected_count), sampled_logits);
    sampled = sampled - row_of(loss, "sampled_log_expected_count",
                               to_float(options.sampled_log_expected_count), sampled_logits);
  }
  Array z = concat({right, sampled}, 1);
  return reduce_logsumexp(z, {1}) - squeeze(right, 1);
}

}  // namespace cairn::nn
