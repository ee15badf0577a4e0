"""Parameter servers and workers on this machine, for a script or a notebook."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
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


class _Run:
    """The processes of a cluster and its folder: there for as long as it or one of its strategies is."""

    cluster: _cairn._LocalCluster | None = None
    _temporary = ""
    closed = False

    def __init__(self, ps: int, workers: int, folder: str | None) -> None:
        self._process = os.getpid()
        # Not a TemporaryDirectory, which would go before the processes do where a program does not close the cluster.
        self._temporary = "" if folder else tempfile.mkdtemp(prefix="cairn-")
        self.folder = folder or os.path.join(self._temporary, "run")
        try:
            self.cluster = _cairn._LocalCluster(ps, workers, self.folder, _programs(), self._temporary)
            self.cluster.start()
        except BaseException:
            self.close()
            raise
        _running.add(self)

    @property
    def of_parent(self) -> bool:
        """Whether this process is a child of fork(): it has a copy of this object, but the servers are its parent's."""
        return os.getpid() != self._process

    def close(self) -> None:
        if self.closed or self.of_parent:
            return
        _running.discard(self)
        if self.cluster is not None:
            self.cluster.stop()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
        self.closed = True

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

    def strategy(
        self,
        *,
        seed: int = 0,
        timeout: float = 60.0,
        hybrid: bool = False,
        consistency: _cairn.Consistency | str | None = None,
        partitioner: _cairn.Partitioner | None = None,
        devices: Sequence[str] = (),
        engine: _cairn.EngineOptions | None = None,
        replicas: int = 1,
    ) -> _cairn.ParameterServerStrategy:
        """Connects to the cluster as its coordinator, within `timeout` seconds.

        `seed` is that of initial values; `hybrid` makes a HybridStrategy, which has neither
        `consistency` nor `devices`; each row lies on `replicas` of the ps, so that the loss of one
        loses no update.
        """
        cluster = self._run.cluster
        if cluster is None or self._run.closed:
            raise FailedPreconditionError("the cluster has been closed: its servers run no more")
        where = (cluster.tf_config, cluster.cluster_id, cluster.token, seed, timeout, self._run)
        tables = os.path.join(self.folder, "tables")
        made: _cairn.ParameterServerStrategy
        if hybrid:
            if consistency is not None or devices:
                raise TypeError("strategy(hybrid=True) takes neither consistency nor devices")
            made = _cairn.HybridStrategy(
                *where, tables_folder=tables, partitioner=partitioner, engine=engine, replicas=replicas
            )
        else:
            made = _cairn.ParameterServerStrategy(
                *where,
                tables_folder=tables,
                partitioner=partitioner,
                engine=engine,
                replicas=replicas,
                consistency=consistency,
                devices=devices,
            )
        self._strategies.append(made)
        return made

    @property
    def pids(self) -> dict[str, int]:
        """The processes, by role and number: ``{"ps:0": 4711}``."""
        return dict(self._run.cluster.pids) if self._run.cluster is not None else {}

    def close(self) -> None:
        """Ends strategies that were made of it, then the processes."""
        if self._run.of_parent:
            return
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
