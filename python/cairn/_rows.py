"""What estimators take as X: arrays and tables, as columns of a :class:`cairn.Table`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from cairn import _cairn
from cairn._cairn import Table
from cairn.errors import InvalidArgumentError
from cairn.typing import NDArray

#: The column of an array of numbers, whose axis 1 has the features.
MATRIX = "x"


class Rows(NamedTuple):
    """Examples as they were given."""

    table: Table
    #: How many features there are, and their names, where whoever gave them named them.
    width: int
    names: list[str] | None
    #: Columns whose type is one of categories.
    categories: list[str]

    @property
    def is_matrix(self) -> bool:
        """Whether it is one column, of vectors."""
        return self.table.columns == [MATRIX] and self.names is None

    def without(self, name: str) -> Rows:
        """The same but for one column."""
        names = [each for each in self.table.columns if each != name]
        return Rows(self.table._chosen(names, {}), len(names), names, self.categories)


def read(x: Any, target: Any = None, apart: bool = False) -> tuple[Rows, Any]:
    """X as columns, and the target, where that is the name of a column among them, in which no value may be missing.

    `apart`: an array becomes a column for each feature, x0, x1 and so on.

    Errors: ValueError for what is no table of examples, TypeError for what is none of these kinds.
    """
    if hasattr(x, "tocsr"):
        raise TypeError("X is sparse, and dense data is required: pass X.toarray()")
    if isinstance(x, _cairn.Dataset):
        raise TypeError("X is a Dataset, which cairn.Model.fit() takes: an estimator wants a table or an array")
    if _cairn._is_table(x):
        table, categories = _cairn._read_table(x, target if isinstance(target, str) else "")
    elif isinstance(x, Mapping):
        table, categories = Table(x), []
    else:
        return _split(_of_array(x, apart), target)
    names = table.columns
    _check_size(len(table), len(names))
    # A frame of pandas that was made of an array has numbers as names.
    plain = hasattr(x, "iloc") and any(not isinstance(each, str) for each in x.columns)
    return _split(Rows(table, len(names), None if plain else names, categories), target)


def _split(rows: Rows, target: Any) -> tuple[Rows, Any]:
    return (rows.without(target), rows.table[target]) if isinstance(target, str) else (rows, target)


def _check_size(rows: int, columns: int) -> None:
    if rows == 0:
        raise InvalidArgumentError(f"Found array with 0 sample(s) (shape=(0, {columns})) while a minimum of 1 is required.")
    if columns == 0:
        raise InvalidArgumentError(f"Found array with 0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required.")


def _of_array(x: Any, apart: bool) -> Rows:
    values = np.asarray(x)
    if values.dtype.kind == "c":
        raise InvalidArgumentError("Complex data not supported: make .real and .imag features of their own")
    if values.ndim != 2:
        hint = "Reshape your data: x.reshape(-1, 1) is one feature, x.reshape(1, -1) one example"
        raise InvalidArgumentError(f"Expected 2D array, got {values.ndim}D array instead. {hint}")
    _check_size(*values.shape)
    names = [f"{MATRIX}{i}" for i in range(values.shape[1])]
    if values.dtype.kind in "OUS":
        columns = {name: _column(name, values[:, i]) for i, name in enumerate(names)}
        return Rows(Table(columns), len(names), None, [])
    if values.dtype.kind not in "biuf":
        raise TypeError(f"X is an array of {values.dtype}: numbers, bools or texts are wanted")
    if not apart:
        return Rows(Table({MATRIX: as_numbers(values)}), len(names), None, [])
    return Rows(Table({name: as_numbers(values[:, i]) for i, name in enumerate(names)}), len(names), None, [])


def _column(name: str, values: NDArray) -> NDArray:
    """A column of an array of objects: numbers if all are, else texts."""
    missing = np.array([each is None or each != each for each in values], bool)
    present = values[~missing]
    if all(isinstance(each, (int, float, np.number, np.bool_)) for each in present):
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = present.astype("float64")
        return numbers
    for each in present:
        if not isinstance(each, (str, bytes)):
            kind = type(each).__name__
            raise TypeError(f'feature "{name}" has a {kind}: an argument must be a string or a number, of one kind in a column')
    return np.array(["" if gone else each for each, gone in zip(values, missing)], object)


def as_numbers(values: NDArray) -> NDArray:
    """float32, in which models compute; what is beyond it is infinite."""
    with np.errstate(over="ignore"):
        return values.astype("float32", copy=False)


class Layout(NamedTuple):
    """The columns that an estimator was fitted on, to find them in other data."""

    columns: list[str]
    width: int
    names: list[str] | None
    is_matrix: bool

    @classmethod
    def of(cls, rows: Rows) -> Layout:
        return cls(rows.table.columns, rows.width, rows.names, rows.is_matrix)

    def read(self, x: Any, target: Any) -> tuple[Rows, Any]:
        """Other data, and the target, where that is a column of it."""
        return read(x, target, apart=not self.is_matrix)

    def take(self, rows: Rows, who: str) -> Table:
        """The columns in other data: by name where both have names, else by place."""
        if self.names is not None and rows.names is not None:
            return self._by_name(rows, who)
        if rows.width != self.width:
            raise InvalidArgumentError(f"X has {rows.width} features, but {who} is expecting {self.width} features as input")
        if self.names is not None:
            _warn(f"X does not have valid feature names, but {who} was fitted with feature names")
        elif rows.names is not None:
            _warn(f"X has feature names, but {who} was fitted without feature names")
        if self.is_matrix:
            return Table({MATRIX: as_numbers(_matrix(rows))})
        return Table({name: rows.table[given] for name, given in zip(self.columns, rows.table.columns)})

    def _by_name(self, rows: Rows, who: str) -> Table:
        missing = [name for name in self.columns if name not in rows.table.columns]
        if missing:
            named = ", ".join(f'"{name}"' for name in missing[:5]) + (", ..." if len(missing) > 5 else "")
            has = f"X has {rows.width} features, but {who} is expecting {self.width} features as input"
            raise InvalidArgumentError(f"{has}: it lacks {named}")
        return rows.table._chosen(self.columns, {})


def _matrix(rows: Rows) -> NDArray:
    if rows.is_matrix:
        return np.asarray(rows.table[MATRIX])
    texts = [name for name, dtype in rows.table.dtypes.items() if "string" in dtype or "list" in dtype]
    if texts:
        raise InvalidArgumentError(f'feature "{texts[0]}" is of texts or lists, where numbers were fitted')
    return np.column_stack([rows.table[name] for name in rows.table.columns])


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=_outside())


def _outside() -> int:
    """The level of the innermost frame that is not of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("cairn."):
        level, frame = level + 1, frame.f_back
    return level


def conversion_warning(text: str) -> None:
    """scikit-learn's own, where that is in use."""
    exceptions = sys.modules.get("sklearn.exceptions")
    warnings.warn(text, getattr(exceptions, "DataConversionWarning", UserWarning), stacklevel=_outside())
