"""Parameter servers and workers on this machine, for a script or a notebook."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
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


# Those that run: they end with Python at the latest, also where a daemon thread still holds one.
_running: weakref.WeakSet[LocalCluster] = weakref.WeakSet()


def _close_all() -> None:
    for cluster in list(_running):
        cluster.close()


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
        self._temporary = None if folder else tempfile.TemporaryDirectory(prefix="cairn-")
        self.folder = folder or os.path.join(self._temporary.name, "run")  # type: ignore[union-attr]
        self._cluster = _cairn._LocalCluster(ps, workers, self.folder, _programs())
        self._strategies: list[_cairn.Strategy] = []
        self._cluster.start()
        _running.add(self)

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
    ) -> _cairn.ParameterServerStrategy:
        """Connects to the cluster as its coordinator, within `timeout` seconds.

        `seed` is that of initial values; `hybrid` makes a HybridStrategy, which has neither
        `consistency` nor `devices`.
        """
        cluster = self._cluster
        where = (cluster.tf_config, cluster.cluster_id, cluster.token, seed, timeout, cluster)
        made: _cairn.ParameterServerStrategy
        if hybrid:
            if consistency is not None or devices:
                raise TypeError("strategy(hybrid=True) takes neither consistency nor devices")
            made = _cairn.HybridStrategy(*where, partitioner=partitioner, engine=engine)
        else:
            made = _cairn.ParameterServerStrategy(
                *where, partitioner=partitioner, engine=engine, consistency=consistency, devices=devices
            )
        self._strategies.append(made)
        return made

    @property
    def pids(self) -> dict[str, int]:
        """The processes, by role and number: ``{"ps:0": 4711}``."""
        return dict(self._cluster.pids)

    def close(self) -> None:
        """Ends strategies that were made of it, then the processes."""
        for strategy in self._strategies:
            strategy.close()
        self._strategies.clear()
        self._cluster.stop()
        _running.discard(self)
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cairn.LocalCluster in {self.folder}: {', '.join(self.pids)}>"
