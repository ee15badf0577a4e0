"""DataFrames of pandas, column by column: with NumPy alone where pyarrow is not installed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from cairn import _cairn
from cairn.errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[Any]
    #: The values, their row splits or None, whether `values` is to be read by Arrow, and whether
    #: the memory is nobody else's.
    Column = tuple[Any, Any, bool, bool]
    #: None: missing numbers are NaN, missing texts "" and missing lists [].
    Defaults = Union[Mapping[str, Any], None]

_WIDER = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64"}
_KEPT = {"float16", "float32", "float64", "int32", "int64", "uint8", "bool"}
_CURES = {
    "M": "cast it by .astype('int64') (seconds since 1970 are what date_part() takes), or leave it out by columns=[...]",
    "m": "cast it by .astype('int64'), or leave it out by columns=[...]",
    "c": "make .real and .imag columns of their own",
}


def _pandas() -> Any:
    return importlib.import_module("pandas")  # which has imported the frame already


def names(frame: Any) -> list[str]:
    """The names of the columns, as texts."""
    return [str(name) for name in frame.columns]


def is_category(frame: Any, place: int) -> bool:
    """Whether a column's type is one of categories."""
    return isinstance(frame.dtypes.iloc[place], _pandas().CategoricalDtype)


def column(frame: Any, place: int, name: str, defaults: Defaults) -> Column:
    """One column, with its defaults where values are missing."""
    pd = _pandas()
    series = frame.iloc[:, place]
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _categories(name, series, defaults)
    if isinstance(dtype, np.dtype):
        if dtype.kind == "O":
            return _objects(name, series, defaults)
        return _numbers(name, series.to_numpy(), None, defaults)
    if _by_arrow(series):
        return series, None, True, False
    if isinstance(dtype, pd.StringDtype):
        return _texts(name, series.to_numpy(dtype=object), series.isna().to_numpy(), defaults)
    plain = getattr(dtype, "numpy_dtype", None)
    if plain is not None:  # Int64, boolean, Float32: values beside a mask
        null = series.isna().to_numpy()
        return _numbers(name, series.to_numpy(dtype=plain, na_value=plain.type(0)), null, defaults)
    if isinstance(dtype, pd.SparseDtype):
        return _numbers(name, np.asarray(series), None, defaults)
    raise _refused(name, dtype, "M" if "datetime" in str(dtype) else "")


def _by_arrow(series: Any) -> bool:
    pd = _pandas()
    if not isinstance(series.dtype, pd.ArrowDtype) and getattr(series.dtype, "storage", "") != "pyarrow":
        return False
    return hasattr(series, "__arrow_c_stream__")


def _refused(name: str, dtype: Any, kind: str) -> InvalidArgumentError:
    cure = _CURES.get(kind, "cast it to numbers, bool or texts, or leave it out by columns=[...]")
    return InvalidArgumentError(f'column "{name}" is of pandas\' type {dtype}, which Cairn does not have: {cure}')


def _default(name: str, dtype: str, defaults: Defaults) -> Any:
    """What stands for missing values; None: nothing does."""
    if defaults is None:
        return np.array("" if dtype == "string" else np.nan)
    return _cairn._null_value(name, dtype, defaults[name]) if name in defaults else None


def _filled(name: str, values: Values, null: Values, dtype: str, defaults: Defaults) -> Values:
    instead = _default(name, dtype, defaults)
    if not null.any():
        return values
    if instead is None:
        _cairn._refuse_null(name, int(np.flatnonzero(null)[0]))
    if dtype == "string":
        values = values.copy()
        values[null] = instead.item()
        return values
    return np.where(null, instead, values).astype(values.dtype, copy=False)


def _wide(name: str, values: Values, null: Values | None = None) -> Values:
    """The numbers in a type that Cairn has."""
    kind = values.dtype.name
    if kind == "uint64":
        beyond = values > np.uint64(2**63 - 1)
        if null is not None:
            beyond &= ~null
        if beyond.any():
            raise InvalidArgumentError(
                f'column "{name}": the number {values[beyond][0]} is beyond int64, the widest that Cairn has'
            )
        return values.astype("int64")
    if kind in _WIDER:
        return values.astype(_WIDER[kind])
    if kind not in _KEPT:
        raise _refused(name, values.dtype, values.dtype.kind)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _numbers(name: str, values: Values, null: Values | None, defaults: Defaults) -> Column:
    """`null` None: a NaN is what pandas has for a missing value."""
    wide = _wide(name, values, null)
    if defaults is None and null is not None and null.any() and wide.dtype.kind != "f":
        wide = wide.astype("float64")
    if null is None:
        null = np.isnan(wide) if wide.dtype.kind == "f" else np.zeros(0, bool)
    full = _filled(name, wide, null, wide.dtype.name, defaults)
    return full, None, False, full is not values


def _texts(name: str, values: Values, null: Values, defaults: Defaults) -> Column:
    return _filled(name, values, null, "string", defaults), None, False, True


def _categories(name: str, series: Any, defaults: Defaults) -> Column:
    codes = series.cat.codes.to_numpy()
    known = series.cat.categories.to_numpy()
    null = codes < 0
    if known.dtype.kind == "O" or len(known) == 0:
        texts = known.astype(object) if len(known) else np.array([""], dtype=object)
        return _texts(name, texts[np.where(null, 0, codes)], null, defaults)
    return _numbers(name, _wide(name, known)[np.where(null, 0, codes)], null, defaults)


def _objects(name: str, series: Any, defaults: Defaults) -> Column:
    pd = _pandas()
    values = series.to_numpy()
    null = series.isna().to_numpy()
    present = values[~null]
    if len(present) and isinstance(present[0], (list, tuple, np.ndarray)):
        return _lists(name, values, null, defaults)
    kind = pd.api.types.infer_dtype(values, skipna=True)
    nullable = {"boolean": "boolean", "integer": "Int64", "floating": "Float64", "mixed-integer-float": "Float64"}
    if kind in nullable:
        masked = series.astype(nullable[kind])
        plain = masked.dtype.numpy_dtype
        return _numbers(name, masked.to_numpy(dtype=plain, na_value=plain.type(0)), null, defaults)
    if kind not in ("string", "bytes", "empty"):
        raise _refused(name, f"object ({kind})", "M" if kind.startswith("date") else "")
    return _texts(name, values, null, defaults)


def _lists(name: str, values: Values, null: Values, defaults: Defaults) -> Column:
    if null.any() and defaults is not None and name not in defaults:
        _cairn._refuse_null(name, int(np.flatnonzero(null)[0]))
    lists = [() if missing else each for each, missing in zip(values, null)]
    splits = np.zeros(len(lists) + 1, "int64")
    np.cumsum([len(each) for each in lists], out=splits[1:])
    parts = [each if isinstance(each, np.ndarray) else np.array(each) for each in lists if len(each)]
    flat = np.concatenate(parts) if parts else np.zeros(0, "float32")
    if flat.dtype.kind in "OUS":
        flat = flat.astype(object)
        missing = np.array([each is None for each in flat], bool)
        within = {name: ""} if defaults is None else {} if defaults.get(name) == [] else defaults
        if missing.any() and name not in within:
            _cairn._refuse_null(name, int(np.searchsorted(splits, np.flatnonzero(missing)[0], side="right")) - 1)
        if missing.any() and not isinstance(within[name], str):
            flat = np.where(missing, within[name], flat).astype(type(within[name]))
            return _wide(name, flat), splits, False, True
        return _filled(name, flat, missing, "string", within), splits, False, True
    return _wide(name, flat), splits, False, True
