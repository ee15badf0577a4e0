"""Parameter servers and workers on this machine, for a script or a notebook."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from types import TracebackType

from cairn import _cairn


def _programs() -> str:
    """The folder of cairn-ps and cairn-worker: the package's own, else that of the build."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")
    if os.path.exists(os.path.join(own, "cairn-ps")):
        return own
    named = os.environ.get("CAIRN_PROGRAMS")
    if named:
        return named
    found = shutil.which("cairn-ps")
    return os.path.dirname(found) if found else own


class _Run:
    """The processes of a cluster and its folder: there for as long as it or one of its strategies is."""

    cluster: _cairn._LocalCluster | None = None
    _temporary = ""
    _closed = False

    def __init__(self, ps: int, workers: int, folder: str | None) -> None:
        self._process = os.getpid()
        self._temporary = "" if folder else tempfile.mkdtemp(prefix="cairn-")
        self.folder = folder or os.path.join(self._temporary, "run")
        try:
            self.cluster = _cairn._LocalCluster(ps, workers, self.folder, _programs())
            self.cluster.start()
        except BaseException:
            self.close()
            raise
        _running.add(self)

    def close(self) -> None:
        # A child of fork() has a copy of this object, and no business with what its parent runs.
        if self._closed or os.getpid() != self._process:
            return
        _running.discard(self)
        if self.cluster is not None:
            self.cluster.stop()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
        self._closed = True

    def __del__(self) -> None:
        self.close()


# Those that run: they end with Python at the latest, also where a daemon thread still holds one.
_running: weakref.WeakSet[_Run] = weakref.WeakSet()


def _close_all() -> None:
    for run in list(_running):
        run.close()


class LocalCluster:
    """``ps`` parameter servers and ``workers`` workers, as processes of this machine.

    They end with the ``with`` block, by close(), or when neither the cluster nor a strategy of it
    is in use any more: at the latest with Python. So does the folder, unless you name one.

    >>> with cairn.LocalCluster(ps=1, workers=1) as cluster:
    ...     strategy = cluster.strategy()
    ...     with strategy.scope():
    ...         v = cairn.Variable([1.0, 2.0], name="v")
    ...     print(v.numpy())
    [1. 2.]
    """

    def __init__(self, ps: int = 2, workers: int = 2, *, folder: str | None = None) -> None:
        self._strategies: list[_cairn.Strategy] = []
        self._run = _Run(ps, workers, folder)
        self.folder = self._run.folder

    def strategy(self, *, seed: int = 0, timeout: float = 60.0) -> _cairn.ParameterServerStrategy:
        """Connects to the cluster as its coordinator, within `timeout` seconds; `seed` is that of initial values."""
        cluster = self._run.cluster
        assert cluster is not None
        made = _cairn.ParameterServerStrategy(
            cluster.tf_config,
            cluster.cluster_id,
            cluster.token,
            seed,
            timeout,
            os.path.join(self.folder, "tables"),
            self._run,
        )
        self._strategies.append(made)
        return made

    @property
    def pids(self) -> dict[str, int]:
        """The processes, by role and number: ``{"ps:0": 4711}``."""
        return dict(self._run.cluster.pids) if self._run.cluster is not None else {}

    def close(self) -> None:
        """Ends strategies that were made of it, then the processes."""
        for strategy in self._strategies:
            strategy.close()
        self._strategies.clear()
        self._run.close()

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cairn.LocalCluster in {self.folder}: {', '.join(self.pids)}>"
