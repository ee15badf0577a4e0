"""Callbacks of ``Model.fit``: Cairn's own, by their names in Keras, and the base of yours."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cairn._cairn._callbacks import BackupAndRestore as BackupAndRestore
from cairn._cairn._callbacks import CSVLogger as CSVLogger
from cairn._cairn._callbacks import EarlyStopping as EarlyStopping
from cairn._cairn._callbacks import LearningRateScheduler as LearningRateScheduler
from cairn._cairn._callbacks import ModelCheckpoint as ModelCheckpoint
from cairn._cairn._callbacks import ProgressBar as ProgressBar
from cairn._cairn._callbacks import ReduceLROnPlateau as ReduceLROnPlateau
from cairn._cairn._callbacks import TensorBoard as TensorBoard
from cairn._cairn._callbacks import TerminateOnNaN as TerminateOnNaN

if TYPE_CHECKING:
    from cairn import Model, TrainingRun


class Callback:
    """Code that ``fit`` and ``evaluate`` call while they run.

    Any object will do that has some of these methods. Within them ``self.run`` steers the fit that
    runs, and ``self.model`` is its model.

    >>> class Stop(cairn.callbacks.Callback):
    ...     def on_epoch_end(self, epoch, logs):
    ...         if logs["loss"] < 0.1:
    ...             self.run.stop_training()
    """

    run: TrainingRun
    model: Model
    #: Whether it sets ``self.model.learning_rate``.
    adjusts_learning_rate: bool = False
    #: Whether it takes care of a step whose loss was not finite: fit then ends without an error.
    takes_bad_loss: bool = False

    def on_train_begin(self) -> None:
        """Training begins."""

    def on_train_end(self, logs: dict[str, float]) -> None:
        """Training is over, also by an error, which fit then raises."""

    def on_epoch_begin(self, epoch: int) -> None:
        """An epoch begins; the first is 0."""

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """An epoch is over. Numbers that are put into the logs become part of the history."""

    def on_train_batch_end(self, step: int, logs: dict[str, float]) -> None:
        """A step is done. The logs are means since the epoch began, and cost a metric's result."""

    def on_test_begin(self) -> None:
        """An evaluation begins."""

    def on_test_end(self, logs: dict[str, float]) -> None:
        """An evaluation is over."""

    def state(self) -> Any:
        """What a backup keeps of it: whatever json writes, and NumPy arrays within; None: nothing."""
        return None

    def restore_state(self, state: Any) -> None:
        """Takes what state() has returned in an earlier process."""


class LambdaCallback(Callback):
    """Functions in the places of a callback's methods.

    >>> seen = []
    >>> callback = cairn.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(logs["loss"]))
    """

    def __init__(
        self,
        on_epoch_begin: Callable[[int], Any] | None = None,
        on_epoch_end: Callable[[int, dict[str, float]], Any] | None = None,
        on_train_begin: Callable[[], Any] | None = None,
        on_train_end: Callable[[dict[str, float]], Any] | None = None,
        on_train_batch_end: Callable[[int, dict[str, float]], Any] | None = None,
        state: Callable[[], Any] | None = None,
        restore_state: Callable[[Any], Any] | None = None,
    ) -> None:
        if (state is None) != (restore_state is None):
            raise TypeError("state and restore_state go together: give both or neither")
        given = {
            "on_epoch_begin": on_epoch_begin,
            "on_epoch_end": on_epoch_end,
            "on_train_begin": on_train_begin,
            "on_train_end": on_train_end,
            "on_train_batch_end": on_train_batch_end,
            "state": state,
            "restore_state": restore_state,
        }
        for name, function in given.items():
            if function is not None:
                setattr(self, name, function)


# ---- states, for the module: a text and arrays ----

def _kind(callback: object) -> str:
    return f"{type(callback).__module__}.{type(callback).__qualname__}"


def _written(callback: object, state: Any) -> tuple[str, list[npt.NDArray[Any]]]:
    arrays: list[npt.NDArray[Any]] = []

    def other(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        arrays.append(np.asarray(value))
        if arrays[-1].dtype == object:
            raise TypeError(f"the state of {_kind(callback)} has a {type(value).__name__}, which json cannot write")
        return {"__array__": len(arrays) - 1}

    return json.dumps({"callback": _kind(callback), "state": state}, default=other), arrays


def _restore(callback: Any, text: str, arrays: list[npt.NDArray[Any]]) -> None:
    def array(value: dict[str, Any]) -> Any:
        return arrays[value["__array__"]] if set(value) == {"__array__"} else value

    saved = json.loads(text, object_hook=array)
    if saved["callback"] != _kind(callback):
        warnings.warn(f"the backup's state is of a {saved['callback']}, not of a {_kind(callback)}, which begins anew", stacklevel=2)
        return
    callback.restore_state(saved["state"])
