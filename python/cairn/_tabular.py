"""From columns of a table to what a network of an estimator reads: features by the columns' types."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from cairn import _cairn
from cairn._cairn import Array, Dataset, FeatureColumn, Features, NumericInput, Table, nn
from cairn._rows import Layout, Rows, as_numbers
from cairn.errors import InvalidArgumentError
from cairn.typing import NDArray

if TYPE_CHECKING:
    #: A kind, a FeatureColumn, several of them, or None: the column is left out.
    FeatureLike = Union[str, FeatureColumn, Sequence[Union[str, FeatureColumn]], None]
    FeaturesLike = Union[Mapping[str, FeatureLike], None]

KINDS = ("numeric", "category", "words")
#: Buckets of the ids of words.
_WORD_BUCKETS = 1 << 16
#: Numbers that quantile bins may make of an example.
_BINS_WIDTH = 1024
#: Rows of which quantiles are taken.
_BINS_ROWS = 200_000
_FLOAT32_MAX = float(np.finfo("float32").max)


@dataclass
class Numbers:
    """A feature of numbers, and how the network makes them of one scale."""

    name: str
    width: int
    #: Mean and deviation; None: it has been done.
    scale: tuple[NDArray, NDArray] | None = None


@dataclass
class Ids:
    """A feature of ids in [0, rows), one for each example or bags of them."""

    name: str
    rows: int
    ragged: bool


@dataclass
class Plan:
    """What was found out about the columns that an estimator was fitted on."""

    layout: Layout
    columns: list[FeatureColumn] = field(default_factory=list)
    numbers: list[Numbers] = field(default_factory=list)
    ids: list[Ids] = field(default_factory=list)
    #: How columns are converted first, by name: "numeric", "category" or "matrix".
    roles: dict[str, str] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)
    #: The beginnings and the widths of the quantile bins of each number; None: there are none.
    bins: tuple[NDArray, NDArray] | None = None

    def prepared(self, table: Table, more: Mapping[str, Any]) -> Table:
        """The columns that features read, of the types that they take, and more behind them."""
        dtypes, kept, changed = table.dtypes, [], dict(more)
        for name in self.used:
            other = _converted(table, name, dtypes[name], self.roles.get(name, ""))
            if other is None:
                kept.append(name)
            else:
                changed[name] = other
        for name, role in self.roles.items():
            if role != "category":
                _check_finite(name, table[name])
        return table._chosen(kept, changed)

    def dataset(self, table: Table, label: str = "", weights: str = "", more: Mapping[str, Any] = {}) -> Dataset:
        """Examples as the network takes them, one by one; `more` has the columns of label and weights."""
        raw = Dataset.from_table(self.prepared(table, more), label=label)
        return raw.features([*self.columns, *([FeatureColumn.as_is(weights)] if weights else [])])


def _check_finite(name: str, values: NDArray) -> None:
    if values.dtype.kind != "f":
        return
    if np.isinf(values).any() if values.dtype.itemsize <= 4 else (np.abs(values) > _FLOAT32_MAX).any():
        raise InvalidArgumentError(f"Input X contains infinity or a value too large for dtype('float32'), in the feature \"{name}\"")


def _converted(table: Table, name: str, dtype: str, role: str) -> NDArray | None:
    """The column as features take it, where it is of another type."""
    if role == "matrix":
        return np.asarray(as_numbers(table[name]))
    if role == "category":
        return _texts(table[name]) if dtype.startswith(("float", "bool")) else None
    return as_numbers(table[name]) if dtype in ("bool", "float16") else None


def _texts(values: NDArray) -> NDArray:
    """Numbers as texts; missing ones are empty."""
    known, places = np.unique(values, return_inverse=True)
    whole = known.dtype.kind == "f" and bool((np.floor(known) == known)[~np.isnan(known)].all())
    texts = ["" if each != each else str(int(each)) if whole else str(each) for each in known.tolist()]
    return np.array(texts, object)[places]


# ---- which feature a column becomes ----


def plan_of(rows: Rows, features: FeaturesLike, bins: int) -> Plan:
    """Looks at all columns once."""
    if features is not None and not isinstance(features, Mapping):
        raise TypeError("features is a dict: a kind, a cairn.FeatureColumn, a list of them, or None, by the name of a column")
    maker = _Maker(rows, dict(features or {}))
    maker.check_names()
    for name in rows.table.columns:
        maker.add(name)
    return maker.finish(bins)


class _Maker:
    def __init__(self, rows: Rows, features: dict[str, FeatureLike]) -> None:
        self.rows, self.given = rows, features
        self.dtypes = rows.table.dtypes
        self.plan = Plan(Layout.of(rows))
        self.numeric: list[str] = []

    def check_names(self) -> None:
        for name, feature in self.given.items():
            if name in self.rows.columns or isinstance(feature, FeatureColumn):
                continue
            import difflib

            near = difflib.get_close_matches(name, self.rows.columns, 1)
            hint = f'; did you mean "{near[0]}"?' if near else "; a name of its own goes with a cairn.FeatureColumn"
            raise InvalidArgumentError(f'features: there is no column "{name}"{hint}')

    def add(self, name: str) -> None:
        given = self.given[name] if name in self.given else self._kind_of(name)
        for feature in [given] if given is None or isinstance(given, (str, FeatureColumn)) else given:
            if isinstance(feature, FeatureColumn):
                self._add_column(feature)
            elif feature is not None:
                self._add_kind(name, feature)

    def _kind_of(self, name: str) -> str:
        dtype = self.dtypes[name]
        if dtype.startswith("list of float"):
            raise InvalidArgumentError(f'the column "{name}" is a list of numbers: make columns of them, or leave it out by features={{"{name}": None}}')
        return "category" if "string" in dtype or dtype.startswith("list") or name in self.rows.categories else "numeric"

    def _add_kind(self, name: str, kind: str) -> None:
        if kind == "numeric":
            if "string" in self.dtypes[name]:
                raise InvalidArgumentError(f'features: the column "{name}" is of texts, and "numeric" wants numbers')
            self._refuse_both(name)
            self._add_numbers(name)
        elif kind == "category":
            self._refuse_both(name)
            self.plan.roles[name] = "category"
            self._use(name)
            other = _converted(self.rows.table, name, self.dtypes[name], "category")
            one = self.rows.table._chosen([name], {}) if other is None else Table({name: other})
            values = _cairn.fit_vocabulary(Dataset.from_table(one), name)
            self._add_column(FeatureColumn.vocabulary(name, values, name=_feature_name(name)))
        elif kind == "words":
            self._add_column(FeatureColumn.words(name, _WORD_BUCKETS, words_max=2))
        else:
            known = ", ".join(f'"{each}"' for each in KINDS)
            raise InvalidArgumentError(f'features: the kind of the column "{name}" is one of {known} or None, not {kind!r}')

    def _refuse_both(self, name: str) -> None:
        if name in self.plan.roles and self.dtypes[name].startswith(("float", "bool")):
            raise InvalidArgumentError(f'features: the column "{name}" is both numeric and a category: bucketise it')

    def _use(self, name: str) -> None:
        if name in self.dtypes and name not in self.plan.used:
            self.plan.used.append(name)

    def _add_numbers(self, name: str) -> None:
        self._use(name)
        _check_finite(name, self.rows.table[name])
        if self.dtypes[name].endswith("]"):  # vectors
            self.plan.roles[name] = "matrix"
            values = as_numbers(self.rows.table[name])
            if values.ndim != 2:
                raise InvalidArgumentError(f'the column "{name}" has {values.ndim - 1} axes: an estimator takes one')
            mean, stddev = _scale(values)
            self.plan.columns.append(FeatureColumn.as_is(name, name=_feature_name(name)))
            self.plan.numbers.append(Numbers(_feature_name(name), values.shape[1], (as_numbers(mean), as_numbers(stddev))))
        else:
            self.plan.roles[name] = "numeric"
            self.numeric.append(name)

    def _add_column(self, feature: FeatureColumn) -> None:
        inputs = [*feature.inputs, *(each.column for each in feature.numerics)]
        for name in inputs:
            self._use(name)
        self.plan.columns.append(feature)
        if feature.ids > 0:
            ragged = feature.kind == "words" or feature.padding is not None
            ragged = ragged or (feature.kind != "crossed" and self.dtypes.get(inputs[0], "").startswith("list"))
            self.plan.ids.append(Ids(feature.name, feature.ids, ragged))
        else:
            self.plan.numbers.append(Numbers(feature.name, feature.width))

    def finish(self, bins: int) -> Plan:
        for name, feature in self.given.items():
            if name not in self.dtypes and isinstance(feature, FeatureColumn):
                self._add_column(feature)
        plan = self.plan
        if self.numeric:
            taken = {*self.dtypes, *(each.name for each in plan.columns)}
            name = "numeric"
            while name in taken:
                name += "_"
            inputs = []
            for each in self.numeric:
                mean, stddev = _scale(self.rows.table[each][:, None])
                inputs.append(NumericInput(each, mean=float(mean[0]), stddev=float(stddev[0])))
            plan.columns.append(FeatureColumn.numeric(inputs, name=name))
            plan.numbers.append(Numbers(name, len(inputs)))
        if not plan.columns:
            raise InvalidArgumentError("features leaves no column to learn from")
        plan.bins = self._bins(bins)
        return plan

    def _bins(self, bins: int) -> tuple[NDArray, NDArray] | None:
        """Quantiles of the standardised numbers, each between two that differ."""
        width = sum(each.width for each in self.plan.numbers)
        bins = min(bins, _BINS_WIDTH // max(width, 1))
        if bins < 2 or width == 0:
            return None
        some = self.plan.dataset(self.rows.table).take(_BINS_ROWS).batch(_BINS_ROWS)
        batch = next(iter(some))
        values = np.concatenate([standardised(each, batch[each.name]) for each in self.plan.numbers], 1)
        low, size = np.zeros((width, bins), "float32"), np.full((width, bins), np.inf, "float32")
        for i, column in enumerate(values.T):
            present = column[~np.isnan(column)]
            if len(present) == 0:
                continue
            edges = np.unique(np.quantile(present, np.linspace(0, 1, bins + 1)))
            low[i, : len(edges) - 1], size[i, : len(edges) - 1] = edges[:-1], np.diff(edges)
        return low, size


def _feature_name(name: str) -> str:
    """A model takes a column of this name for weights of examples."""
    return name + "_" if name == "sample_weight" else name


def _scale(values: NDArray) -> tuple[NDArray, NDArray]:
    """Means and deviations along axis 0, 0 and 1 where there are none."""
    if values.dtype.kind == "f" and np.isnan(values).any():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column may lack all of its values
            mean, stddev = np.nanmean(values, 0, dtype="float64"), np.nanstd(values, 0, dtype="float64")
    else:
        mean, stddev = values.mean(0, dtype="float64"), values.std(0, dtype="float64")
    usual = np.isfinite(stddev) & (stddev > 1e-12 * np.maximum(np.abs(mean), 1e-30))
    return np.where(np.isfinite(mean), mean, 0), np.where(usual, stddev, 1)


def standardised(numbers: Numbers, values: NDArray) -> NDArray:
    """As the network has them, but for missing ones."""
    if numbers.scale is not None:
        values = (values - numbers.scale[0]) / numbers.scale[1]
    return values.astype("float32").reshape(len(values), numbers.width)


# ---- the network ----


class Network:
    """Dense layers over numbers, their quantile bins, and the embeddings of ids."""

    def __init__(
        self, plan: Plan, outputs: int, layers: Sequence[int], activation: str, dropout: float, dim: int, seed: int, prefix: str = ""
    ) -> None:
        self.plan = plan
        dense: list[Any] = []
        for i, units in enumerate(layers):
            dense.append(nn.Dense(units, activation, name=f"{prefix}hidden_{i}", seed=seed + i))
            if dropout > 0:
                dense.append(nn.Dropout(dropout, seed=seed + i))
        dense.append(nn.Dense(outputs, name=f"{prefix}output", seed=seed + len(layers)))
        self.tower = nn.Sequential(dense)
        self.tables = [
            nn.Embedding(each.rows, dim, "mean" if each.ragged else None, name=f"{prefix}embedding_{i}", seed=seed + 7919 * (i + 1))
            for i, each in enumerate(plan.ids)
        ]

    def __call__(self, features: Features) -> Array:
        parts = self._numbers(features) if self.plan.numbers else []
        for ids, table in zip(self.plan.ids, self.tables):
            if ids.ragged:
                parts.append(table(nn.Ids(features.values(ids.name), features.row_splits(ids.name))))
            else:
                parts.append(table(features[ids.name]))
        made: Array = self.tower(parts[0] if len(parts) == 1 else _cairn.concat(parts, 1))
        return made

    def _numbers(self, features: Features) -> list[Array]:
        all_numbers = []
        for each in self.plan.numbers:
            x = features[each.name]
            if each.scale is not None:
                x = (x - each.scale[0]) / each.scale[1]
            all_numbers.append(_cairn.reshape(_cairn.cast(x, "float32"), (-1, each.width)))
        x = all_numbers[0] if len(all_numbers) == 1 else _cairn.concat(all_numbers, 1)
        # A number that is missing is the mean.
        x = _cairn.where(x == x, x, 0.0)
        if self.plan.bins is None:
            return [x]
        low, size = self.plan.bins
        within = _cairn.clip_by_value((x[:, :, None] - low) / size, 0.0, 1.0)
        return [x, _cairn.reshape(within, (-1, low.size))]
