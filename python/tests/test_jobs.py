"""cairn.train: a job in this process, and what it leaves."""

import gc
import inspect
import os
import signal
import threading

import numpy as np
import pytest

import cairn


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job whose label is the sign of its feature; its paths are in the working folder."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 2},{1 if i % 2 else -1}\n" for i in range(64))
    (tmp_path / "a.csv").write_text(rows)
    return {
        "name": "signs",
        "data": {
            "train": "a.csv",
            "test": tmp_path / "a.csv",
            "batch": np.int64(8),
            "epochs": 4,
            "csv": {"columns": ["label:float32", "x:float32"], "label": {"column": "label"}},
        },
        "features": {"numeric": ("x",)},
        "model": {"kind": "deep", "hidden": [4]},
        "strategy": {"kind": "one_device"},
    }


def test_a_dict_is_trained_as_a_file_is(job, tmp_path):
    run = cairn.train(job, verbose=0, report="report.json")
    assert run.report["steps"] == 32 and run.report["job"] == "signs"
    assert run.metrics["auc"] > 0.99
    assert run.failure is None
    assert (tmp_path / "report.json").exists()
    steps, losses = run.history["loss"]
    assert steps[-1] == 32 and losses[-1] < losses[0] + 1
    assert run.checkpoints and os.path.isdir(run.checkpoints[-1])
    raw = run.model.prepare({"x": np.array([-1, 1], "float32")})
    low, high = np.ravel(run.model.predict(raw)["probability"])
    assert low < 0.5 < high
    assert "signs" in repr(run) and "<table>" in run._repr_html_()


def test_a_file_and_keywords(job, tmp_path):
    (tmp_path / "job.toml").write_text(
        "[data]\ntrain = 'a.csv'\nbatch = 8\n[data.csv]\ncolumns = ['label:float32', 'x:float32']\n"
        "label = {column = 'label'}\n[features]\nnumeric = ['x']\n[model]\nkind = 'deep'\n"
    )
    run = cairn.train(tmp_path / "job.toml", strategy="mirrored", replicas=2, steps=3, dir=tmp_path / "run", verbose=0)
    assert run.folder == str(tmp_path / "run")
    assert run.report["strategy"]["replicas"] == 2 and run.report["steps"] == 3


def test_servers_end_with_the_call(job, capfd):
    run = cairn.train(job, strategy="parameter_server", ps=1, workers=1)
    assert run.report["cluster"]["workers"] == 1 and run.report["steps"] == 32
    said = capfd.readouterr().out
    assert "cluster: 1 ps and 1 workers" in said and "done after 32 steps" in said


def test_a_run_goes_on(job):
    first = cairn.train(job, verbose=0)
    on = cairn.train(job, resume=first.checkpoints[-1], epochs=8, verbose=0)
    assert on.report["steps"] == 64


@pytest.mark.parametrize(
    "change, error, text",
    [
        ({"data": {"bath": 3}}, ValueError, 'job: unknown key "data.bath"; did you mean "batch"?'),
        ({"data": {"batch": None}}, TypeError, "data.batch is None: leave the key out"),
        ({"data": {"batch": object()}}, TypeError, "data.batch is a object"),
        ({"data": {1: 2}}, TypeError, "data has the key 1"),
        ({"data": {"train": "none.csv"}}, FileNotFoundError, "none.csv"),
    ],
)
def test_a_wrong_job_is_named(job, change, error, text):
    for section, values in change.items():
        job[section] = {**job[section], **values}
    with pytest.raises(error) as raised:
        cairn.train(job, verbose=0)
    assert text in str(raised.value)


def test_wrong_keywords_are_named_as_such(job):
    with pytest.raises(TypeError, match=r"ps must be an int, got 'two'"):
        cairn.train(job, strategy="parameter_server", ps="two")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="^steps and epochs both say"):
        cairn.train(job, steps=3, epochs=2)
    with pytest.raises(TypeError, match="the path of a file or a dict, not a list"):
        cairn.train([])  # type: ignore[arg-type]
    first = cairn.train(job, dir="run", verbose=0)
    with pytest.raises(cairn.AlreadyExistsError) as raised:
        cairn.train(job, dir="run", verbose=0)
    assert first.checkpoints and "--" not in str(raised.value)


def test_the_keywords_are_the_flags():
    keywords = set(inspect.signature(cairn.train).parameters) - {"job", "verbose"}
    assert keywords == {name for name, _ in cairn._cairn._train_keywords()}


class Interrupts:
    """A standard output that sends SIGINT to this process when progress is printed."""

    def __init__(self, times):
        self.times = times

    def isatty(self):
        return True

    def write(self, text):
        if "step " in text and not text.startswith("\rstep 0/") and self.times:
            self.times -= 1
            os.kill(os.getpid(), signal.SIGINT)
        return len(text)

    def flush(self):
        pass


def test_ctrl_c_saves_and_ends(job, monkeypatch):
    monkeypatch.setattr("sys.stdout", Interrupts(1))
    with pytest.raises(KeyboardInterrupt):
        cairn.train(job, steps=100_000_000, dir="run")
    assert cairn._cairn._checkpoints_at("run")


def test_it_runs_on_a_thread_beside_others(job):
    runs = []
    threads = [
        threading.Thread(target=lambda i=i: runs.append(cairn.train(job, dir=f"run-{i}", verbose=0))) for i in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [run.report["steps"] for run in runs] == [32, 32]
    gc.collect()
