"""Parameter servers and workers on this machine, for a script or a notebook."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from types import TracebackType

from cairn import _cairn
from cairn.errors import FailedPreconditionError


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


# Those that run: they end with Python at the latest, also where a daemon thread still holds one.
_running: weakref.WeakSet[LocalCluster] = weakref.WeakSet()


def _close_all() -> None:
    for cluster in list(_running):
        cluster.close()


def _remove(folder: str, process: int) -> None:
    if folder and os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


class LocalCluster:
    """``ps`` parameter servers and ``workers`` workers, as processes of this machine.

    They end with the ``with`` block, or at the latest with Python.

    >>> with cairn.LocalCluster(ps=1, workers=1) as cluster:
    ...     strategy = cluster.strategy()
    ...     with strategy.scope():
    ...         v = cairn.Variable([1.0, 2.0], name="v")
    ...     print(v.numpy())
    [1. 2.]
    """

    def __init__(self, ps: int = 2, workers: int = 2, *, folder: str | None = None) -> None:
        self._process = os.getpid()
        temporary = "" if folder else tempfile.mkdtemp(prefix="cairn-")
        self.folder = folder or os.path.join(temporary, "run")
        self._remove = weakref.finalize(self, _remove, temporary, self._process)
        self._remove.atexit = False  # close() comes first, since servers write into the folder
        self._cluster = _cairn._LocalCluster(ps, workers, self.folder, _programs())
        self._strategies: list[_cairn.Strategy] = []
        self._closed = False
        self._cluster.start()
        _running.add(self)

    def strategy(self, *, seed: int = 0, timeout: float = 60.0) -> _cairn.ParameterServerStrategy:
        """Connects to the cluster as its coordinator, within `timeout` seconds; `seed` is that of initial values."""
        if self._closed:
            raise FailedPreconditionError("the cluster has been closed: its servers run no more")
        made = _cairn.ParameterServerStrategy(
            self._cluster.tf_config, self._cluster.cluster_id, self._cluster.token, seed, timeout, self._cluster
        )
        self._strategies.append(made)
        return made

    @property
    def pids(self) -> dict[str, int]:
        """The processes, by role and number: ``{"ps:0": 4711}``."""
        return dict(self._cluster.pids)

    def close(self) -> None:
        """Ends strategies that were made of it, then the processes."""
        if os.getpid() != self._process:
            return  # the servers are the parent's
        self._closed = True
        for strategy in self._strategies:
            strategy.close()
        self._strategies.clear()
        self._cluster.stop()
        _running.discard(self)
        self._remove()

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cairn.LocalCluster in {self.folder}: {', '.join(self.pids)}>"
