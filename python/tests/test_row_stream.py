"""A program follows the rows that another one trains."""

import json
import pathlib
import time

import numpy as np
import pytest

import cairn


@pytest.fixture
def run(tmp_path):
    with cairn.LocalCluster(ps=2, workers=1, folder=str(tmp_path / "run")) as cluster:
        yield cluster, tmp_path / "run"


def stream_of(folder: pathlib.Path, **options):
    about = json.loads((folder / "cluster.json").read_text(encoding="utf-8"))
    ps = [task["address"] for task in about["tasks"] if task["role"] == "ps"]
    return cairn.RowStream(ps, about["cluster_id"], (folder / "token").read_text(encoding="utf-8").strip(), **options)


def follow(stream, copy, done, patience_s=60):
    """Applies what comes to `copy`, rows by variable, until it is as wanted."""
    ends = time.monotonic() + patience_s
    while not done():
        assert time.monotonic() < ends, copy
        if (changes := stream.next(0.1)) is None:
            continue
        rows = copy.setdefault(changes.variable.name, {})
        rows.update(zip(changes.rows.tolist(), changes.values, strict=True))
        for row in changes.gone.tolist():
            rows.pop(row, None)


def test_a_copy_has_the_rows_that_a_program_changes(run):
    cluster, folder = run
    with cluster.strategy().scope():
        policy = cairn.nn.RowPolicy(evictable=True)
        table = cairn.create_variable("table", (1 << 40, 3), hashed=True, policy=policy)
        table.scatter_update([7, 1 << 39], np.full((2, 3), 5.0, "float32"))
    stream, copy = stream_of(folder), {}
    follow(stream, copy, lambda: set(copy.get("table", ())) == {7, 1 << 39})
    assert np.array_equal(copy["table"][1 << 39], [5, 5, 5])
    table.evict([7])
    follow(stream, copy, lambda: set(copy["table"]) == {1 << 39})
    assert stream.state.complete and stream.state.age < 60 and stream.state.away == []


def test_one_variable_of_several_is_followed(run):
    cluster, folder = run
    with cluster.strategy().scope():
        first = cairn.Variable(np.zeros((4, 2), "float32"), name="first")
        second = cairn.Variable(np.zeros((4, 2), "float32"), name="second")
    stream, copy = stream_of(folder, variables=["second"]), {}
    first.assign(np.ones((4, 2), "float32"))
    second.assign(np.full((4, 2), 2.0, "float32"))
    follow(stream, copy, lambda: [row.tolist() for row in copy.get("second", {}).values()] == [[2, 2]] * 4)
    assert set(copy) == {"second"}


def test_nothing_within_patience_is_none_and_a_ps_that_is_away_is_named():
    stream = cairn.RowStream(["127.0.0.1:1"])
    assert stream.next(0.2) is None
    assert "127.0.0.1:1" in stream.state.away[0]
    assert stream.state.age == float("inf")


def test_what_a_ps_refuses_is_an_error(run):
    _, folder = run
    about = json.loads((folder / "cluster.json").read_text(encoding="utf-8"))
    ps = [task["address"] for task in about["tasks"] if task["role"] == "ps"]
    with pytest.raises(cairn.errors.Error, match="cluster|token"):
        stream = cairn.RowStream(ps, "another", "wrong")
        for _ in range(600):
            stream.next(0.1)
    with pytest.raises(cairn.errors.InvalidArgumentError):
        cairn.RowStream([])
