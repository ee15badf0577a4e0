"""Recorded functions: arguments, results, lines in errors."""

import collections
import gc
import inspect
import weakref

import numpy as np
import pytest

import cairn

Pair = collections.namedtuple("Pair", ["first", "second"])


@pytest.fixture
def strategy():
    made = cairn.OneDeviceStrategy()
    yield made
    made.close()


def test_nests_go_in_and_come_out_as_they_are(strategy):
    @strategy.function
    def step(x, pair, *, named):
        return {"sum": x + pair[0], "list": [named["a"], (pair[1],)], "none": None, "two": Pair(x, x)}

    made = strategy.run(step, 1.0, (2.0, 3.0), named={"a": 4.0})
    assert made["sum"].item() == 3
    assert made["list"][0].item() == 4
    assert made["list"][1][0].item() == 3
    assert made["none"] is None
    assert isinstance(made["two"], Pair) and made["two"].second.item() == 1


def test_a_function_is_recorded_once_for_each_kind_of_arguments(strategy):
    calls = []

    @strategy.function
    def step(x, mode="a"):
        calls.append(mode)
        return x * (2.0 if mode == "a" else 3.0)

    for size in (2, 3, 4):
        assert strategy.run(step, np.ones(size, "float32")).numpy().sum() == 2 * size
    assert calls == ["a"]
    assert strategy.run(step, np.ones(2, "float32"), mode="b").numpy().sum() == 6
    assert calls == ["a", "b"]


def test_what_it_returns_must_be_arrays(strategy):
    def generator():
        yield 1.0

    for value, word in [("text", "text|str"), (generator(), "generator"), ({1: 2.0}, "keyed"), ({1.0}, "set"), (object(), "object")]:
        @strategy.function
        def step():
            return value

        with pytest.raises(TypeError, match=word):
            strategy.run(step)


def test_generators_and_coroutines_are_no_functions(strategy):
    async def later():
        return 1.0

    def each():
        yield 1.0

    for wrong in (later, each):
        with pytest.raises(TypeError, match="coroutine or a generator"):
            strategy.function(wrong)
    with pytest.raises(TypeError):
        strategy.function(3)


def test_wrong_arity_is_python_s_own_error(strategy):
    @strategy.function
    def step(x, y):
        return x + y

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        strategy.run(step, 1.0)


def test_an_array_of_another_function_is_refused(strategy):
    kept = []

    @strategy.function
    def one(x):
        kept.append(x)
        return x

    @strategy.function
    def two():
        return kept[0] + 1.0

    strategy.run(one, 1.0)
    with pytest.raises(cairn.FailedPreconditionError, match="another function"):
        strategy.run(two)


def line_of(text):
    lines, first = inspect.getsourcelines(inspect.getmodule(line_of))
    return next(number for number, line in enumerate(lines, 1) if text in line and "line_of" not in line)


def test_an_error_found_when_it_runs_names_the_line(strategy):
    @strategy.function
    def step(x, y):
        a = x * 2.0
        b = a @ y  # the wrong line
        return b

    with pytest.raises(cairn.InvalidArgumentError) as caught:
        strategy.run(step, np.ones((2, 3), "float32"), np.ones((2, 3), "float32"))
    assert "matmul(float32[2, 3], float32[2, 3])" in str(caught.value)
    line = line_of("# the wrong line")
    assert f"test_functions.py:{line}, in step: " in str(caught.value)
    assert caught.value.origin.endswith(f"test_functions.py:{line}")


def test_a_row_that_is_not_there_names_the_line(strategy):
    with strategy.scope():
        table = cairn.Variable(np.zeros((4, 2), "float32"), name="table")

    @strategy.function
    def look(ids):
        return table.gather(ids)  # the wrong row

    with pytest.raises(cairn.InvalidArgumentError, match="id 9 at position 1") as caught:
        strategy.run(look, np.array([1, 9]))
    assert f"test_functions.py:{line_of('# the wrong row')}, in look: gather_variable" in str(caught.value)


def test_a_function_in_a_cycle_is_collected(strategy):
    class Trainer:
        pass

    trainer = Trainer()

    @strategy.function
    def step(x):
        return x + trainer.one

    trainer.one = 1.0
    trainer.step = step
    assert strategy.run(step, 1.0).item() == 2
    gone = weakref.ref(trainer)
    del trainer, step
    gc.collect()
    gc.collect()
    assert gone() is None


def test_what_a_closed_strategy_made_can_be_used_no_more():
    strategy = cairn.OneDeviceStrategy()
    with strategy.scope():
        v = cairn.Variable(1.0, name="v")
    strategy.close()
    strategy.close()
    with pytest.raises(cairn.FailedPreconditionError, match="closed"):
        v.read()
    with pytest.raises(cairn.FailedPreconditionError, match="closed"):
        strategy.scope().__enter__()
    with pytest.raises(TypeError, match="pickled"):
        import pickle

        pickle.dumps(strategy)


def test_a_scope_of_another_thread_is_refused(strategy):
    import threading

    scope = strategy.scope()
    scope.__enter__()
    errors = []

    def leave():
        try:
            scope.__exit__(None, None, None)
        except cairn.Error as error:
            errors.append(error)

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    scope.__exit__(None, None, None)
    assert "thread" in str(errors[0])


def test_a_step_learns(strategy):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 4)).astype("float32")
    y = x @ np.array([1.0, -2.0, 3.0, 0.5], "float32")
    with strategy.scope():
        layer = cairn.nn.Dense(1)
        optimizer = cairn.optimizers.Adam(0.05)

    @strategy.function
    def step(batches):
        features, label = batches.get_next()
        loss = cairn.mean(cairn.square(layer(features["x"])[:, 0] - label))
        optimizer.minimize(loss)
        return loss

    data = cairn.Dataset.from_tensor_slices({"x": x, "y": y}, label="y").repeat().batch(32)
    batches = strategy.iterate(data)
    losses = [strategy.run(step, batches).item() for _ in range(300)]
    assert losses[-1] < 0.05 < losses[0]


def test_several_replicas_give_a_value_each():
    with_two = cairn.MirroredStrategy(["cpu:0", "cpu:1"])
    with with_two.scope():
        v = cairn.Variable(2.0, name="v", aggregation="sum")

    @with_two.function
    def step():
        v.assign_add(1.0)
        return v.read()

    values = with_two.run(step)
    assert isinstance(values, cairn.PerReplica) and len(values.values) == 2
    assert with_two.reduce("mean", values).item() == 4
    assert with_two.experimental_local_results(values)[1].item() == 4
    with pytest.raises(TypeError, match="reduce it first"):
        cairn.exp(values)
    with_two.close()
