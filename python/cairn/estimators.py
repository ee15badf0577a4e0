"""Models of tables by scikit-learn's conventions: :class:`Classifier` and :class:`Regressor`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Union

import numpy as np

from cairn import _cairn
from cairn import _conventions as conventions
from cairn._cairn import Array
from cairn._conventions import Estimator
from cairn._fitting import Examples, Learned, Options, Task, learn
from cairn._parameters import CHECKED
from cairn._rows import Rows, read
from cairn._tabular import Plan, plan_of
from cairn.errors import InvalidArgumentError
from cairn.losses import BinaryCrossentropy, SparseCategoricalCrossentropy
from cairn.typing import ArrayLike, NDArray, StrategyLike, TableLike

if TYPE_CHECKING:
    from cairn import Optimizer
    from cairn._tabular import FeaturesLike

    OptimizerLike = Union[str, Callable[[float], Optimizer]]

T = TypeVar("T", bound="_Tabular")


class _Tabular(Estimator):
    """What both have in common."""

    n_features_in_: int
    feature_names_in_: NDArray
    history_: dict[str, list[float]]
    _plan: Plan
    _learned: Learned

    if TYPE_CHECKING:
        features: FeaturesLike
        layers: Sequence[int]
        activation: str
        dropout: float
        embedding_dim: int
        bins: int
        optimizer: OptimizerLike
        learning_rate: float
        epochs: int | None
        batch_size: int | None
        early_stopping: bool
        validation_fraction: float
        patience: int
        strategy: StrategyLike
        ps: int | None
        workers: int | None
        random_state: Any
        verbose: int

    def fit(
        self: T,
        X: TableLike,
        y: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        eval_set: tuple[Any, ...] | list[tuple[Any, ...]] | None = None,
    ) -> T:
        """Learns from a table or an array.

        X: a DataFrame, whatever has ``__arrow_c_stream__``, a dict of columns, or an array [examples, features].
        y: what is to be predicted, or the name of its column in X. sample_weight: one number for each example.
        eval_set: (X, y) or (X, y, sample_weight) to judge by after each epoch, or a list of one such tuple.
        """
        options = self._options()
        vars(self).pop("_learned", None)  # a fit() that fails leaves nothing that could predict
        rows, y = read(X, y, self.features is not None, _left(self.features))
        target = conventions.target_of(y, len(rows.table), type(self).__name__)
        task, examples = self._task(target, rows, conventions.weights_of(sample_weight, len(rows.table)))
        plan = plan_of(rows, self.features, options["bins"])
        judged = self._judged(plan, eval_set)
        learned = learn(plan, task, Options(**{k: v for k, v in options.items() if k != "bins"}), examples, judged)
        self._plan, self._learned, self.history_ = plan, learned, learned.history
        self.n_features_in_ = len(rows.columns)
        vars(self).pop("feature_names_in_", None)
        if rows.named:
            self.feature_names_in_ = np.array(rows.columns, object)
        return self

    def _options(self) -> dict[str, Any]:
        """The parameters, which are looked at here alone."""
        given = {name: getattr(self, name) for name in self._get_param_names() if name in CHECKED}
        for name, value in given.items():
            given[name] = CHECKED[name](name, value)
        return {**given, "optimizer": self.optimizer, "strategy": self.strategy, "seed": conventions.seed_of(self.random_state)}

    def _judged(self, plan: Plan, eval_set: Any) -> Examples | None:
        if eval_set is None:
            return None
        if isinstance(eval_set, list):
            if len(eval_set) != 1:
                raise InvalidArgumentError(f"eval_set has {len(eval_set)} sets: give one")
            eval_set = eval_set[0]
        if not isinstance(eval_set, tuple) or len(eval_set) not in (2, 3):
            raise TypeError("eval_set is (X, y) or (X, y, sample_weight), or a list of one such tuple")
        rows, y = plan.layout.read(*eval_set[:2])
        table = plan.layout.take(rows, plan.used, type(self).__name__)
        target = self._coded(conventions.target_of(y, len(table), type(self).__name__))
        return Examples(table, target, conventions.weights_of(eval_set[2] if len(eval_set) == 3 else None, len(table)))

    def _task(self, target: NDArray, rows: Rows, weights: NDArray | None) -> tuple[Task, Examples]:
        raise NotImplementedError

    def _coded(self, target: NDArray) -> NDArray:
        raise NotImplementedError

    def _read(self, X: Any, y: Any = None) -> tuple[Rows, Any]:
        self._require_fit()
        return self._plan.layout.read(X, y)

    def _outputs(self, rows: Rows, output: str) -> NDArray:
        table = self._plan.layout.take(rows, self._plan.used, type(self).__name__)
        return self._learned.saved.predict(self._plan.dataset(table), len(table), output)

    def _true(self, y: Any, count: int) -> NDArray:
        """What score() compares with."""
        return conventions.target_of(y, count, type(self).__name__)

    def save(self, folder: str) -> str:
        """Writes the model into a folder, which ``cairn.load_model()`` and ``cairn predict`` take."""
        self._require_fit()
        os.makedirs(folder, exist_ok=False)
        self._learned.saved.write(folder)
        return folder


def _left(features: Any) -> list[str]:
    """The columns that are not even read."""
    return [name for name, each in features.items() if each is None] if isinstance(features, Mapping) else []


class Classifier(_Tabular):
    """A model of tables that predicts a class, by scikit-learn's conventions.

    >>> table = {"age": [23, 61, 35, 54], "city": ["Ulm", "Bonn", "Ulm", "Bonn"]}
    >>> model = cairn.Classifier(random_state=0).fit(table, ["no", "yes", "no", "yes"])
    >>> model.predict({"age": [58], "city": ["Bonn"]})
    array(['yes'], dtype='<U3')
    >>> model.predict_proba(table).shape
    (4, 2)

    Args:
        features: what becomes of a column, by its name: ``"numeric"``, ``"category"``, ``"words"``, None (it is left out),
            a :class:`cairn.FeatureColumn`, or a list of them. A name that no column has adds a FeatureColumn, such as a cross.
            By default numbers are numeric, texts, categories and lists are embedded.
        layers: the widths of the dense layers.
        activation: theirs.
        dropout: the share of their outputs that a step of training leaves out.
        embedding_dim: how many numbers a category becomes.
        bins: into how many quantile bins a number is put beside its own value; 0: none.
        optimizer: its name, or a class of ``cairn.optimizers``, called with the learning rate.
        learning_rate: of the optimizer.
        epochs: passes over the data; None: as many as make 1,000 steps, but 5 to 100.
        batch_size: examples of a step; None: 16 to 1024, by the number of examples.
        early_stopping: whether training ends when the loss on ``eval_set``, or on a part of the data that is held back,
            gets no better; the weights are those of the best epoch.
        validation_fraction: that part.
        patience: how many epochs may pass without a better one.
        strategy: where it trains: ``"one_device"``, ``"mirrored"``, ``"central_storage"``, ``"parameter_server"``, or a
            Strategy. Servers run while fit() does.
        ps: parameter servers of ``"parameter_server"``, 2 by default.
        workers: workers of the same, 2 by default.
        random_state: the seed of initial weights and of the order of examples; None: another one each time.
        verbose: 0 is silent, 2 writes a line for each epoch, 1 also shows how far it has come.
        class_weight: a weight for each class by its label, or ``"balanced"``: by how rare it is.

    Attributes:
        n_features_in_: how many features fit() was given.
        feature_names_in_: their names, if the data had names.
        history_: the loss of each epoch, and those on ``eval_set``.
        classes_: the classes, in the order of predict_proba()'s columns.
    """

    _kind = "classifier"
    classes_: NDArray

    def __init__(
        self,
        *,
        features: FeaturesLike = None,
        layers: Sequence[int] = (64, 32),
        activation: str = "relu",
        dropout: float = 0.0,
        embedding_dim: int = 8,
        bins: int = 16,
        optimizer: OptimizerLike = "lazy_adam",
        learning_rate: float = 0.001,
        epochs: int | None = None,
        batch_size: int | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 3,
        class_weight: Mapping[Any, float] | str | None = None,
        strategy: StrategyLike = None,
        ps: int | None = None,
        workers: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.layers = layers
        self.activation = activation
        self.dropout = dropout
        self.embedding_dim = embedding_dim
        self.bins = bins
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.class_weight = class_weight
        self.strategy = strategy
        self.ps = ps
        self.workers = workers
        self.random_state = random_state
        self.verbose = verbose

    def _task(self, target: NDArray, rows: Rows, weights: NDArray | None) -> tuple[Task, Examples]:
        self.classes_, codes = conventions.classes_of(target)
        count = len(self.classes_)
        by_class = self._class_weights(codes)
        if by_class is not None:
            weights = conventions.weights_of(by_class[codes] * (1.0 if weights is None else weights), len(codes))
        metadata = {"estimator": "Classifier", "classes": [str(each) for each in self.classes_]}
        if count == 2:
            task = Task(1, BinaryCrossentropy(from_logits=True), ["accuracy", "auc"], "probability", _cairn.sigmoid, metadata)
        else:
            loss = SparseCategoricalCrossentropy(from_logits=True)
            task = Task(count, loss, ["accuracy"], "probability", _cairn.softmax, metadata)
        return task, Examples(rows.table, self._numbered(codes), weights)

    def _numbered(self, codes: NDArray) -> NDArray:
        return codes.astype("float32" if len(self.classes_) == 2 else "int64")

    def _coded(self, target: NDArray) -> NDArray:
        places = np.searchsorted(self.classes_, target).clip(0, len(self.classes_) - 1)
        unknown = self.classes_[places] != target
        if unknown.any():
            raise InvalidArgumentError(f"eval_set has the class {target[unknown].tolist()[0]!r}, which y has not")
        return self._numbered(places)

    def _class_weights(self, codes: NDArray) -> NDArray | None:
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise InvalidArgumentError(f'class_weight is a dict, "balanced" or None, not {self.class_weight!r}')
            counts = np.bincount(codes, minlength=len(self.classes_))
            return np.asarray(len(codes) / (len(counts) * counts))
        unknown = [label for label in self.class_weight if label not in self.classes_]
        if unknown:
            raise InvalidArgumentError(f"class_weight names the class {unknown[0]!r}, which y has not")
        return np.array([float(self.class_weight.get(label, 1.0)) for label in self.classes_.tolist()])

    def predict_proba(self, X: TableLike) -> NDArray:
        """The probability of each class, [examples, classes], in the order of ``classes_``."""
        return self._probabilities(self._read(X)[0])

    def _probabilities(self, rows: Rows) -> NDArray:
        made = self._outputs(rows, "probability").astype("float64")
        if len(self.classes_) == 2:
            return np.hstack([1 - made, made])
        return np.asarray(made / made.sum(1, keepdims=True))

    def predict(self, X: TableLike) -> NDArray:
        """The likeliest class of each example."""
        return self._likeliest(self._read(X)[0])

    def _likeliest(self, rows: Rows) -> NDArray:
        best = self._probabilities(rows).argmax(1)
        return np.asarray(self.classes_[best])

    def score(self, X: TableLike, y: ArrayLike | str, sample_weight: ArrayLike | None = None) -> float:
        """The share of examples whose class is predicted."""
        rows, y = self._read(X, y)
        made = self._likeliest(rows)
        return float(np.average(made == self._true(y, len(made)), weights=conventions.weights_of(sample_weight, len(made))))


class Regressor(_Tabular):
    """A model of tables that predicts a number, by scikit-learn's conventions.

    >>> rooms = np.arange(40) % 5 + 1
    >>> model = cairn.Regressor(random_state=0).fit({"rooms": rooms}, 100.0 * rooms)
    >>> bool(abs(model.predict({"rooms": [3]})[0] - 300) < 30)
    True

    It has the parameters and the attributes of a :class:`Classifier` but for ``class_weight`` and ``classes_``.

    Args:
        loss: ``"mse"``, ``"mae"``, ``"huber"``, or another name or object of ``cairn.losses``, of y divided by its
            deviation.
    """

    _kind = "regressor"

    def __init__(
        self,
        *,
        features: FeaturesLike = None,
        layers: Sequence[int] = (64, 32),
        activation: str = "relu",
        dropout: float = 0.0,
        embedding_dim: int = 8,
        bins: int = 16,
        loss: Any = "mse",
        optimizer: OptimizerLike = "lazy_adam",
        learning_rate: float = 0.001,
        epochs: int | None = None,
        batch_size: int | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 3,
        strategy: StrategyLike = None,
        ps: int | None = None,
        workers: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.layers = layers
        self.activation = activation
        self.dropout = dropout
        self.embedding_dim = embedding_dim
        self.bins = bins
        self.loss = loss
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.strategy = strategy
        self.ps = ps
        self.workers = workers
        self.random_state = random_state
        self.verbose = verbose

    def _task(self, target: NDArray, rows: Rows, weights: NDArray | None) -> tuple[Task, Examples]:
        numbers = conventions.numbers_of(target)
        mean, stddev = float(np.average(numbers, weights=weights)), float(numbers.std())
        self._scale = mean, stddev if stddev > 0 else 1.0

        def finish(output: Array) -> Array:
            return output * self._scale[1] + mean

        task = Task(1, self.loss, [], "prediction", finish, {"estimator": "Regressor"})
        return task, Examples(rows.table, self._coded(target), weights)

    def _coded(self, target: NDArray) -> NDArray:
        return ((conventions.numbers_of(target) - self._scale[0]) / self._scale[1]).astype("float32")

    def predict(self, X: TableLike) -> NDArray:
        """A number for each example."""
        return self._predicted(self._read(X)[0])

    def _predicted(self, rows: Rows) -> NDArray:
        return self._outputs(rows, "prediction")[:, 0].astype("float64")

    def score(self, X: TableLike, y: ArrayLike | str, sample_weight: ArrayLike | None = None) -> float:
        """R squared: 1 is perfect, and 0 what the mean of y would have."""
        rows, y = self._read(X, y)
        made = self._predicted(rows)
        true = conventions.numbers_of(self._true(y, len(made)))
        weights = conventions.weights_of(sample_weight, len(made))
        total = np.average((true - np.average(true, weights=weights)) ** 2, weights=weights)
        missed = np.average((true - made) ** 2, weights=weights)
        return float(1 - missed / total) if total > 0 else float(missed == 0)
