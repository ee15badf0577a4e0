"""scikit-learn's conventions of estimators, without scikit-learn: parameters, tags, what is checked of y."""

from __future__ import annotations

import html
import importlib
import inspect
import sys
from typing import Any, TypeVar

import numpy as np

from cairn._rows import conversion_warning
from cairn.errors import FailedPreconditionError, InvalidArgumentError
from cairn.typing import NDArray
E = TypeVar("E", bound="Estimator")


class Estimator:
    """The parameters of an estimator are those of its ``__init__``, which keeps them as they are."""

    _kind = ""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls).parameters]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self: E, **params: Any) -> E:
        """Changes parameters; the next fit() uses them."""
        names = self._get_param_names()
        for name in params:
            if name not in names:
                raise InvalidArgumentError(f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {names!r}.")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def _changed_params(self) -> dict[str, Any]:
        """Those that are not as they are by default."""
        defaults = {name: each.default for name, each in inspect.signature(type(self)).parameters.items()}
        return {name: value for name, value in self.get_params().items() if repr(value) != repr(defaults[name])}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._changed_params().items())})"

    def _repr_html_(self) -> str:
        changed = self._changed_params()
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{'<b>' if name in changed else ''}{html.escape(repr(value))}"
            f"{'</b>' if name in changed else ''}</td></tr>"
            for name, value in self.get_params().items()
        )
        state = f"fitted on {vars(self)['n_features_in_']} features" if self.__sklearn_is_fitted__() else "not fitted"
        return f"<details><summary>cairn.{type(self).__name__}, {state}</summary><table>{rows}</table></details>"

    def __sklearn_is_fitted__(self) -> bool:
        return "_learned" in vars(self)

    def _require_fit(self) -> None:
        if self.__sklearn_is_fitted__():
            return
        raise _not_fitted_class()(
            f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
        )

    def __sklearn_tags__(self) -> Any:
        """Asked for by scikit-learn alone."""
        utils = importlib.import_module("sklearn.utils")
        own = {f"{self._kind}_tags": getattr(utils, f"{self._kind.capitalize()}Tags")()}
        inputs = utils.InputTags(two_d_array=True, categorical=True, string=True, allow_nan=True)
        return utils.Tags(estimator_type=self._kind, target_tags=utils.TargetTags(required=True), input_tags=inputs, **own)


_known: dict[Any, type[Exception]] = {}


def _not_fitted_class() -> type[Exception]:
    """FailedPrecondition, and scikit-learn's own class as well where that is in use."""
    other = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    if other is None:
        return FailedPreconditionError
    if other not in _known:
        _known[other] = type("NotFittedError", (FailedPreconditionError, other), {"__module__": "cairn.errors"})
    return _known[other]


# ---- y and sample_weight ----


def target_of(y: Any, count: int, who: str) -> NDArray:
    """One value for each example, none of them missing."""
    if y is None:
        raise InvalidArgumentError(f"This {who} estimator requires y to be passed, but the target y is None.")
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        conversion_warning(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), for example using ravel()."
        )
        values = values[:, 0]
    if values.ndim != 1:
        raise InvalidArgumentError(f"y should be a 1d array, got an array of shape {values.shape} instead.")
    if len(values) != count:
        raise InvalidArgumentError(f"Found input variables with inconsistent numbers of samples: {[count, len(values)]}")
    if values.dtype.kind == "O":
        values = _plain(values)
    if values.dtype.kind == "c":
        raise InvalidArgumentError("Complex data not supported: y has one real number or one class for each example")
    if values.dtype.kind == "f":
        if np.isnan(values).any():
            raise InvalidArgumentError("Input y contains NaN.")
        if np.isinf(values).any():
            raise InvalidArgumentError("Input y contains infinity or a value too large for dtype('float64').")
    return values


def _plain(values: NDArray) -> NDArray:
    """An array of objects as one of their type, where all are numbers; texts stay objects."""
    missing = [i for i, each in enumerate(values) if each is None or each != each]
    if missing:
        raise InvalidArgumentError(f"Input y contains NaN. The first missing value is in row {missing[0]}.")
    if all(isinstance(each, (bool, np.bool_)) for each in values):
        return values.astype(bool)
    if all(isinstance(each, (int, np.integer)) for each in values):
        return values.astype("int64")
    if all(isinstance(each, (int, float, np.number)) for each in values):
        return values.astype("float64")
    return values


def classes_of(values: NDArray) -> tuple[NDArray, NDArray]:
    """The classes in order, and the number of each example's."""
    if values.dtype.kind == "f" and (np.floor(values) != values).any():
        raise InvalidArgumentError(
            "Unknown label type: continuous. A classifier wants classes, and these are numbers with fractions: take cairn.Regressor"
        )
    try:
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError:
        raise InvalidArgumentError("Unknown label type: y has values of several types, which have no order") from None
    if len(classes) < 2:
        raise InvalidArgumentError(f"y has 1 class, {classes.tolist()[0]!r}, and a classifier wants two or more")
    return classes, codes


def numbers_of(values: NDArray) -> NDArray:
    """The targets of a regressor, as float64."""
    try:
        return values.astype("float64")
    except (TypeError, ValueError):
        raise InvalidArgumentError("y has texts, and a regressor wants numbers: cairn.Classifier takes classes") from None


def weights_of(sample_weight: Any, count: int) -> NDArray | None:
    """One number for each example, of which at least one is not zero; their mean becomes 1."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype="float64")
    if weights.shape != (count,):
        raise InvalidArgumentError(f"sample_weight has the shape {weights.shape}, expected {(count,)}: one for each example")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InvalidArgumentError("sample_weight has a number that is NaN, infinite or below zero")
    if not weights.any():
        raise InvalidArgumentError("Sample weights must contain at least one non-zero number: all are zero.")
    return np.asarray(weights / weights.mean())


def seed_of(random_state: Any) -> int:
    """None: another one each time, from NumPy's global state; a generator of NumPy's: its next number."""
    if random_state is None:
        return int(np.random.randint(1 << 31))
    for draw in ("integers", "randint"):
        if hasattr(random_state, draw):
            return int(getattr(random_state, draw)(1 << 31))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return int(random_state)
    raise TypeError(f"random_state is an int, a generator of NumPy's or None, not a {type(random_state).__name__}")
