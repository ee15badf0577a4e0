"""Jobs: what ``cairn train`` runs, from a program or a notebook."""

from __future__ import annotations

import html
import json
import os
import re
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cairn import _cairn
from cairn.errors import Error, FailedPreconditionError
from cairn.local_cluster import _programs


class Run:
    """A job that was trained: its figures, its model and its checkpoints.

    Attributes:
        folder: the run's folder, which ``cairn plot`` and ``cairn predict`` take too.
        report: the outcome, as ``cairn train --report`` writes it (docs/report.md).
        failure: an error after the last step, such as a full disk; None: there was none.

    >>> import os, tempfile
    >>> os.chdir(tempfile.mkdtemp())
    >>> with open("signs.csv", "w") as file:
    ...     _ = file.write("0,-1\\n1,1\\n" * 32)
    >>> job = {
    ...     "data": {"train": "signs.csv", "batch": 8, "epochs": 2,
    ...              "csv": {"columns": ["label:float32", "x:float32"], "label": {"column": "label"}}},
    ...     "features": {"numeric": ["x"]},
    ...     "model": {"kind": "deep", "hidden": [4]},
    ... }
    >>> run = cairn.train(job, strategy="one_device", verbose=0)
    >>> run.report["steps"], len(run.checkpoints) > 0
    (16, True)
    """

    def __init__(self, folder: str, report: dict[str, Any], *, model: str = "", checkpoints: str = "") -> None:
        self.folder = folder
        self.report = report
        self.failure: str | None = report.get("error")
        self._model_folder = model
        self._checkpoints = checkpoints
        self._model: _cairn.LoadedModel | None = None

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the last evaluation, on the test data if there is some."""
        return dict(self.report.get("metrics") or {})

    @property
    def history(self) -> dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        """Steps and values of each curve: ``plt.plot(*run.history["loss"])``."""
        curves = _cairn._run_history(self.folder)
        return {name: (np.asarray(steps, float), np.asarray(values, float)) for name, (steps, values) in curves.items()}

    @property
    def model(self) -> _cairn.LoadedModel:
        """The trained model, which predicts in this process."""
        if self._model is None:
            if not self._model_folder:
                why = self.failure or "it ended before it could"
                raise FailedPreconditionError(f"the run in {self.folder} saved no model: {why}")
            self._model = _cairn.load_model(self._model_folder)
        return self._model

    @property
    def checkpoints(self) -> list[str]:
        """The folders of the checkpoints that are kept, the newest last."""
        try:
            return _cairn._checkpoints_at(self._checkpoints or self.folder)
        except FileNotFoundError:
            return []

    def __repr__(self) -> str:
        figures = ", ".join(f"{name}={value:.4f}" for name, value in self.metrics.items())
        told = f"{self.report.get('steps')} steps" + (f", {figures}" if figures else "")
        return f"<cairn.Run of {self.report.get('job')}: {told}; {self.folder}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, Any]] = [
            ("steps", self.report.get("steps")),
            ("examples/s", f"{self.report.get('examples_per_s') or 0:,.0f}"),
            *((name, f"{value:.4f}") for name, value in self.metrics.items()),
            ("folder", self.folder),
        ]
        if self.failure:
            rows.append(("failure", self.failure))
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(str(name))}</th><td>{html.escape(str(value))}</td></tr>"
            for name, value in rows
        )
        return f"<table><caption>{html.escape(str(self.report.get('job')))}</caption>{cells}</table>"


def _plain(value: Any, key: str) -> Any:
    """A value of a job as JSON has it."""
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"train: {key} has the key {name!r}: keys of a job are texts")
        return {name: _plain(inner, f"{key}.{name}" if key else name) for name, inner in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return _plain(value.tolist(), key)
    if isinstance(value, (list, tuple)):
        return [_plain(inner, key) for inner in value]
    if value is None:
        raise TypeError(f"train: {key} is None: leave the key out")
    if isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(
        f"train: {key} is a {type(value).__name__}; a job holds texts, numbers, True, False, lists and dicts"
    )


class _Shown:
    """The lines of a run, with the progress in place where the output is a terminal or a notebook."""

    def __init__(self, verbose: int) -> None:
        self._verbose = verbose
        self._in_place = sys.stdout is not None and (sys.stdout.isatty() or "ipykernel" in sys.modules)
        self._live = 0
        self._shown = 0

    def __call__(self, what: str, line: str) -> None:
        if what == "warn":
            self.end()
            print(line, file=sys.stderr)
        elif self._verbose == 0:
            return
        elif what == "say":
            self.end()
            print(line, flush=True)
        elif self._in_place:
            print("\r" + line.ljust(self._live), end="", flush=True)
            self._live = len(line)
        else:
            self._shown += 1
            if self._shown % 20 == 1:  # every five seconds
                print(line, flush=True)

    def end(self) -> None:
        if self._live:
            print(flush=True)
        self._live = 0


def _in_keywords(text: str) -> str:
    """Flags of ``cairn train`` as the keywords that they are here."""
    known = {name for name, _ in _cairn._train_keywords()}

    def said(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        return name if name in known else found[0]

    return re.sub(r"--([a-z][a-z-]*)", said, text)


def train(
    job: str | os.PathLike[str] | Mapping[str, Any],
    *,
    strategy: str | None = None,
    ps: int | None = None,
    workers: int | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    seed: int | None = None,
    model: str | None = None,
    dir: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    checkpoints: str | os.PathLike[str] | None = None,
    checkpoint_every: str | int | None = None,
    local_checkpoints: str | os.PathLike[str] | None = None,
    store_single_writer: bool = False,
    resume: str | os.PathLike[str] | None = None,
    partial: bool = False,
    new_data: bool = False,
    warm_start: str | os.PathLike[str] | None = None,
    evaluate_every: str | int | None = None,
    steps_per_closure: int | None = None,
    pipeline_depth: int | None = None,
    replicas: int | None = None,
    consistency: str | None = None,
    max_staleness: int | None = None,
    transport: str | None = None,
    arithmetic: str | None = None,
    device: str | None = None,
    deterministic: bool = False,
    device_cache: str | None = None,
    wire: str | None = None,
    ps_wait: float | None = None,
    stuck_after: float | None = None,
    no_recovery: bool = False,
    restore_on_demand: bool = False,
    shards: int | str | None = None,
    lanes: int | str | None = None,
    memory_limit: str | None = None,
    row_log: str | os.PathLike[str] | None = None,
    data_workers: int | None = None,
    kill: list[str] | None = None,
    verbose: int = 1,
) -> Run:
    """Trains a job in this process, as ``cairn train`` does: a file, or a dict of its sections.

    The keywords are that command's flags, and override the job; relative paths in a dict are in the
    working folder. Under ``"parameter_server"`` and ``"hybrid"``, ps and workers are processes that
    end with the call. The first Ctrl-C saves, ends the run in order and raises KeyboardInterrupt;
    the second gives it up.

    Args:
        job: a job file (docs/job-file.md), or its sections as a dict.
        verbose: 0: only warnings are printed.

    >>> job = {"data": {"train": "examples/data/adult/adult.data.gz"}}
    >>> cairn.train(job, strategy="one_device", verbose=0)
    Traceback (most recent call last):
        ...
    cairn.errors.InvalidArgumentError: ...
    """
    given = {name: value for name, value in locals().items() if name not in ("job", "verbose")}
    keywords = {
        name: os.fspath(value) if isinstance(value, os.PathLike) else value
        for name, value in given.items()
        if value is not None and value is not False
    }
    if isinstance(job, Mapping):
        job_file, values = "", json.dumps(_plain(job, ""), allow_nan=False)
    elif isinstance(job, (str, os.PathLike)):
        job_file, values = os.fspath(job), ""
    else:
        raise TypeError(f"train: a job is the path of a file or a dict, not a {type(job).__name__}")
    shown = _Shown(verbose)
    try:
        made = _cairn._train_job(job_file, values, keywords, _programs(), shown)
    except Error as error:
        error.args = (_in_keywords(str(error)),)
        raise
    finally:
        shown.end()
    run = Run(
        made["folder"], json.loads(made["report"] or "{}"), model=made["model"], checkpoints=made["checkpoints"]
    )
    if run.failure:
        warnings.warn(f"the run ended with an error after its last step: {run.failure}", RuntimeWarning, stacklevel=2)
    return run
