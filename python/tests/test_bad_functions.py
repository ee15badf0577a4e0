"""Functions that cannot be recorded, strategies, scopes and coordinators that are used wrongly."""

import functools
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import cairn
from bad import Case, parametrized

CLOSED = cairn.FailedPreconditionError
INVALID = cairn.InvalidArgumentError


@pytest.fixture(scope="module")
def strategy():
    made = cairn.OneDeviceStrategy()
    yield made
    made.close()


def returning(value):
    def act(strategy):
        return strategy.run(strategy.function(lambda: value, name="step"))

    return act


def recorded(body):
    """A case whose wrong code stands in a function of one array."""

    def act(strategy):
        return strategy.run(strategy.function(body, name="step"), np.ones(2, "float32"))

    return act


def generator():
    yield 1.0


async def later():
    return 1.0


async def each_later():
    yield 1.0


class Callable:
    def __call__(self, x):
        return "text"


RETURNED = [
    Case("a text", returning("text"), TypeError, '"step"', "returned a str", "arrays"),
    Case("a text in a dict", returning({"a": {"b": "text"}}), TypeError, '"step"', "returned a str", '"a/b"'),
    Case("bytes", returning(b"text"), TypeError, '"step"', "bytes"),
    Case("a generator", returning(generator()), TypeError, '"step"', "generator", "a list, a tuple or a dict"),
    Case("a set", returning({1.0}), TypeError, '"step"', "set", "a list"),
    Case("a dict keyed by ints", returning({1: 2.0}), TypeError, '"step"', "keyed by texts", "not by 1"),
    Case("an object", returning(object()), TypeError, '"step"', "object"),
    Case("a function", returning(len), TypeError, '"step"', "builtin_function_or_method"),
    Case("a date", returning(np.datetime64("2020-01-01")), TypeError, '"step"', "datetime64"),
    Case("an object that returns a text", lambda s: s.run(s.function(Callable(), name="step"), 1.0), TypeError, '"step"', "str"),
]

FUNCTIONS = [
    Case("a generator", lambda s: s.function(generator), TypeError, '"generator"', "coroutine or a generator"),
    Case("a coroutine", lambda s: s.function(later), TypeError, '"later"', "coroutine or a generator"),
    Case("an asynchronous generator", lambda s: s.function(each_later), TypeError, '"each_later"', "coroutine or a generator"),
    Case("a partial coroutine", lambda s: s.function(functools.partial(later)), TypeError, "coroutine or a generator"),
    Case("a number", lambda s: s.function(3), TypeError, "can be called", "not 3"),
    Case("nothing", lambda s: s.function(), TypeError, "OneDeviceStrategy.function()", '"function" is missing'),
    Case("a name that is a number", lambda s: s.function(len, name=3), TypeError, '"name" is 3', "a str or None"),
    Case("a missing argument", lambda s: s.run(s.function(lambda x, y: x)), TypeError, "missing 2 required positional arguments"),
    Case("one argument too many", lambda s: s.run(s.function(lambda x: x), 1.0, 2.0), TypeError, "takes 1 positional argument"),
    Case("another name", lambda s: s.run(s.function(lambda x: x), y=1.0), TypeError, "unexpected keyword argument 'y'"),
    Case("a function that is not recorded", lambda s: s.run(lambda x: x, 1.0), TypeError, "@strategy.function", "not a function"),
    Case("a call", lambda s: s.function(lambda x: x, name="step")(1.0), TypeError, '"step"', "strategy.run(step, ...)", "coordinator.schedule(step"),
    Case("an argument that is no array", lambda s: s.run(s.function(lambda x: x, name="step"), object()), TypeError, '"step"', "object"),
    Case("an argument in a dict", lambda s: s.run(s.function(lambda x: x, name="step"), {"a": [object()]}), TypeError, '"step"', '"x/a/0"', "object"),
    Case("an argument that is a generator", lambda s: s.run(s.function(lambda x: x), (i for i in [1])), TypeError, "generator", "a list"),
    Case("an argument that is a dataset", lambda s: s.run(s.function(lambda x: x, name="step"), cairn.Dataset.range(3)), TypeError, '"step", argument "x"', "strategy.iterate"),
    Case("an argument of complex numbers", lambda s: s.run(s.function(lambda x: x), np.ones(2, "complex64")), TypeError, "complex64", "x.real"),
    Case("an error of its own", recorded(lambda x: 1 / 0), ZeroDivisionError, "division by zero"),
]

