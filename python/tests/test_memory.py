"""Memory does not grow with what a program has traced, fitted and let go of."""

import ctypes
import gc

import numpy as np
import pytest

import cairn

X, Y = np.ones((8, 2), "float32"), np.ones(8, "float32")
DATA = cairn.Dataset.from_tensor_slices({"x": X, "y": Y}, label="y").shuffle(8).batch(8)


class Heap(ctypes.Structure):
    """What glibc's mallinfo2() gives."""

    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


def used():
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Heap
    gc.collect()
    heap = mallinfo()
    return heap.uordblks + heap.hblkhd


def least(act, runs):
    """The least memory in use while `act` runs: what waits to be cleared up comes and goes."""
    found = []
    for _ in range(runs // 16):
        for _ in range(16):
            act()
        found.append(used())
    return min(found)


def traces(strategy, model):
    def step(x):
        return {"sum": cairn.sum(x * 2.0)}

    strategy.run(strategy.function(step), X)


def errors(strategy, model):
    for wrong in (lambda: cairn.nn.Dense("a"), lambda: strategy.run(strategy.function(lambda x: float(x)), X), lambda: cairn.Array(1.0)[5]):
        with pytest.raises((TypeError, ValueError)):
            wrong()


ACTS = {
    "traces": traces,
    "fits of arrays": lambda strategy, model: model.fit(X, Y, batch_size=8, verbose=0),
    "fits of a dataset": lambda strategy, model: model.fit(DATA, verbose=0),
    "predictions": lambda strategy, model: model.predict(X),
    "datasets": lambda strategy, model: list(cairn.Dataset.range(4).map(lambda of: {"x": of["value"] * 2}).batch(2)),
    "errors": errors,
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_memory_grows_by_less_than_5_mb_in_10_000(act):
    strategy = cairn.OneDeviceStrategy()
    with strategy.scope():
        model = cairn.Model(cairn.nn.Dense(1))
        model.compile("sgd", "mse")
    run = lambda: act(strategy, model)  # noqa: E731
    least(run, 160)
    before = least(run, 160)
    for _ in range(320):
        run()
    grown = least(run, 160) - before
    assert grown * 10_000 / 480 < 5e6, f"{grown} bytes in 480"
    strategy.close()
