"""Strategies by name, with the servers that one of them needs."""

from __future__ import annotations

import json
import os

from cairn import _cairn
from cairn.errors import InvalidArgumentError
from cairn.local_cluster import LocalCluster
from cairn.typing import StrategyLike

NAMES = ("one_device", "mirrored", "central_storage", "parameter_server")


def chosen(strategy: StrategyLike, ps: int | None, workers: int | None, seed: int = 0) -> _cairn.Strategy | None:
    """The strategy of this name, a new one; a Strategy, and None, as they are."""
    if strategy != "parameter_server" and (ps is not None or workers is not None):
        raise InvalidArgumentError('ps and workers go with strategy="parameter_server", which starts them')
    if strategy is None or isinstance(strategy, _cairn.Strategy):
        return strategy
    if not isinstance(strategy, str):
        raise TypeError(f"a strategy is a cairn.Strategy or the name of one, not a {type(strategy).__name__}")
    if strategy == "one_device":
        return _cairn.OneDeviceStrategy(seed=seed)
    if strategy == "mirrored":
        return _cairn.MirroredStrategy(seed=seed)
    if strategy == "central_storage":
        return _cairn.CentralStorageStrategy(seed=seed)
    if strategy == "parameter_server":
        if ps is None and workers is None and _servers_are_given():
            return _cairn.ParameterServerStrategy(seed=seed)
        # The strategy holds the cluster.
        return LocalCluster(2 if ps is None else ps, 2 if workers is None else workers).strategy(seed=seed)
    names = ", ".join(f'"{name}"' for name in NAMES)
    raise InvalidArgumentError(f'a strategy is one of {names}, not "{strategy}"')


def _servers_are_given() -> bool:
    try:
        return bool(json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {}).get("ps"))
    except (ValueError, AttributeError):
        return True  # what is wrong with it is told by who uses it
