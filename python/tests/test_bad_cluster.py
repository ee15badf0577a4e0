"""Coordinators, closures and shared datasets that are used wrongly, also after their cluster has ended."""

import numpy as np
import pytest

import cairn
from bad import Case, parametrized

INVALID, STATE = cairn.InvalidArgumentError, cairn.FailedPreconditionError


class Here:
    """A cluster, and what is made of it."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.strategy = cluster.strategy()
        self.coordinator = cairn.ClusterCoordinator(self.strategy)
        self.step = self.strategy.function(lambda x: x + 1.0, name="step")
        self.next = self.strategy.function(lambda batches: batches.get_next()["value"], name="next")

    def schedule(self, *args):
        return self.coordinator.schedule(self.step, args)


@pytest.fixture(scope="module")
def here():
    with cairn.LocalCluster(ps=1, workers=1) as cluster:
        yield Here(cluster)


def generated():
    return cairn.Dataset.from_generator(lambda: iter([1.0]), {"x": "float32"})


def ragged():
    return cairn.Dataset.from_tensor_slices({"x": cairn.Ragged(np.arange(3), np.array([0, 1, 3]))})


CASES = [
    Case("a plain function", lambda h: h.coordinator.schedule(lambda: 1), TypeError, "@strategy.function", "not a function"),
    Case("nothing", lambda h: h.coordinator.schedule(), TypeError, "ClusterCoordinator.schedule()", '"fn" is missing'),
    Case("arguments that are a number", lambda h: h.coordinator.schedule(h.step, 1.0), TypeError, "args", "a tuple", "1.0"),
    Case("arguments that are an array", lambda h: h.coordinator.schedule(h.step, np.ones(3, "float32")), TypeError, "args", "(x,)", "NumPy array"),
    Case("arguments that are a text", lambda h: h.coordinator.schedule(h.step, "x"), TypeError, "args", "a tuple", "'x'"),
    Case("keywords that are a list", lambda h: h.coordinator.schedule(h.step, (1.0,), [1]), TypeError, "kwargs", "a dict", "list"),
    Case("keywords by ints", lambda h: h.coordinator.schedule(h.step, (), {1: 1.0}), TypeError, "kwargs", "1"),
    Case("a RemoteValue", lambda h: h.schedule(h.schedule(1.0)), TypeError, "RemoteValue", "value.get()"),
    Case("a Dataset", lambda h: h.schedule(cairn.Dataset.range(3)), TypeError, '"step", argument "x"', "a dataset is read by workers", "create_per_worker_dataset"),
    Case("an object", lambda h: h.schedule(object()), TypeError, '"step"', "object"),
    Case("an argument too many", lambda h: h.schedule(1.0, 2.0), TypeError, "takes 1 positional argument"),
    Case("a text that is returned", lambda h: h.coordinator.schedule(h.strategy.function(lambda: "a", name="texts")), TypeError, '"texts"', "str"),
    Case("a timeout that is a text", lambda h: h.schedule(1.0).get(timeout="1"), TypeError, "RemoteValue.get()", "\"timeout\" is '1'", "a number or None"),
    Case("join of a text", lambda h: h.coordinator.join("1"), TypeError, "ClusterCoordinator.join()", "\"timeout\" is '1'", "a number or None"),
    Case("a shared generator", lambda h: h.coordinator.create_shared_dataset(generated()), STATE, "from_generator()", "files"),
    Case("a shared array", lambda h: h.coordinator.create_shared_dataset(np.ones(3)), TypeError, "create_shared_dataset()", '"dataset"', "a Dataset"),
    Case("a function of a shared one", lambda h: h.coordinator.create_shared_dataset(lambda context: None), TypeError, "create_shared_dataset()", "a Dataset"),
    Case("a function that makes none", lambda h: h.coordinator.create_per_worker_dataset(lambda context: None), TypeError, "create_per_worker_dataset()", "returned None", "Dataset"),
    Case("a function that raises", lambda h: h.coordinator.create_per_worker_dataset(lambda context: 1 / 0), ZeroDivisionError, "division"),
    Case("a function of nothing", lambda h: h.coordinator.create_per_worker_dataset(lambda: cairn.Dataset.range(3)), TypeError, "takes 0 positional arguments"),
    Case("a number as dataset", lambda h: h.coordinator.create_per_worker_dataset(3), TypeError, "create_per_worker_dataset()", "3"),
    Case("the end of the data", lambda h: [h.coordinator.schedule(h.next, (data,)) for data in [h.coordinator.create_shared_dataset(cairn.Dataset.range(1))] for _ in range(2)][1].get(), cairn.OutOfRangeError, "end"),
    Case("a file that no worker sees", lambda h: h.coordinator.schedule(h.next, (h.coordinator.create_shared_dataset(cairn.Dataset.csv("/none.csv", {"value": "float32"})),)).get(), cairn.ClosureInputError, "/none.csv"),
    Case("a checkpoint that is none", lambda h: h.coordinator.restore("/none"), cairn.NotFoundError, "/none"),
    Case("a folder that cannot be made", lambda h: h.coordinator.save("/proc/none"), cairn.Error, "/proc/none"),
    Case("more replicas than ps", lambda h: h.cluster.strategy(replicas=2), INVALID, "replicas is 2", "1 ps"),
    Case("more replicas than ps, of tables", lambda h: h.cluster.strategy(hybrid=True, replicas=2), INVALID, "replicas is 2", "1 ps"),
    Case("no replica", lambda h: h.cluster.strategy(replicas=0), INVALID, "replicas is 0", "from 1 to 8"),
    Case("replicas without ps", lambda h: cairn.make_strategy("mirrored", replicas=2), INVALID, "mirrored", "no ps", "2 replicas"),
    Case("a wait for nothing", lambda h: h.coordinator.fetch(1, timeout="x"), TypeError, "ClusterCoordinator.fetch()", "\"timeout\" is 'x'"),
]


@parametrized(CASES)
def test_a_coordinator_says_what_it_takes(here, case):
    case.check(here)
    try:
        here.coordinator.join()
    except cairn.Error:
        here.coordinator.join()  # raised once
    assert here.schedule(1.0).get() == 2


def test_what_was_made_of_a_closed_cluster_is_refused():
    with cairn.LocalCluster(ps=1, workers=1) as cluster:
        here = Here(cluster)
        with here.strategy.scope():
            v = cairn.Variable(1.0, name="v")
        shared = here.coordinator.create_shared_dataset(cairn.Dataset.range(3))
        value = here.schedule(1.0)
        assert value.get() == 2
    uses = [
        lambda: here.schedule(1.0), here.coordinator.join, here.coordinator.done, here.coordinator.cancel, v.numpy, lambda: v.assign(2.0),
        lambda: here.coordinator.schedule(here.next, (shared,)), lambda: here.coordinator.create_shared_dataset(cairn.Dataset.range(3)),
        lambda: here.coordinator.save("/tmp/none"), lambda: here.coordinator.status, lambda: cairn.ClusterCoordinator(here.strategy), cluster.strategy,
    ]
    for number, use in enumerate(uses):
        Case(str(number), use, STATE, "closed").check()
    assert value.get() == 2 and repr(here.coordinator) and repr(cluster)
    cluster.close()