RECORDED = [
    Case("bool", recorded(lambda x: x if cairn.sum(x) > 0 else -x), TypeError, "truth value", "cairn.where"),
    Case("and", recorded(lambda x: (x > 0) and x), TypeError, "truth value", "cairn.where"),
    Case("float", recorded(lambda x: float(cairn.sum(x))), TypeError, "no value", "return it"),
    Case("int", recorded(lambda x: int(cairn.sum(x))), TypeError, "no value", "return it"),
    Case("item", recorded(lambda x: x.item()), TypeError, "no value", "return it"),
    Case("numpy", recorded(lambda x: x.numpy()), TypeError, "no value", "return it"),
    Case("in", recorded(lambda x: 1.0 in x), TypeError, "`in`", "cairn.reduce_any"),
    Case("a loop", recorded(lambda x: [each for each in x]), TypeError, "looped over", "all elements at once"),
    Case("numpy.exp", recorded(lambda x: np.exp(x)), TypeError, "numpy.exp", "cairn.exp"),
    Case("numpy.concatenate", recorded(lambda x: np.concatenate([x, x])), TypeError, "recorded"),
    Case("math.sqrt", recorded(lambda x: __import__("math").sqrt(cairn.sum(x))), TypeError, "no value"),
    Case("range", recorded(lambda x: list(range(cairn.sum(x)))), TypeError, "Array"),
    Case("a comparison chain", recorded(lambda x: 0 < x < 1), TypeError, "truth value", "cairn.where"),
    Case("an assignment", recorded(lambda x: x.__setitem__(0, 1.0)), TypeError, "does not change", "cairn.where"),
    Case("sorted", recorded(lambda x: sorted(x)), TypeError, "looped over"),
    Case("max", recorded(lambda x: max(x)), TypeError, "looped over"),
    Case("an f-string's format", recorded(lambda x: f"{x:.2f}"), TypeError, "format"),
    Case("a call", recorded(lambda x: x(1)), TypeError, "not callable"),
    Case("a random length", recorded(lambda x: cairn.random_normal((cairn.sum(x),))), TypeError, "a size of a shape", "Array"),
]


@parametrized(RETURNED)
def test_a_function_returns_arrays(strategy, case):
    case.check(strategy)


@parametrized(FUNCTIONS)
def test_what_is_no_function_or_no_argument_is_told(strategy, case):
    case.check(strategy)


@parametrized(RECORDED)
def test_a_recorded_array_says_what_to_write(strategy, case):
    case.check(strategy)


def test_an_array_of_another_trace_is_refused(strategy):
    kept = []
    strategy.run(strategy.function(lambda x: kept.append(x) or x, name="one"), 1.0)
    Case("", recorded(lambda x: x + kept[0]), CLOSED, "another function").check(strategy)
    Case("", recorded(lambda x: kept[0]), CLOSED, "another function").check(strategy)
    Case("", lambda: kept[0].numpy(), TypeError, "no value", "return it").check()
    assert "recorded" in repr(kept[0])


def test_traces_that_return_other_nests_keep_them(strategy):
    step = strategy.function(lambda x: [x] if x.dtype == "float32" else {"0": x}, name="step")
    one, two = np.ones(1, "float32"), np.ones(1, "int64")
    for _ in range(2):
        assert isinstance(strategy.run(step, one), list)
        assert isinstance(strategy.run(step, two), dict)
    nothing = strategy.function(lambda x: None if x.dtype == "float32" else [], name="nothing")
    assert strategy.run(nothing, one) is None
    Case("", lambda: strategy.run(nothing, two), INVALID, '"nothing"', "None").check()


# ---- strategies, scopes ----


