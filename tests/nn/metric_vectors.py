#!/usr/bin/env python3
"""Writes metric_vectors.json: random inputs with ties and weights, and what scikit-learn says of them.

    python3 tests/nn/metric_vectors.py > tests/nn/metric_vectors.json

Needs scikit-learn (the file names the version it was made with). Scores are on grids, so that many are
equal; probabilities lie far enough apart that no two of them share a bucket of nn::Auc. What scikit-learn
has no function for, the area under the interpolated precision-recall curve, is integrated numerically.
"""
import json

import numpy
import sklearn
from scipy.integrate import quad
from sklearn import metrics

random = numpy.random.default_rng(23)


def interpolated_area(label, score, weight):
    """The precision integrated over the recall; between thresholds both kinds of positives grow evenly."""
    total, area = numpy.sum(weight * label), 0.0
    true, false = 0.0, 0.0
    for threshold in sorted(set(score), reverse=True):
        here = score == threshold
        more_true, more_false = numpy.sum((weight * label)[here]), numpy.sum((weight * (1 - label))[here])
        if more_true > 0:
            def precision(t, true=true, false=false, more_true=more_true, more_false=more_false):
                share = (t - true) / more_true
                return t / (t + false + share * more_false) if t > 0 else more_true / (more_true + more_false)
            area += quad(precision, true, true + more_true, epsabs=1e-10)[0]
        true, false = true + more_true, false + more_false
    return area / total


def binary(n):
    score = random.integers(1, 40, n) / 40
    label = (random.random(n) < score).astype(int)
    weight = random.integers(0, 4, n)
    predicted = score > 0.5
    weighted = {"sample_weight": weight}
    return {
        "prediction": score.tolist(), "label": label.tolist(), "weights": weight.tolist(),
        "auc": metrics.roc_auc_score(label, score, **weighted),
        "pr_auc": interpolated_area(label, score, weight),
        "logloss": metrics.log_loss(label, score, **weighted),
        "binary_accuracy": metrics.accuracy_score(label, predicted, **weighted),
        "precision": metrics.precision_score(label, predicted, **weighted),
        "recall": metrics.recall_score(label, predicted, **weighted),
        "calibration": float(numpy.dot(score, weight) / numpy.dot(label, weight)),
        "mean_squared_error": metrics.mean_squared_error(label, score, **weighted),
        "root_mean_squared_error": metrics.root_mean_squared_error(label, score, **weighted),
        "mean_absolute_error": metrics.mean_absolute_error(label, score, **weighted),
        "hinge": metrics.hinge_loss(label, score, **weighted),
    }


def classes(n, c):
    score = numpy.array([random.permutation(c) + 1 for _ in range(n)], dtype=float)
    score /= score.sum(axis=1, keepdims=True)
    score = score.astype(numpy.float32).astype(float)
    label = random.integers(0, c, n)
    weight = random.integers(0, 4, n)
    known = {"sample_weight": weight, "labels": range(c)}
    return {
        "prediction": score.ravel().tolist(), "classes": c, "label": label.tolist(), "weights": weight.tolist(),
        "sparse_categorical_accuracy": metrics.accuracy_score(label, score.argmax(axis=1), sample_weight=weight),
        "sparse_top_k_categorical_accuracy@2": metrics.top_k_accuracy_score(label, score, k=2, **known),
        "sparse_categorical_crossentropy": metrics.log_loss(label, score / score.sum(axis=1, keepdims=True), **known),
    }


def worst_order(score, relevance):
    """Scores without ties, in the order that counts ties against the model."""
    order = numpy.lexsort((relevance, -score))
    distinct = numpy.empty(len(score))
    distinct[order] = numpy.arange(len(score), 0, -1)
    return distinct


def lists(b, n):
    score = random.integers(0, 5, (b, n)) / 4
    relevance = random.integers(0, 4, (b, n)) * (random.random((b, n)) < 0.4)
    weight = random.integers(1, 4, b)
    rows = {name: [] for name in ("grouped_auc", "ndcg", "ndcg@3", "linear_ndcg@3", "mrr", "recall@3", "hit_rate@3")}
    for s, r, w in zip(score, relevance, weight):
        if not r.any():
            continue
        distinct, hits = worst_order(s, r), r > 0
        ranked = hits[numpy.argsort(-distinct)]
        if not hits.all():
            rows["grouped_auc"].append((metrics.roc_auc_score(hits, s), w))
        rows["ndcg"].append((metrics.ndcg_score([2.0**r - 1], [distinct]), w))
        rows["ndcg@3"].append((metrics.ndcg_score([2.0**r - 1], [distinct], k=3), w))
        rows["linear_ndcg@3"].append((metrics.ndcg_score([r], [distinct], k=3), w))
        rows["mrr"].append((1 / (1 + numpy.argmax(ranked)), w))
        rows["recall@3"].append((metrics.recall_score(hits, distinct > n - 3), w))
        rows["hit_rate@3"].append((float(ranked[:3].any()), w))
    means = {name: float(numpy.average([v for v, _ in of], weights=[w for _, w in of]))
             for name, of in rows.items()}
    return {"prediction": score.ravel().tolist(), "length": n, "label": relevance.ravel().tolist(),
            "weights": weight.tolist(), **means}


print(json.dumps({
    "about": f"by metric_vectors.py and scikit-learn {sklearn.__version__}",
    "binary": [binary(60), binary(120)],
    "classes": [classes(40, 6)],
    "lists": [lists(24, 8), lists(10, 3)],
}, separators=(",", ":")))
