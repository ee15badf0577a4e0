"""Losses and metrics against NumPy."""

import numpy as np
import pytest

import cairn
from cairn import nn


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


def test_losses_by_function_name_and_object_agree():
    prediction, label = values(6, 1), (values(6, 1, seed=1) > 0).astype("float32")
    expected = np.log1p(np.exp(prediction)) - label * prediction
    close(nn.sigmoid_cross_entropy(prediction, label).numpy(), expected[:, 0])
    close(cairn.Loss("binary_crossentropy", from_logits=True)(prediction, label).numpy(), expected[:, 0])
    close(cairn.losses.BinaryCrossentropy(from_logits=True)(prediction, label).numpy(), expected[:, 0])
    own = cairn.Loss(lambda p, y: nn.per_example(cairn.square(p - y)), name="own")
    close(own(prediction, label).numpy(), ((prediction - label) ** 2)[:, 0])
    assert own.name == "own"
    close(nn.reduce_loss([1.0, 3.0], weights=[1.0, 0.0]).numpy(), 0.5)
    with pytest.raises(ValueError, match="mean_squared_error"):
        cairn.Loss("mean_squared_eror")
    with pytest.raises(TypeError):
        cairn.Loss(3)


def test_every_loss_of_cairn_losses_has_its_name():
    for name in dir(cairn.losses):
        loss = getattr(cairn.losses, name)
        if isinstance(loss, type) and issubclass(loss, cairn.Loss) and loss is not cairn.Loss:
            assert loss().name in nn.loss_names()


def test_metrics_follow_numpy():
    p, y = np.array([0.1, 0.4, 0.35, 0.8], "float32"), np.array([0, 0, 1, 1])
    for metric, expected in [
        (cairn.metrics.AUC(), 0.75),
        (cairn.metrics.Accuracy(threshold=0.3), 0.75),
        (cairn.metrics.Precision(), 1.0),
        (cairn.metrics.Recall(thresholds=[0.5, 0.05]), 0.5),
        (cairn.metrics.RootMeanSquaredError(), np.sqrt(np.mean((p - y) ** 2))),
        (cairn.metrics.Metric("mae"), np.abs(p - y).mean()),
        (cairn.metrics.MeanMetric(lambda a, b: cairn.abs(a - cairn.cast(b, "float32")) < 0.5, name="near"), 0.75),
    ]:
        metric.update(p[:2], y[:2])
        metric.update(p[2:], y[2:])
        assert metric.result() == pytest.approx(expected, abs=1e-3)
        metric.reset()
        assert np.isnan(metric.result())
    assert cairn.metrics.AUC().direction == "rises"
    one, two = cairn.metrics.AUC(), cairn.metrics.AUC()
    one.update(p[:2], y[:2])
    two.update(p[2:], y[2:])
    one.merge(two)
    assert one.result() == pytest.approx(0.75, abs=1e-3)
    with pytest.raises(TypeError):
        one.merge(cairn.metrics.Recall())
    scores = np.array([[0.1, 0.9, 0.5]], "float32")
    hit = cairn.metrics.HitRate(k=1)
    hit.update(scores, [1])
    assert hit.result() == 1 and hit.name == "hit_rate@1"
    with pytest.raises(ValueError, match="curve"):
        cairn.metrics.AUC(curve="lift")
