"""Optimizers, gradients by variable, learning rates, update rules that are written in Python."""

import numpy as np
import pytest

import cairn
from cairn import nn


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


@pytest.fixture
def strategy():
    made = cairn.OneDeviceStrategy()
    with made.scope():
        yield made
    made.close()


def test_minimize_takes_the_variables_that_are_given(strategy):
    a, b = cairn.Variable(1.0, name="a"), cairn.Variable(1.0, name="b")
    cairn.optimizers.SGD(0.5).minimize(a * 2.0 + b * 2.0, var_list=[a])
    assert (a.numpy(), b.numpy()) == (0, 1)


def test_gradients_are_changed_between_the_loss_and_the_optimizer(strategy):
    v = cairn.Variable([1.0, 1.0], name="v")
    optimizer = cairn.optimizers.SGD(1.0)
    gradients = cairn.variable_gradients(cairn.sum(v * 3.0))
    optimizer.apply_gradients([(gradient * 2.0, variable) for gradient, variable in gradients])
    close(v.numpy(), [-5, -5])
    assert optimizer.iterations.numpy() == 1
    table = nn.Embedding(rows=4, dim=1, initializer="ones", name="e")
    sparse = cairn.variable_gradients(cairn.sum(table([2, 2])))[0]
    assert sparse.is_sparse and sparse.dense is None and sparse.rows.shape == (2, 1)
    optimizer.apply_gradients([sparse])
    close(table.table.numpy()[:, 0], [1, 1, -1, 1])


def test_clipping_bounds_a_step(strategy):
    for options, expected in [
        ({"clipnorm": 1.0}, [-0.6, -0.8]),
        ({"clipvalue": 1.0}, [-1, -1]),
        ({"global_clipnorm": 2.0}, [-1.2, -1.6]),
    ]:
        v = cairn.Variable([0.0, 0.0], name="v")
        cairn.optimizers.SGD(1.0, **options).minimize(cairn.sum(v * [3.0, 4.0]))
        close(v.numpy(), expected)


def test_a_rate_follows_a_schedule_or_a_function(strategy):
    schedules = cairn.optimizers.schedules
    for rate in (schedules.ExponentialDecay(1.0, 1, 0.5), lambda step: cairn.pow(0.5, step)):
        v = cairn.Variable(0.0, name="v")
        optimizer = cairn.optimizers.SGD(rate)
        for _ in range(3):
            optimizer.minimize(v * 1.0)
        close(v.numpy(), -1.75)
    close(schedules.PiecewiseConstantDecay([1], [1.0, 0.5])(5.0).numpy(), 0.5)


def test_a_rate_is_set_before_steps_are_recorded(strategy):
    v = cairn.Variable(0.0, name="v")
    optimizer = cairn.optimizers.SGD(1.0)
    optimizer.make_rate_adjustable()
    optimizer.minimize(v * 1.0)
    optimizer.learning_rate = 0.25
    optimizer.minimize(v * 1.0)
    close(v.numpy(), -1.25)
    fixed = cairn.optimizers.SGD(1.0)
    fixed.minimize(v * 1.0)
    with pytest.raises(cairn.FailedPreconditionError, match="make_rate_adjustable"):
        fixed.learning_rate = 0.5


def test_every_optimizer_takes_its_arguments(strategy):
    for name in nn.optimizer_names():
        v = cairn.Variable([1.0], name=name)
        cairn.Optimizer(name, 0.1, name=f"of_{name}").minimize(cairn.sum(v * v))
        assert v.numpy()[0] < 1
    for kind in vars(cairn.optimizers).values():
        if isinstance(kind, type) and kind.__module__ == "cairn.optimizers":
            v = cairn.Variable([1.0], name=kind.__name__)
            kind(0.1, clipnorm=1.0, name=f"class_{kind.__name__}").minimize(cairn.sum(v * v))
            assert v.numpy()[0] < 1
    close(cairn.optimizers.Adam(0.1, amsgrad=True, api="keras2").learning_rate.numpy(), 0.1)
    with pytest.raises(TypeError, match="momentum"):
        cairn.Optimizer("sgd", momentun=0.9)
    with pytest.raises(ValueError, match="adam"):
        cairn.Optimizer("adm")


def test_an_update_rule_in_python_is_applied_like_any_other(strategy):
    def rule(r):
        m = 0.9 * r["m"] + r.gradient
        return r.value - r.learning_rate * m, {"m": m}

    own, momentum = cairn.Variable([1.0], name="own"), cairn.Variable([1.0], name="momentum")
    mine = cairn.CustomOptimizer(rule, slots={"m": 0.0}, learning_rate=0.1)
    for _ in range(3):
        mine.minimize(cairn.sum(own * own))
        cairn.optimizers.SGD(0.1, momentum=0.9, name="s").minimize(cairn.sum(momentum * momentum))
    close(own.numpy(), momentum.numpy())
    with pytest.raises(ValueError, match='slot "m"'):
        cairn.CustomOptimizer(lambda r: (r.value, {}), slots={"m": 0.0})
