// Losses for retrieval and ranking, where an example is scored against others that it is not to
// find: one value per example, as in nn/losses/losses.h.
//
//     Array scores = matmul(user_tower(user), item_tower(item), false, true);  // [b, b]
//     Array loss = mean(nn::in_batch_softmax(scores, {.ids = item_ids}));
//
//   Errors  InvalidArgument, naming the loss and the shapes that do not fit.
#pragma once
#include "core/graph/array.h"

namespace cairn::nn {

// -log sigmoid(positive - negative): the score of an item that the user chose, [b] or [b, 1], and
// the scores of one item that the user did not choose, the same shapes, or of several, [b, n], of
// which the loss is the mean -> [b].
//   Source  Rendle, Freudenthaler, Gantner, Schmidt-Thieme, "BPR: Bayesian personalized ranking
//           from implicit feedback", UAI 2009.
Array bpr(const Array& positive, const Array& negative);

// Cross entropy over the batch's own items: scores [b, b], example i against item j, of which item
// i is the right one and all others serve as negatives -> [b].
struct InBatchSoftmaxOptions {
  // float32 [b] or [b, 1]: the logarithm of the probability of each item to be in a batch. It is
  // subtracted from the scores, since popular items are negatives more often. Not at serving.
  // Without it what is popular is pushed down, and a model may find less than the list of the most
  // popular items does. Where items are few, count how often each one occurs in the data, and take
  // the logarithm of its share (examples/visits.cc).
  //   Source  Yi et al., "Sampling-bias-corrected neural modeling for large corpus item
  //           recommendations", RecSys 2019.
  Array log_probability = {};
  // int32 or int64, [b] or [b, 1]: the items' ids. An item of the same id as the right one is no
  // negative and is left out.
  Array ids = {};
  float temperature = 1;  // scores are divided by it first; above 0
};
Array in_batch_softmax(const Array& scores, const InBatchSoftmaxOptions& options = {});

// Cross entropy of the right class against sampled ones, in place of all of a large number of
// classes: the right class's logits [b] or [b, 1], the sampled ones' logits [b, s] -> [b].
struct SampledSoftmaxOptions {
  // The logarithm of how often each class is expected among the samples, to be subtracted from its
  // logits: of the right classes [b] or [b, 1] and of the samples [s]. Both or none.
  Array true_log_expected_count = {}, sampled_log_expected_count = {};
  // Class ids, int64 or both int32, shaped as the counts: a sample that is the right class of an
  // example is left out there. Both or none.
  Array true_ids = {}, sampled_ids = {};
};
//   Source  Jean, Cho, Memisevic, Bengio, "On using very large target vocabulary for neural machine
//           translation", ACL 2015.
Array sampled_softmax(const Array& true_logits, const Array& sampled_logits,
                      const SampledSoftmaxOptions& options = {});

// Losses over lists whose items are examples of their own, side by side in a batch. `groups`,
// int32 or int64, has one number for all examples of a list; scores, relevance and groups are [b]
// or [b, 1] each -> [b]. Relevance is a number from 0 on, larger for better items.
//   Cost  b · b numbers in memory.
//
// bpr() over the pairs of a list: the mean, over the examples of its list that are less relevant
// than it, of -log sigmoid(its score - theirs). 0 for an example without such.
Array grouped_bpr(const Array& scores, const Array& relevance, const Array& groups);
// Cross entropy over each list: relevance · -log of the softmax over the scores of its list.
//   Source  Cao, Qin, Liu, Tsai, Li, "Learning to rank: from pairwise approach to listwise
//           approach", ICML 2007.
Array grouped_softmax(const Array& scores, const Array& relevance, const Array& groups);

}  // namespace cairn::nn