STRATEGIES = [
    Case("a device", lambda: cairn.OneDeviceStrategy("gpu:99"), cairn.NotFoundError, "gpu:99"),
    Case("a device that is a number", lambda: cairn.OneDeviceStrategy(3), TypeError, "OneDeviceStrategy()", '"device" is 3', "a str"),
    Case("devices that are a text", lambda: cairn.MirroredStrategy("cpu:0"), TypeError, "MirroredStrategy()", '"devices" is \'cpu:0\'', "a list of strs"),
    Case("a device twice", lambda: cairn.MirroredStrategy(["cpu:0", "cpu:0"]), INVALID, "cpu:0"),
    Case("a seed", lambda: cairn.OneDeviceStrategy(seed=-1), INVALID, '"seed" is -1', "at least 0"),
    Case("no TF_CONFIG", lambda: cairn.ParameterServerStrategy(), INVALID, "TF_CONFIG"),
    Case("a TF_CONFIG that is no JSON", lambda: cairn.ParameterServerStrategy("{"), INVALID, "TF_CONFIG"),
    Case("a TF_CONFIG without ps", lambda: cairn.ParameterServerStrategy('{"cluster": {"worker": ["localhost:1"]}, "task": {"type": "worker", "index": 0}}'), INVALID, "ps"),
    Case("a cluster of no workers", lambda: cairn.LocalCluster(ps=1, workers=0), INVALID, "workers", "0"),
    Case("a cluster of -1 ps", lambda: cairn.LocalCluster(ps=-1), INVALID, "ps", "-1"),
    Case("a cluster of texts", lambda: cairn.LocalCluster(ps="two"), TypeError, "LocalCluster()", '"ps" is \'two\'', "an int"),
    Case("a coordinator of another strategy", lambda: cairn.ClusterCoordinator(cairn.OneDeviceStrategy()), TypeError, "ClusterCoordinator()", "ParameterServerStrategy", "strategy.run"),
    Case("a coordinator of nothing", lambda: cairn.ClusterCoordinator(None), TypeError, "ClusterCoordinator()", '"strategy" is None', "a Strategy"),
    Case("a plain Strategy", lambda: cairn.Strategy(), TypeError, "Strategy"),
    Case("a plain Function", lambda: cairn.Function(), TypeError, "Function"),
]


@parametrized(STRATEGIES)
def test_a_strategy_says_what_it_is_made_of(case, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    case.check()


def test_what_a_closed_strategy_made_is_refused(tmp_path):
    closed = cairn.OneDeviceStrategy()
    with closed.scope():
        v = cairn.Variable(np.zeros(2, "float32"), name="v")
        optimizer = cairn.optimizers.Adam(0.1)
        model = cairn.Model(cairn.nn.Dense(1))
        model.compile("sgd", "mse")
        layer = cairn.nn.Dense(1)
        layer(np.ones((1, 2), "float32"))
    step = closed.function(lambda: v.read())
    data = closed.experimental_distribute_dataset(cairn.Dataset.range(4).batch(2))
    iterator = closed.iterate(cairn.Dataset.range(4).batch(2))
    closed.close()
    x = np.ones((2, 2), "float32")
    uses = [
        v.read, v.numpy, lambda: v + 1.0, lambda: v[0], lambda: v.assign([1.0, 1.0]), lambda: v.gather([0]), lambda: np.asarray(v),
        lambda: closed.run(step), lambda: closed.function(lambda: 1.0), lambda: closed.scope().__enter__(), lambda: closed.save(str(tmp_path)),
        lambda: closed.iterate(cairn.Dataset.range(3)), lambda: closed.iterate(data), lambda: closed.num_replicas_in_sync, lambda: bool(v == 1.0),
        lambda: model.fit(x, np.ones(2), verbose=0), lambda: model.predict(x), lambda: model.get_weights(), lambda: model.save(str(tmp_path / "m")),
        lambda: optimizer.minimize(cairn.sum(v * 2.0)),
    ]
    for number, use in enumerate(uses):
        Case(str(number), use, CLOSED, "closed").check()
    assert "Variable" in repr(v) and repr(closed) and repr(model) and repr(iterator)


def test_what_cannot_be_pickled_says_so(strategy):
    with strategy.scope():
        v = cairn.Variable(1.0, name="p")
        model = cairn.Model(cairn.nn.Dense(1))
    step = strategy.function(lambda x: x, name="step")
    things = {
        "OneDeviceStrategy": strategy, "Variable": v, "Function": step, "Model": model, "Scope": strategy.scope(),
        "Dense": cairn.nn.Dense(1), "Dataset": cairn.Dataset.range(3), "Array": cairn.Array(1.0), "Adam": cairn.optimizers.Adam(),
        "DatasetIterator": iter(cairn.Dataset.range(3)), "AUC": cairn.metrics.AUC(), "EarlyStopping": cairn.callbacks.EarlyStopping(),
    }
    for name, thing in things.items():
        for protocol in (2, pickle.HIGHEST_PROTOCOL):
            Case(name, lambda: pickle.dumps(thing, protocol), TypeError, "pickle").check()


def test_a_scope_belongs_to_the_thread_that_opened_it(strategy):
    scope = strategy.scope()
    scope.__enter__()
    errors = []

    def leave():
        try:
            scope.__exit__(None, None, None)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    Case("", scope.__enter__, CLOSED, "open already").check()
    scope.__exit__(None, None, None)
    assert isinstance(errors[0], CLOSED) and "thread" in str(errors[0])
    Case("", lambda: scope.__exit__(None, None, None), CLOSED, "not open").check()


def test_a_scope_that_ends_before_an_inner_one_is_refused(strategy):
    outer, inner = strategy.scope(), strategy.scope()
    outer.__enter__()
    inner.__enter__()
    Case("", lambda: outer.__exit__(None, None, None), CLOSED, "ends before", "generator").check()
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)


