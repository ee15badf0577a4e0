"""The parameters of estimators, as fit() checks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cairn.errors import InvalidArgumentError


def _whole(least: int) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InvalidArgumentError(f"{name} is a whole number of at least {least}, not {value!r}")
        return int(value)

    return check


def _maybe(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else check(name, value)


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 <= value < 1:
        raise InvalidArgumentError(f"{name} is a number of at least 0 and below 1, not {value!r}")
    return float(value)


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
        raise InvalidArgumentError(f"{name} is a number above 0, not {value!r}")
    return float(value)


def _widths(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, (str, Mapping)) or not isinstance(value, (Sequence, np.ndarray)):
        raise InvalidArgumentError(f"{name} is a list of widths, such as (64, 32), not {value!r}")
    return tuple(_whole(1)(name, each) for each in value)


def _activation(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} is the name of one, not {value!r}")
    return value


CHECKED: dict[str, Callable[[str, Any], Any]] = {
    "layers": _widths,
    "activation": _activation,
    "dropout": _share,
    "embedding_dim": _whole(1),
    "bins": _whole(0),
    "learning_rate": _positive,
    "epochs": _maybe(_whole(1)),
    "batch_size": _maybe(_whole(1)),
    "early_stopping": lambda name, value: bool(value),
    "validation_fraction": _share,
    "patience": _whole(0),
    "ps": _maybe(_whole(1)),
    "workers": _maybe(_whole(1)),
    "verbose": lambda name, value: int(value),
}
