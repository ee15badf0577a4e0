// cairn.nn: losses as functions, one value for each example.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "losses.h"
#include "nn/nn.h"

namespace cairn::python {
namespace {

using Plain = Array (*)(const Array&, const Array&);
void plain(nb::module_& m, const char* name, Plain loss, const char* doc) {
  m.def(
      name, [loss](ArrayLike prediction, ArrayLike label) { return loss(prediction, label); },
      "prediction"_a, "label"_a, doc);
}

Array maybe(nb::handle object) { return object.is_none() ? Array() : array_of(object); }

void bind_numbers(nb::module_& m) {
  plain(m, "mean_squared_error", nn::mean_squared_error,
        "The mean of the squares of the errors.\n\n>>> cairn.nn.mean_squared_error([[1.0, 3.0]], "
        "[[0.0, 0.0]]).numpy()\narray([5.], dtype=float32)");
  plain(m, "mean_absolute_error", nn::mean_absolute_error,
        "The mean of the absolute errors.\n\n>>> cairn.nn.mean_absolute_error([[1.0, -3.0]], "
        "[[0.0, 0.0]]).numpy()\narray([2.], dtype=float32)");
  plain(m, "mean_absolute_percentage_error", nn::mean_absolute_percentage_error,
        "100 times the error over the label.\n\n>>> "
        "cairn.nn.mean_absolute_percentage_error([1.0], [2.0]).numpy()\narray([50.], "
        "dtype=float32)");
  plain(m, "mean_squared_logarithmic_error", nn::mean_squared_logarithmic_error,
        "The square of the difference of the logarithms.\n\n>>> "
        "cairn.nn.mean_squared_logarithmic_error([1.0], [1.0]).numpy()\narray([0.], "
        "dtype=float32)");
  plain(m, "log_cosh", nn::log_cosh,
        "log(cosh(error)).\n\n>>> cairn.nn.log_cosh([1.0], [1.0]).numpy()\narray([0.], "
        "dtype=float32)");
  plain(m, "poisson", nn::poisson,
        "The negative log likelihood of counts.\n\n>>> cairn.nn.poisson([1.0], "
        "[0.0]).numpy()\narray([1.], dtype=float32)");
  m.def(
      "huber",
      [](ArrayLike prediction, ArrayLike label, float delta) {
        return nn::huber(prediction, label, delta);
      },
      "prediction"_a, "label"_a, "delta"_a = 1.0,
      "Half of the square up to `delta`, and straight beyond.\n\n>>> cairn.nn.huber([3.0], "
      "[0.0]).numpy()\narray([2.5], dtype=float32)");
  plain(m, "hinge", nn::hinge,
        "max(0, 1 - label * prediction), of labels -1 and 1.\n\n>>> cairn.nn.hinge([0.5], "
        "[1.0]).numpy()\narray([0.5], dtype=float32)");
  plain(m, "squared_hinge", nn::squared_hinge,
        "Its square.\n\n>>> cairn.nn.squared_hinge([0.5], [1.0]).numpy()\narray([0.25], "
        "dtype=float32)");
  plain(m, "categorical_hinge", nn::categorical_hinge,
        "How far the best wrong class comes up to the right one.\n\n>>> "
        "cairn.nn.categorical_hinge([[0.5, 0.0]], [[1.0, 0.0]]).numpy()\narray([0.5], "
        "dtype=float32)");
  plain(m, "kl_divergence", nn::kl_divergence,
        "The divergence of the prediction from the label.\n\n>>> cairn.nn.kl_divergence([[0.5, "
        "0.5]], [[0.5, 0.5]]).numpy()\narray([0.], dtype=float32)");
  plain(m, "cosine_similarity", nn::cosine_similarity,
        "The cosine of the angle, times -1.\n\n>>> cairn.nn.cosine_similarity([[1.0, 0.0]], [[2.0, "
        "0.0]]).numpy()\narray([-1.], dtype=float32)");
}

void bind_cross_entropies(nb::module_& m) {
  plain(m, "sigmoid_cross_entropy", nn::sigmoid_cross_entropy,
        "The binary cross entropy of logits.\n\n>>> cairn.nn.sigmoid_cross_entropy([0.0], "
        "[1.0]).numpy().round(4)\narray([0.6931], dtype=float32)");
  plain(m, "softmax_cross_entropy", nn::softmax_cross_entropy,
        "The cross entropy of logits, for labels [b, c].\n\n>>> "
        "cairn.nn.softmax_cross_entropy([[0.0, 0.0]], [[1.0, 0.0]]).numpy().round(4)\narray([0."
        "6931], dtype=float32)");
  plain(m, "sparse_softmax_cross_entropy", nn::sparse_softmax_cross_entropy,
        "The cross entropy of logits, for class ids.\n\n>>> "
        "cairn.nn.sparse_softmax_cross_entropy([[0.0, 0.0]], [1]).numpy().round(4)\narray([0."
        "6931], dtype=float32)");
  m.def(
      "binary_cross_entropy",
      [](ArrayLike prediction, ArrayLike label, bool from_logits, float label_smoothing) {
        return nn::binary_cross_entropy(
            prediction, label, {.from_logits = from_logits, .label_smoothing = label_smoothing});
      },
      "prediction"_a, "label"_a, nb::kw_only(), "from_logits"_a = false, "label_smoothing"_a = 0.0,
      "Of probabilities, or of logits.\n\n>>> cairn.nn.binary_cross_entropy([0.5], "
      "[1.0]).numpy().round(4)\narray([0.6931], dtype=float32)");
  using Categorical = Array (*)(const Array&, const Array&, nn::CategoricalCrossEntropyOptions);
  const auto categorical = [&](const char* name, Categorical loss, const char* doc) {
    m.def(
        name,
        [loss](ArrayLike prediction, ArrayLike label, bool from_logits, float label_smoothing) {
          return loss(prediction, label,
                      {.from_logits = from_logits, .label_smoothing = label_smoothing});
        },
        "prediction"_a, "label"_a, nb::kw_only(), "from_logits"_a = false,
        "label_smoothing"_a = 0.0, doc);
  };
  categorical("categorical_cross_entropy", nn::categorical_cross_entropy,
              "Of classes, for labels [b, c].\n\n>>> cairn.nn.categorical_cross_entropy([[0.5, "
              "0.5]], [[1.0, 0.0]]).numpy().round(4)\narray([0.6931], dtype=float32)");
  categorical("sparse_categorical_cross_entropy", nn::sparse_categorical_cross_entropy,
              "Of classes, for class ids.\n\n>>> cairn.nn.sparse_categorical_cross_entropy([[0.5, "
              "0.5]], [1]).numpy().round(4)\narray([0.6931], dtype=float32)");
  using Focal = Array (*)(const Array&, const Array&, const nn::FocalOptions&);
  const auto focal = [&](const char* name, Focal loss, const char* doc) {
    m.def(
        name,
        [loss](ArrayLike prediction, ArrayLike label, bool from_logits, float label_smoothing,
               float gamma, std::optional<float> alpha) {
          return loss(prediction, label,
                      {.from_logits = from_logits,
                       .label_smoothing = label_smoothing,
                       .gamma = gamma,
                       .alpha = alpha});
        },
        "prediction"_a, "label"_a, nb::kw_only(), "from_logits"_a = false,
        "label_smoothing"_a = 0.0, "gamma"_a = 2.0, "alpha"_a = nb::none(), doc);
  };
  focal("binary_focal_cross_entropy", nn::binary_focal_cross_entropy,
        "The binary one, in which what is classified well counts less.\n\n>>> "
        "cairn.nn.binary_focal_cross_entropy([0.5], [1.0], gamma=0).numpy().round(4)\narray([0."
        "6931], dtype=float32)");
  focal("categorical_focal_cross_entropy", nn::categorical_focal_cross_entropy,
        "The same of classes, for labels [b, c].\n\n>>> "
        "cairn.nn.categorical_focal_cross_entropy([[0.5, 0.5]], [[1.0, 0.0]], gamma=0, "
        "alpha=1).numpy().round(4)\narray([0.6931], dtype=float32)");
}

void bind_ranking(nb::module_& m) {
  m.def(
      "bpr", [](ArrayLike positive, ArrayLike negative) { return nn::bpr(positive, negative); },
      "positive"_a, "negative"_a,
      "-log sigmoid(positive - negative) (Rendle et al., UAI 2009).\n\n>>> cairn.nn.bpr([1.0], "
      "[1.0]).numpy().round(4)\narray([0.6931], dtype=float32)");
  m.def(
      "in_batch_softmax",
      [](ArrayLike scores, nb::handle log_probability, nb::handle ids, float temperature) {
        return nn::in_batch_softmax(scores, {.log_probability = maybe(log_probability),
                                             .ids = maybe(ids),
                                             .temperature = temperature});
      },
      "scores"_a, nb::kw_only(), "log_probability"_a = nb::none(), "ids"_a = nb::none(),
      "temperature"_a = 1.0,
      nb::sig("def in_batch_softmax(scores: cairn.typing.ArrayLike, *, log_probability: "
              "cairn.typing.ArrayLike | None = None, ids: cairn.typing.ArrayLike | None = None, "
              "temperature: float = 1.0) -> cairn._cairn.Array"),
      "Cross entropy over the batch's own items: example i against item j.\n\n>>> "
      "cairn.nn.in_batch_softmax([[0.0, 0.0], [0.0, 0.0]]).numpy().round(4)\narray([0.6931, "
      "0.6931], dtype=float32)");
  m.def(
      "sampled_softmax",
      [](ArrayLike true_logits, ArrayLike sampled_logits, nb::handle true_log_expected_count,
         nb::handle sampled_log_expected_count, nb::handle true_ids, nb::handle sampled_ids) {
        return nn::sampled_softmax(true_logits, sampled_logits,
                                   {.true_log_expected_count = maybe(true_log_expected_count),
                                    .sampled_log_expected_count = maybe(sampled_log_expected_count),
                                    .true_ids = maybe(true_ids),
                                    .sampled_ids = maybe(sampled_ids)});
      },
      "true_logits"_a, "sampled_logits"_a, nb::kw_only(), "true_log_expected_count"_a = nb::none(),
      "sampled_log_expected_count"_a = nb::none(), "true_ids"_a = nb::none(),
      "sampled_ids"_a = nb::none(),
      nb::sig("def sampled_softmax(true_logits: cairn.typing.ArrayLike, sampled_logits: "
              "cairn.typing.ArrayLike, *, true_log_expected_count: cairn.typing.ArrayLike | None = "
              "None, sampled_log_expected_count: cairn.typing.ArrayLike | None = None, true_ids: "
              "cairn.typing.ArrayLike | None = None, sampled_ids: cairn.typing.ArrayLike | None = "
              "None) -> cairn._cairn.Array"),
      "Cross entropy of the right class against sampled ones.\n\n>>> "
      "cairn.nn.sampled_softmax([0.0], [[0.0]]).numpy().round(4)\narray([0.6931], "
      "dtype=float32)");
  using Grouped = Array (*)(const Array&, const Array&, const Array&);
  const auto grouped = [&](const char* name, Grouped loss, const char* doc) {
    m.def(
        name,
        [loss](ArrayLike scores, ArrayLike relevance, ArrayLike groups) {
          return loss(scores, relevance, groups);
        },
        "scores"_a, "relevance"_a, "groups"_a, doc);
  };
  grouped("grouped_bpr", nn::grouped_bpr,
          "bpr() over the pairs of lists whose items are examples.\n\n>>> "
          "cairn.nn.grouped_bpr([1.0, 1.0], [1.0, 0.0], [7, 7]).numpy().round(4)\narray([0.6931, "
          "0.    ], dtype=float32)");
  grouped("grouped_softmax", nn::grouped_softmax,
          "Cross entropy over each list.\n\n>>> cairn.nn.grouped_softmax([1.0, 1.0], [1.0, 0.0], "
          "[7, 7]).numpy().round(4)\narray([0.6931, 0.    ], dtype=float32)");
}

void bind_weights(nb::module_& m) {
  using Weights = Array (*)(const Array&, float);
  const auto regularization = [&](const char* name, Weights loss, const char* doc) {
    m.def(
        name, [loss](ArrayLike weights, float strength) { return loss(weights, strength); },
        "weights"_a, "strength"_a, doc);
  };
  regularization("l1_regularization", nn::l1_regularization,
                 "The sum of the absolute weights times `strength`.\n\n>>> "
                 "cairn.nn.l1_regularization([-2.0], 0.5).item()\n1.0");
  regularization("l2_regularization", nn::l2_regularization,
                 "The sum of the squares times `strength`.\n\n>>> "
                 "cairn.nn.l2_regularization([2.0], 0.5).item()\n2.0");
}

}  // namespace

void bind_loss_functions(nb::module_& m) {
  bind_numbers(m);
  bind_cross_entropies(m);
  bind_ranking(m);
  bind_weights(m);
}

}  // namespace cairn::python
