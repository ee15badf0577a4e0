"""Losses by the names of their classes in Keras. As functions they are in :mod:`cairn.nn`.

>>> loss = cairn.losses.BinaryCrossentropy(from_logits=True)
>>> loss([0.0], [1.0]).numpy().round(4)
array([0.6931], dtype=float32)
"""

from __future__ import annotations

from cairn._cairn import Loss as Loss
from cairn._cairn.nn import loss_names as loss_names


class BinaryCrossentropy(Loss):
    """The binary cross entropy, of probabilities or of logits.

    >>> cairn.losses.BinaryCrossentropy()([0.5], [1.0]).shape
    (1,)
    """

    def __init__(self, from_logits: bool = False, label_smoothing: float = 0.0) -> None:
        super().__init__("binary_crossentropy", from_logits=from_logits, label_smoothing=label_smoothing)


class BinaryFocalCrossentropy(Loss):
    """The same, in which what is classified well counts less (ICCV 2017).

    >>> cairn.losses.BinaryFocalCrossentropy()([0.5], [1.0]).shape
    (1,)
    """

    def __init__(self, from_logits: bool = False, label_smoothing: float = 0.0) -> None:
        super().__init__("binary_focal_crossentropy", from_logits=from_logits, label_smoothing=label_smoothing)


class CategoricalCrossentropy(Loss):
    """The cross entropy of classes, for labels [b, c].

    >>> cairn.losses.CategoricalCrossentropy()([[0.5, 0.5]], [[1.0, 0.0]]).shape
    (1,)
    """

    def __init__(self, from_logits: bool = False, label_smoothing: float = 0.0) -> None:
        super().__init__("categorical_crossentropy", from_logits=from_logits, label_smoothing=label_smoothing)


class CategoricalFocalCrossentropy(Loss):
    """The same, in which what is classified well counts less.

    >>> cairn.losses.CategoricalFocalCrossentropy()([[0.5, 0.5]], [[1.0, 0.0]]).shape
    (1,)
    """

    def __init__(self, from_logits: bool = False, label_smoothing: float = 0.0) -> None:
        super().__init__("categorical_focal_crossentropy", from_logits=from_logits, label_smoothing=label_smoothing)


class SparseCategoricalCrossentropy(Loss):
    """The cross entropy of classes, for class ids.

    >>> cairn.losses.SparseCategoricalCrossentropy()([[0.5, 0.5]], [1]).shape
    (1,)
    """

    def __init__(self, from_logits: bool = False) -> None:
        super().__init__("sparse_categorical_crossentropy", from_logits=from_logits)


class Huber(Loss):
    """Half of the square up to ``delta``, and straight beyond.

    >>> cairn.losses.Huber()([0.5], [1.0]).shape
    (1,)
    """

    def __init__(self, delta: float = 1.0) -> None:
        super().__init__("huber", delta=delta)


class MeanSquaredError(Loss):
    """The mean of the squares of the errors.

    >>> cairn.losses.MeanSquaredError()([0.5], [1.0]).shape
    (1,)
    """

    def __init__(self) -> None:
        super().__init__("mean_squared_error")


class MeanAbsoluteError(Loss):
    """The mean of the absolute errors.

    >>> cairn.losses.MeanAbsoluteError()([0.5], [1.0]).shape
    (1,)
    """

    def __init__(self) -> None:
        super().__init__("mean_absolute_error")


class MeanAbsolutePercentageError(Loss):
    """100 times the error over the label.

    >>> cairn.losses.MeanAbsolutePercentageError()([0.5], [1.0]).shape
    (1,)
    """

    def __init__(self) -> None:
        super().__init__("mean_absolute_percentage_error")


class MeanSquaredLogarithmicError(Loss):
    """The square of the difference of the logarithms.

    >>> cairn.losses.MeanSquaredLogarithmicError()([0.5], [1.0]).shape
    (1,)
    """

    def __init__(self) -> None:
        super().__init__("mean_squared_logarithmic_error")


class LogCosh(Loss):
    """log(cosh(error)).

    >>> cairn.losses.LogCosh()([0.5], [1.0]).shape
    (1,)
    """

    def __init__(self) -> None:
        super().__init__("log_cosh")


class Poisson(Loss):
    """The negative log likelihood of counts.

    >>> cairn.losses.Poisson()([0.5], [1.0]).shape
    (1,)
    """

    def __init__(self) -> None:
        super().__init__("poisson")


class Hinge(Loss):
    """max(0, 1 - label * prediction).

    >>> cairn.losses.Hinge()([0.5], [1.0]).shape
    (1,)
    """

    def __init__(self) -> None:
        super().__init__("hinge")


class SquaredHinge(Loss):
    """The square of the hinge.

    >>> cairn.losses.SquaredHinge()([0.5], [1.0]).shape
    (1,)
    """

    def __init__(self) -> None:
        super().__init__("squared_hinge")


class CategoricalHinge(Loss):
    """How far the best wrong class comes up to the right one.

    >>> cairn.losses.CategoricalHinge()([[0.5, 0.5]], [[1.0, 0.0]]).shape
    (1,)
    """

    def __init__(self) -> None:
        super().__init__("categorical_hinge")


class KLDivergence(Loss):
    """The divergence of the prediction from the label.

    >>> cairn.losses.KLDivergence()([[0.5, 0.5]], [[1.0, 0.0]]).shape
    (1,)
    """

    def __init__(self) -> None:
        super().__init__("kl_divergence")


class CosineSimilarity(Loss):
    """The cosine of the angle, times -1.

    >>> cairn.losses.CosineSimilarity()([[1.0, 0.0]], [[1.0, 0.0]]).shape
    (1,)
    """

    def __init__(self) -> None:
        super().__init__("cosine_similarity")