# ---- in a process of its own, since it may crash or hang ----

CHILD = """
import multiprocessing, os, sys
import numpy as np
import cairn
strategy = cairn.OneDeviceStrategy()
with strategy.scope():
    v = cairn.Variable([1.0, 2.0], name="v")
    model = cairn.Model(cairn.nn.Dense(1))
    model.compile("sgd", "mse")
step = strategy.function(lambda: v.read())
x = np.ones((4, 2), "float32")
model.fit(x, np.ones(4, "float32"), verbose=0)
iterator = iter(cairn.Dataset.range(100).batch(2).prefetch(4))
next(iterator)
"""
FORKS = """
for use in USES:
    child = os.fork()
    if child == 0:
        try:
            exec(use)
        except cairn.FailedPreconditionError as error:
            print(error, flush=True)
            sys.exit(7)
        sys.exit(8)
    print(use, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
print(v.numpy().tolist(), len(cluster.pids), os.path.exists(cluster.folder))
"""
USES = [
    "strategy.run(step)",
    "v.numpy()",
    "with strategy.scope(): cairn.Variable(1.0)",
    "model.fit(x, np.ones(4, 'float32'), verbose=0)",
    "model.predict(x)",
    "next(iterator)",
    "cairn.OneDeviceStrategy()",
    "cairn.load_model('/none')",
    "cairn.LocalCluster(ps=1, workers=1)",
    "cluster.strategy()",
]


def test_a_child_of_fork_gets_an_error_and_ends():
    program = CHILD + "cluster = cairn.LocalCluster(ps=1, workers=1)\nover = cluster.strategy()\n" + FORKS.replace("USES", repr(USES))
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and "leak" not in run.stderr, run.stderr
    *told, last = run.stdout.splitlines()
    assert [line for line in told if " 7" in line] == [f"{use} 7" for use in USES]
    assert len([line for line in told if "forked" in line and "spawn" in line]) == len(USES)
    assert last == "[1.0, 2.0] 2 True"


ENDLESS = {
    "a recursion": ("def f(x): return f(x)\nstrategy.run(strategy.function(f), 1.0)", "RecursionError"),
    "a layer of itself": ("s = cairn.nn.Sequential()\ns.add(s)\ns(np.ones((1, 2), 'float32'))", "Error"),
    "a list in itself": ("a = []\na.append(a)\ncairn.Array(a)", "Error"),
    "a nest in itself": ("a = {}\na['a'] = a\nstrategy.run(strategy.function(lambda x: x), a)", "Error"),
    "a huge shape": ("cairn.random_normal((1 << 40, 1 << 20)).numpy()", "Error"),
    "a huge pad": ("cairn.pad([1.0], [(0, 1 << 60)]).numpy()", "Error"),
    "a huge one_hot": ("cairn.one_hot(np.zeros(1 << 16, 'int64'), 1 << 50).numpy()", "Error"),
    "a huge layer": ("cairn.nn.Dense(1 << 60)(np.ones((1, 2), 'float32'))", "Error"),
    "a huge table": ("cairn.nn.Embedding(rows=1 << 62, dim=1 << 40)([1])", "Error"),
    "an end in a function": ("strategy.run(strategy.function(lambda: sys.exit(1)))", ""),
    "a closed strategy in its function": ("strategy.run(strategy.function(lambda: strategy.close()))", "Error"),
}


@pytest.mark.parametrize("act, word", [pytest.param(*each, id=name) for name, each in ENDLESS.items()])
def test_what_might_crash_or_hang_is_an_error(act, word):
    run = subprocess.run([sys.executable, "-X", "faulthandler", "-c", CHILD + act], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1, (run.returncode, run.stderr[-2000:])
    last = run.stderr.strip().splitlines()[-1] if run.stderr.strip() else ""
    assert word in last and "std::" not in last, run.stderr[-2000:]
