"""How an estimator learns: a model under a strategy, and what is kept of it."""

from __future__ import annotations

import io
import itertools
import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cairn import _cairn, _strategies, callbacks
from cairn._cairn import Array, CsvColumn, Dataset, Features, LoadedModel, Model, Table
from cairn._tabular import Network, Plan
from cairn.errors import InvalidArgumentError
from cairn.typing import LossLike, NDArray, StrategyLike

#: Examples that are predicted at once: always as many, so that a prediction has the same bits whatever stands beside it.
_BATCH = 256
#: Strategies of the user's may train several models, whose variables need names of their own.
_numbers = itertools.count()


class Saved:
    """A saved model as bytes, which is loaded when it first predicts."""

    def __init__(self, folder: str) -> None:
        import zipfile

        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for root, _, files in os.walk(folder):
                for name in files:
                    path = os.path.join(root, name)
                    archive.write(path, os.path.relpath(path, folder))
        self.data = buffer.getvalue()
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._loaded: LoadedModel | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.data}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.data = state["data"]
        self._begin()

    def write(self, folder: str) -> None:
        """The model's folder, as Model.save() makes it."""
        import zipfile

        with zipfile.ZipFile(io.BytesIO(self.data)) as archive:
            archive.extractall(folder)

    def predict(self, examples: Dataset, count: int, output: str) -> NDArray:
        """The output for each of `count` examples, [count, ...]. Any thread; one at a time predicts."""
        with self._lock:
            if self._loaded is None:
                with tempfile.TemporaryDirectory(prefix="cairn-") as folder:
                    self.write(folder)
                    self._loaded = _cairn.load_model(folder)
            whole = -(-count // _BATCH) * _BATCH
            return np.asarray(self._loaded.predict(examples.repeat().take(whole).batch(_BATCH))[output])[:count]


@dataclass
class Task:
    """What is to be learned, and what the saved model gives."""

    outputs: int
    loss: LossLike
    metrics: list[str]
    #: The saved model's output and its name, of what the network gives.
    output: str
    finish: Callable[[Array], Array]
    metadata: dict[str, Any]


@dataclass
class Options:
    """The estimator's own, checked."""

    layers: tuple[int, ...]
    activation: str
    dropout: float
    embedding_dim: int
    optimizer: Any
    learning_rate: float
    epochs: int | None
    batch_size: int | None
    early_stopping: bool
    validation_fraction: float
    patience: int
    strategy: StrategyLike
    ps: int | None
    workers: int | None
    seed: int
    verbose: int


@dataclass
class Examples:
    """A table with what is to be predicted, and weights."""

    table: Table
    target: NDArray
    weights: NDArray | None

    def weighted(self) -> Examples:
        """The same, with weights."""
        return Examples(self.table, self.target, np.ones(len(self.target)) if self.weights is None else self.weights)

    def dataset(self, plan: Plan, names: tuple[str, str]) -> Dataset:
        label, weights = names
        more = {label: self.target}
        if self.weights is None:
            return plan.dataset(self.table, label, more=more)
        return plan.dataset(self.table, label, weights, {**more, weights: self.weights.astype("float32")})


@dataclass
class Learned:
    saved: Saved
    history: dict[str, list[float]] = field(default_factory=dict)


def learn(plan: Plan, task: Task, options: Options, examples: Examples, judged: Examples | None) -> Learned:
    """Trains, and ends the strategy unless it is the user's."""
    given = options.strategy
    if given is None:
        given = _scope_strategy() or "one_device"
    own = not isinstance(given, _cairn.Strategy)
    strategy = _strategies.chosen(given, options.ps, options.workers, options.seed)
    assert strategy is not None
    try:
        with strategy.scope():
            return _learn(plan, task, options, examples, judged, "" if own else f"fit_{next(_numbers)}/")
    finally:
        if own:
            strategy.close()


def _scope_strategy() -> _cairn.Strategy | None:
    """That of the scope that is open."""
    return Model(lambda x: x).strategy


def _learn(plan: Plan, task: Task, options: Options, examples: Examples, judged: Examples | None, prefix: str) -> Learned:
    names = _names_of(plan)
    train, validation = _split(plan, options, examples, judged, names)
    network = Network(
        plan, task.outputs, options.layers, options.activation, options.dropout, options.embedding_dim, options.seed, prefix
    )
    model = Model(network)
    model.compile(
        _optimizer(options),
        task.loss,
        evaluation_metrics=task.metrics if validation is not None else None,
        sample_weight=names[1] if examples.weights is not None or (judged and judged.weights is not None) else "",
    )
    stopping = callbacks.EarlyStopping("val_loss", patience=options.patience, restore_best_weights=True)
    history = model.fit(
        train.dataset,
        epochs=_epochs(train.count, train.batch, options),
        validation_data=validation,
        callbacks=[stopping] if options.early_stopping else None,
        verbose=options.verbose,
    )
    with tempfile.TemporaryDirectory(prefix="cairn-") as folder:
        return Learned(_save(plan, task, network, examples.table, os.path.join(folder, "model")), dict(history.history))


@dataclass
class _Batches:
    dataset: Dataset
    count: int
    batch: int


def _names_of(plan: Plan) -> tuple[str, str]:
    """Names for the columns of label and weights that no feature has."""
    taken = {*plan.used, *(each.name for each in plan.columns)}
    made = []
    for name in ("label", "weight"):
        while name in taken:
            name += "_"
        made.append(name)
    return made[0], made[1]


def _split(
    plan: Plan, options: Options, examples: Examples, judged: Examples | None, names: tuple[str, str]
) -> tuple[_Batches, Dataset | None]:
    count = len(examples.target)
    if judged is not None and (judged.weights is None) != (examples.weights is None):
        examples, judged = examples.weighted(), judged.weighted()
    data = examples.dataset(plan, names)
    kept = count
    validation = None if judged is None else judged.dataset(plan, names)
    if validation is None and options.early_stopping:
        kept = count - int(np.ceil(count * options.validation_fraction))
        if kept < 1 or kept == count:
            raise InvalidArgumentError(f"a validation_fraction of {options.validation_fraction} leaves {kept} of {count} examples to train on")
        mixed = data.shuffle(count, options.seed, reshuffle_each_iteration=False)
        data, validation = mixed.take(kept), mixed.skip(kept)
    batch = min(options.batch_size or _usual_batch(kept), kept)
    batches = data.shuffle(kept, options.seed).batch(batch)
    return _Batches(batches, kept, batch), None if validation is None else validation.batch(_BATCH)


def _usual_batch(count: int) -> int:
    """A power of two from 16 to 1024, so that an epoch has a hundred steps or more."""
    return 1 << min(max(count // 100, 16), 1024).bit_length() - 1


def _epochs(count: int, batch: int, options: Options) -> int:
    """Unless they are given: as many as make some 1,000 steps, at least 5 and at most 100."""
    if options.epochs is not None:
        return options.epochs
    return int(min(max(np.ceil(1000 * batch / count), 5), 100))


def _optimizer(options: Options) -> Any:
    if isinstance(options.optimizer, str):
        return _cairn.Optimizer(options.optimizer, options.learning_rate)
    return options.optimizer(options.learning_rate)


def _save(plan: Plan, task: Task, network: Network, table: Table, folder: str) -> Saved:
    def predict(features: Features) -> dict[str, Array]:
        return {task.output: task.finish(network(features))}

    model = Model(predict, name=task.metadata["estimator"])
    model.build(plan.dataset(table).batch(1))
    model.save(folder, examples=_raw_examples(plan, table), metadata=task.metadata)
    return Saved(folder)


def _raw_examples(plan: Plan, table: Table) -> Dataset | None:
    """How a saved model reads examples by itself, and makes its features of them: from CSV files with a header."""
    means = {each.column: each.mean for feature in plan.columns for each in feature.numerics}
    columns = []
    for name in plan.used:
        dtype, role = table.dtypes[name], plan.roles.get(name, "")
        if dtype.startswith("list"):
            return None  # no tensor can stand for it
        if dtype.endswith("]"):
            return plan.dataset(table)
        if role == "numeric":
            columns.append(CsvColumn(name, "float32", default_value=repr(means[name])))
        elif dtype == "string" or (role == "category" and name not in means):
            columns.append(CsvColumn(name, "string", default_value=""))
        else:
            columns.append(CsvColumn(name, "float32" if dtype.startswith("float") else "int64"))
    return Dataset.csv("examples.csv", columns, header=True).features(plan.columns)
