"""A wrong line is named by the error: by its traceback where it is found in Python, else by its text and origin."""

import traceback

import pytest

import cairn
import programs


@pytest.fixture(scope="module")
def servers():
    with cairn.LocalCluster(ps=1, workers=1) as cluster:
        strategy = cluster.strategy()
        yield {"strategy": strategy, "coordinator": cairn.ClusterCoordinator(strategy)}


def error_of(text, name, file, given):
    """The error of the program, and the number of its wrong line."""
    whole = programs.HEAD + text
    line = next(number for number, each in enumerate(whole.splitlines(), 1) if each.endswith("# wrong"))
    with pytest.raises(Exception) as caught:
        exec(compile(whole, str(file), "exec"), dict(given, __name__=name))
    return caught.value, line


def lines_of(error, file):
    return [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]


def named(error, line, file):
    """Whether the error's text and origin name the line, as an error of an operation that runs does."""
    assert isinstance(error, cairn.Error), repr(error)
    assert f"{file.name}:{line}" in str(error), str(error)
    assert error.origin == f"{file}:{line}", error.origin


@pytest.mark.parametrize("text", programs.RECORDED.values(), ids=programs.RECORDED)
def test_a_line_that_cannot_be_recorded_is_named(text, tmp_path):
    file = tmp_path / "train.py"
    strategy = cairn.OneDeviceStrategy()
    with strategy.scope():
        error, line = error_of(text, "recorded", file, {"strategy": strategy})
    strategy.close()
    assert line in lines_of(error, file) or f"train.py:{line}" in str(error), (error, lines_of(error, file))


@pytest.mark.parametrize("text", programs.HERE.values(), ids=programs.HERE)
def test_a_line_that_fails_when_it_runs_is_named(text, tmp_path):
    file = tmp_path / "train.py"
    strategy = cairn.OneDeviceStrategy()
    with strategy.scope():
        error, line = error_of(text, "here", file, {"strategy": strategy})
    strategy.close()
    named(error, line, file)


@pytest.mark.parametrize("text", programs.WORKER.values(), ids=programs.WORKER)
def test_a_line_that_fails_on_a_worker_is_named(text, tmp_path, servers):
    file = tmp_path / "train.py"
    with servers["strategy"].scope():
        error, line = error_of(text, "worker", file, servers)
        for _ in range(2):  # what closures of the same program have met after the first
            try:
                servers["coordinator"].join()
            except cairn.Error:
                pass
    named(error, line, file)
