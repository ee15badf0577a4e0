"""Cairn: training on parameter servers, from Python.

    import cairn

    with cairn.LocalCluster(ps=2, workers=2) as cluster:
        strategy = cluster.strategy()
        coordinator = cairn.ClusterCoordinator(strategy)
        ...

The names are those of ``tf.distribute`` where it has them. Python runs here, in the coordinator;
ps and workers are programs that come with the package and need none.
"""

from __future__ import annotations

import atexit as _atexit
import os as _os
import signal as _signal
import threading as _threading

from cairn import _cairn
from cairn import errors as errors
from cairn._cairn import *  # noqa: F403
from cairn._cairn import nn as nn
from cairn.data import Ragged as Ragged
from cairn.errors import *  # noqa: F403
from cairn.local_cluster import LocalCluster as LocalCluster
from cairn.local_cluster import _close_all as _close_clusters
from cairn import callbacks as callbacks
from cairn import losses as losses
from cairn import metrics as metrics
from cairn import optimizers as optimizers
from cairn.jobs import Run as Run
from cairn.jobs import train as train
from cairn.layers import Layer as Layer
from cairn.estimators import Classifier as Classifier
from cairn.estimators import Regressor as Regressor

_cairn._take_origins(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)
__version__: str = _cairn._version
_process = _os.getpid()


# Strategies and coordinators end before the interpreter does: their threads call into it.
def _end() -> None:
    if _os.getpid() != _process:
        _cairn._leave_to_parent()
        return
    _cairn._close_iterators()
    _cairn._close_all(_threading.active_count() > 1)
    _close_clusters()


def _kill_at_the_next(number: int, frame: object) -> None:
    _signal.signal(number, _signal.SIG_DFL)


# The program ends anyway, so that a Ctrl-C during the end changes nothing; a second one kills it.
def _end_in_any_case() -> None:
    try:
        _signal.signal(_signal.SIGINT, _kill_at_the_next)
    except (KeyboardInterrupt, ValueError):
        pass  # it was pressed right now; or this is not the main thread
    _end()


_atexit.register(_end_in_any_case)
