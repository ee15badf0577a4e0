"""Columns whose rows have any number of values."""

from __future__ import annotations

from typing import Any, NamedTuple

from cairn import _cairn


def _feature_column(kind: str, arguments: dict[str, Any]) -> _cairn.FeatureColumn:
    """One that was copied or pickled."""
    made: _cairn.FeatureColumn = getattr(_cairn.FeatureColumn, kind)(**arguments)
    return made


class Ragged(NamedTuple):
    """A ragged column: row i has ``values[row_splits[i]:row_splits[i + 1]]``.

    >>> words = cairn.Ragged(np.array([7, 8, 9]), np.array([0, 2, 2, 3]))
    >>> words.to_list()
    [[7, 8], [], [9]]
    >>> len(list(cairn.Dataset.from_tensor_slices({"words": words})))
    3
    """

    values: Any
    row_splits: Any

    def to_list(self) -> list[list[Any]]:
        """The values, row by row."""
        splits = [int(split) for split in self.row_splits]
        return [list(self.values[begin:end].tolist()) for begin, end in zip(splits, splits[1:])]
