"""Optimizers and schedules by the names that Keras has for them.

A learning rate is a number, a schedule, or a function of the step.

>>> optimizer = cairn.optimizers.Adam(cairn.optimizers.schedules.CosineDecay(0.01, decay_steps=1000))
"""

from __future__ import annotations

from cairn import schedules as schedules
from cairn._cairn import CustomOptimizer as CustomOptimizer
from cairn._cairn import Optimizer as Optimizer
from cairn.typing import LearningRateLike


class SGD(Optimizer):
    """Gradient descent, with momentum where asked for.

    >>> optimizer = cairn.optimizers.SGD(0.01, clipnorm=1.0)
    """

    def __init__(
        self,
        learning_rate: LearningRateLike = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        api: str = "legacy",
        name: str = "",
    ) -> None:
        super().__init__(
            "sgd",
            learning_rate,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            api=api,
            name=name,
            momentum=momentum,
            nesterov=nesterov,
        )


class Adam(Optimizer):
    """Kingma and Ba, arXiv:1412.6980. Every row of a table changes at every step: see LazyAdam.

    >>> optimizer = cairn.optimizers.Adam(0.01, clipnorm=1.0)
    """

    def __init__(
        self,
        learning_rate: LearningRateLike = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        api: str = "legacy",
        name: str = "",
    ) -> None:
        super().__init__(
            "adam",
            learning_rate,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            api=api,
            name=name,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            amsgrad=amsgrad,
        )


class LazyAdam(Optimizer):
    """Adam on the rows that a step names; the others stay as they are.

    >>> optimizer = cairn.optimizers.LazyAdam(0.01, clipnorm=1.0)
    """

    def __init__(
        self,
        learning_rate: LearningRateLike = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        api: str = "legacy",
        name: str = "",
    ) -> None:
        super().__init__(
            "lazy_adam",
            learning_rate,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            api=api,
            name=name,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
        )


class RMSprop(Optimizer):
    """Divides by the root of a running mean of squares.

    >>> optimizer = cairn.optimizers.RMSprop(0.01, clipnorm=1.0)
    """

    def __init__(
        self,
        learning_rate: LearningRateLike = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        api: str = "legacy",
        name: str = "",
    ) -> None:
        super().__init__(
            "rmsprop",
            learning_rate,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            api=api,
            name=name,
            rho=rho,
            momentum=momentum,
            epsilon=epsilon,
            centered=centered,
        )


class Adagrad(Optimizer):
    """Divides by the root of the sum of all squares.

    >>> optimizer = cairn.optimizers.Adagrad(0.01, clipnorm=1.0)
    """

    def __init__(
        self,
        learning_rate: LearningRateLike = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        api: str = "legacy",
        name: str = "",
    ) -> None:
        super().__init__(
            "adagrad",
            learning_rate,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            api=api,
            name=name,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=epsilon,
        )


class RowwiseAdagrad(Optimizer):
    """Adagrad with one number for each row, for embedding tables.

    >>> optimizer = cairn.optimizers.RowwiseAdagrad(0.01, clipnorm=1.0)
    """

    def __init__(
        self,
        learning_rate: LearningRateLike = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        api: str = "legacy",
        name: str = "",
    ) -> None:
        super().__init__(
            "rowwise_adagrad",
            learning_rate,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            api=api,
            name=name,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=epsilon,
        )


class Adadelta(Optimizer):
    """Zeiler, arXiv:1212.5701.

    >>> optimizer = cairn.optimizers.Adadelta(0.01, clipnorm=1.0)
    """

    def __init__(
        self,
        learning_rate: LearningRateLike = 0.001,
        rho: float = 0.95,
        epsilon: float = 1e-7,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        api: str = "legacy",
        name: str = "",
    ) -> None:
        super().__init__(
            "adadelta",
            learning_rate,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            api=api,
            name=name,
            rho=rho,
            epsilon=epsilon,
        )


class Adamax(Optimizer):
    """Adam by the largest gradient so far.

    >>> optimizer = cairn.optimizers.Adamax(0.01, clipnorm=1.0)
    """

    def __init__(
        self,
        learning_rate: LearningRateLike = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        api: str = "legacy",
        name: str = "",
    ) -> None:
        super().__init__(
            "adamax",
            learning_rate,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            api=api,
            name=name,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
        )


class Nadam(Optimizer):
    """Adam with Nesterov's momentum.

    >>> optimizer = cairn.optimizers.Nadam(0.01, clipnorm=1.0)
    """

    def __init__(
        self,
        learning_rate: LearningRateLike = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        schedule_decay: float = 0.004,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        api: str = "legacy",
        name: str = "",
    ) -> None:
        super().__init__(
            "nadam",
            learning_rate,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            api=api,
            name=name,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            schedule_decay=schedule_decay,
        )


class Ftrl(Optimizer):
    """FTRL-proximal: L1 makes parameters exactly 0 (McMahan et al., KDD 2013).

    >>> optimizer = cairn.optimizers.Ftrl(0.01, clipnorm=1.0)
    """

    def __init__(
        self,
        learning_rate: LearningRateLike = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        api: str = "legacy",
        name: str = "",
    ) -> None:
        super().__init__(
            "ftrl",
            learning_rate,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            api=api,
            name=name,
            learning_rate_power=learning_rate_power,
            initial_accumulator_value=initial_accumulator_value,
            l1=l1_regularization_strength,
            l2=l2_regularization_strength,
            l2_shrinkage=l2_shrinkage_regularization_strength,
            beta=beta,
        )


class Lion(Optimizer):
    """Steps of one size, by the sign of a moving average (arXiv:2302.06675).

    >>> optimizer = cairn.optimizers.Lion(0.01, clipnorm=1.0)
    """

    def __init__(
        self,
        learning_rate: LearningRateLike = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.99,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        api: str = "legacy",
        name: str = "",
    ) -> None:
        super().__init__(
            "lion",
            learning_rate,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            api=api,
            name=name,
            beta_1=beta_1,
            beta_2=beta_2,
        )
