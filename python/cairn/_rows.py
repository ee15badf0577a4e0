"""What estimators take as X: arrays and tables, as columns of a :class:`cairn.Table`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
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
    #: The features in order, also those that were not read, and whether these are the names that they were given.
    columns: list[str]
    named: bool
    #: Columns whose type is one of categories.
    categories: list[str]

    @property
    def is_matrix(self) -> bool:
        """Whether the features are those of one column, of vectors."""
        return not self.named and self.table.columns == [MATRIX]

    def without(self, name: str) -> Rows:
        """The same but for one column."""
        kept = [each for each in self.table.columns if each != name]
        return Rows(self.table._chosen(kept, {}), [each for each in self.columns if each != name], self.named, self.categories)


def read(x: Any, target: Any = None, apart: bool = False, leave: Sequence[str] = ()) -> tuple[Rows, Any]:
    """X as columns, and the target, where that is the name of a column among them, in which no value may be missing.

    `apart`: an array becomes a column for each feature, x0, x1 and so on. `leave`: columns of a table that are not read.

    Errors: ValueError for what is no table of examples, TypeError for what is none of these kinds.
    """
    if hasattr(x, "tocsr"):
        raise TypeError("X is sparse, and dense data is required: pass X.toarray()")
    if isinstance(x, _cairn.Dataset):
        raise TypeError("X is a Dataset, which cairn.Model.fit() takes: an estimator wants a table or an array")
    if _cairn._is_table(x):
        table, names, categories = _read_table(x, target, leave)
    elif isinstance(x, Mapping):
        table, names, categories = Table({name: values for name, values in x.items() if name not in leave}), list(x), []
    else:
        return _split(_of_array(x, apart), target)
    if names and not table.columns:
        raise InvalidArgumentError("features leaves no column to learn from")
    _check_size(len(table), len(names))
    # A frame of pandas that was made of an array has numbers as names.
    named = not hasattr(x, "iloc") or all(isinstance(each, str) for each in getattr(x, "columns", ()))
    return _split(Rows(table, names, named, categories), target)


def _read_table(x: Any, target: Any, leave: Sequence[str]) -> tuple[Table, list[str], list[str]]:
    try:
        return _cairn._read_table(x, target if isinstance(target, str) else "", list(leave))
    except InvalidArgumentError as error:
        text = str(error).replace("columns=[...]", "features={...: None}")
        raise InvalidArgumentError(text) from None


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
        return Rows(Table(columns), names, False, [])
    if values.dtype.kind not in "biuf":
        raise TypeError(f"X is an array of {values.dtype}: numbers, bools or texts are wanted")
    if not apart:
        return Rows(Table({MATRIX: as_numbers(values)}), names, False, [])
    return Rows(Table({name: as_numbers(values[:, i]) for i, name in enumerate(names)}), names, False, [])


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
    named: bool
    is_matrix: bool
    leave: list[str]

    @classmethod
    def of(cls, rows: Rows) -> Layout:
        return cls(rows.columns, rows.named, rows.is_matrix, [name for name in rows.columns if name not in rows.table.columns])

    def read(self, x: Any, target: Any) -> tuple[Rows, Any]:
        """Other data, and the target, where that is a column of it."""
        return read(x, target, not self.is_matrix, self.leave if self.named else [])

    def take(self, rows: Rows, used: list[str], who: str) -> Table:
        """The columns that are used, in other data: by name where both have names, else by place."""
        if self.named and rows.named:
            return self._by_name(rows, used, who)
        if len(rows.columns) != len(self.columns):
            raise self._other_count(rows, who)
        if self.named:
            _warn(f"X does not have valid feature names, but {who} was fitted with feature names")
        elif rows.named:
            _warn(f"X has feature names, but {who} was fitted without feature names")
        if self.is_matrix:
            return Table({MATRIX: as_numbers(_matrix(rows))})
        return Table({name: rows.table[rows.columns[self.columns.index(name)]] for name in used})

    def _by_name(self, rows: Rows, used: list[str], who: str) -> Table:
        missing = [name for name in used if name not in rows.table.columns]
        if missing:
            named = ", ".join(f'"{name}"' for name in missing[:5]) + (", ..." if len(missing) > 5 else "")
            raise InvalidArgumentError(f"{self._other_count(rows, who)}: it lacks {named}")
        return rows.table._chosen(used, {})

    def _other_count(self, rows: Rows, who: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"X has {len(rows.columns)} features, but {who} is expecting {len(self.columns)} features as input")


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
