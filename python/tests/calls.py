"""Calls whatever the package has with whatever comes to hand, as a program: calls.py SEED COUNT.

An error of any kind is fine. After "WRONG" it prints a call that hung, or whose error names what is C++'s.
A crash ends it with another status than 0.
"""

import inspect
import os
import random
import re
import signal
import sys
import tempfile

import numpy as np

import cairn
from bad import FOREIGN
from cairn import nn

MODULES = [cairn, nn, cairn.callbacks, cairn.losses, cairn.metrics, cairn.optimizers, cairn.schedules]
# Starts processes or connects to them; or is about all of a program.
LEFT_OUT = {"set_log_level", "train", "LocalCluster", "ParameterServerStrategy", "MultiWorkerMirroredStrategy", "close", "list_files"}
METHODS = {"__getitem__", "__setitem__", "__contains__", "__call__", "__add__", "__pow__", "__matmul__", "__eq__", "__dlpack__"}


class Raises:
    def __getattr__(self, name):
        raise RuntimeError(name)


class Index:
    def __index__(self):
        return 3


class HasArray:
    def __array__(self, dtype=None, copy=None):
        return np.ones((2, 2), "float32")


def generator():
    yield 1.0


def values():
    itself = []
    itself.append(itself)
    plain = [
        None, True, 0, 1, -1, 3, 2**31, 2**63, -(2**63), 2**70, 0.0, 0.5, -1.0, 1e40, float("nan"), float("inf"), 1j, "", "a", "relu", "mse", "float32", "sum",
        "\ud800", "a\0b", b"abc", [], [1], [1.0, 2.0], ["a"], [[1], [1, 2]], [None], itself, (1, 2), (), {}, {"a": 1}, {1: 2}, {1, 2}, range(3), slice(1), ...,
        lambda *a, **k: None, lambda x: x, len, generator, generator(), object(), int, Raises(), Index(), HasArray(), ValueError("e"),
    ]
    arrays = [
        np.ones((2, 2), "float32"), np.ones(3), np.arange(4), np.zeros((0, 2), "float32"), np.array(["a", "b"]), np.array([1, None], object), np.float32(2.5),
        np.int64(3), np.datetime64("2020-01-01"), np.ones(2, ">f4"), np.ones(2, "c8"), np.ones((1,) * 20, "float32"), {"x": np.ones((3, 2), "float32")},
    ]
    own = [
        cairn.Array([1.0, 2.0]), cairn.Array(np.ones((2, 3), "float32")), cairn.Array(["t"]), cairn.Dataset.range(4), nn.Dense(1), nn.Mlp([2, 1]), cairn.Loss("mse"),
        cairn.Dataset.from_tensor_slices({"x": np.ones((4, 2), "float32"), "y": np.arange(4)}, label="y").batch(2), nn.Auc(), cairn.optimizers.SGD(),
        cairn.callbacks.EarlyStopping(), cairn.Ragged(np.arange(3), np.array([0, 3])), cairn.Table({"a": np.arange(3)}), cairn.ColumnSpec("x"),
        cairn.CsvColumn("x"), cairn.FeatureColumn.as_is("x"), nn.CosineDecay(0.1, 10), nn.Initializer.zeros(),
    ]
    strategy = cairn.OneDeviceStrategy()
    with strategy.scope():
        own += [cairn.Variable(np.ones((4, 2), "float32"), name="v"), cairn.Model(nn.Dense(1))]
        own[-1].compile("sgd", "mse")
    return plain + arrays + own + [strategy, strategy.function(lambda x: x)]


def targets(known):
    """Functions, classes, their static methods, and methods of the values."""
    found = []
    for module in MODULES:
        for name, thing in vars(module).items():
            if name.startswith("_") or name in LEFT_OUT or not callable(thing) or (inspect.isclass(thing) and issubclass(thing, BaseException)):
                continue
            found.append((name, thing))
            for method in vars(thing) if inspect.isclass(thing) else ():
                if (method.startswith("_") and method not in METHODS) or method in LEFT_OUT or not callable(getattr(thing, method, None)):
                    continue
                found += [(f"{name}.{method}", getattr(each, method)) for each in known if type(each) is thing]
                if type(vars(thing)[method]).__name__ == "nb_func":
                    found.append((f"{name}.{method}", getattr(thing, method)))
    return found


def use(made, drawn, known):
    """Goes on with what a call gave."""
    repr(made)
    if isinstance(made, cairn.Array):
        made.numpy()
    elif isinstance(made, cairn.Dataset):
        for _, each in zip(range(3), made):
            repr(each)
    elif isinstance(made, nn.Layer):
        made(drawn.choice(known)).numpy()


def hung(number, frame):
    raise TimeoutError("it hangs")


def main(seed, count):
    drawn = random.Random(seed)
    known = values()
    called = targets(known)
    signal.signal(signal.SIGALRM, hung)
    for _ in range(count):
        name, function = drawn.choice(called)
        given = [drawn.choice(known) for _ in range(drawn.choice([0, 1, 1, 1, 2, 2, 3, 4]))]
        signature = (getattr(getattr(function, "__init__", function), "__nb_signature__", None) or [[""]])[0][0]
        names = [each for each in re.findall(r"(\w+):", signature) if each != "self"]
        named = {each: drawn.choice(known) for each in drawn.sample(names, min(len(names), drawn.randrange(3)))}
        signal.alarm(20)
        try:
            use(function(*given, **named), drawn, known)
        except Exception as error:
            if FOREIGN.search(str(error)) or isinstance(error, (SystemError, cairn.InternalError)) or str(error) == "it hangs":
                print("WRONG", name, [type(each).__name__ for each in given], list(named), type(error).__name__, error, flush=True)
        finally:
            signal.alarm(0)


if __name__ == "__main__":
    folder = tempfile.TemporaryDirectory()
    os.chdir(folder.name)
    cairn.set_log_level("off")
    main(int(sys.argv[1]), int(sys.argv[2]))
    folder.cleanup()
    os._exit(0)  # what the calls have left behind is nothing to be told of
