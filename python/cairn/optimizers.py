"""Optimizers by the names that Keras has for them."""

from __future__ import annotations

from cairn._cairn import Optimizer as Optimizer


def _class(kind: str, name: str, text: str) -> type[Optimizer]:
    def __init__(self: Optimizer, learning_rate: float | None = None, **arguments: float) -> None:
        Optimizer.__init__(self, kind, learning_rate, **arguments)

    return type(name, (Optimizer,), {"__init__": __init__, "__doc__": text, "__module__": __name__})


SGD = _class("sgd", "SGD", "Gradient descent, with `momentum` and `nesterov`.")
Adam = _class("adam", "Adam", "Kingma and Ba, arXiv:1412.6980: `beta_1`, `beta_2`, `epsilon`, `amsgrad`.")
RMSprop = _class("rmsprop", "RMSprop", "Divides by a running mean of squares: `rho`, `momentum`, `epsilon`, `centered`.")
Adagrad = _class("adagrad", "Adagrad", "Divides by the root of all squares: `initial_accumulator_value`, `epsilon`.")
Adadelta = _class("adadelta", "Adadelta", "Zeiler, arXiv:1212.5701: `rho`, `epsilon`.")
Adamax = _class("adamax", "Adamax", "Adam by the largest gradient: `beta_1`, `beta_2`, `epsilon`.")
Nadam = _class("nadam", "Nadam", "Adam with Nesterov's momentum: `beta_1`, `beta_2`, `epsilon`.")
Ftrl = _class("ftrl", "Ftrl", "McMahan et al., KDD 2013: `l1_regularization_strength` and its kin.")
Lion = _class("lion", "Lion", "Chen et al., arXiv:2302.06675: `beta_1`, `beta_2`.")
LazyAdam = _class("lazy_adam", "LazyAdam", "Adam that leaves rows without a gradient as they are.")
RowwiseAdagrad = _class("rowwise_adagrad", "RowwiseAdagrad", "Adagrad with one number for each row.")
