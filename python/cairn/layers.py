"""Layers that are written in Python and own variables."""

from __future__ import annotations

from typing import Any, ClassVar

from cairn._cairn import Array, Variable
from cairn._cairn import nn as _nn
from cairn.typing import DTypeLike, InitializerLike, RegularizerLike, ShapeLike


def _snake_case(name: str) -> str:
    text = ""
    for letter in name:
        text += ("_" if letter.isupper() and text and text[-1] != "_" else "") + letter.lower()
    return text


class Layer:
    """The base of a layer of your own that learns something.

    ``build`` makes the variables by ``add_weight``, when the layer is first called in a scope;
    ``call`` is what it computes. A layer without variables needs no class: it is a function.

    >>> class Scale(cairn.Layer):
    ...     def build(self, x):
    ...         self.scale = self.add_weight("scale", (x.shape[-1],), initializer="ones")
    ...     def call(self, x):
    ...         return x * self.scale
    >>> layer = Scale()
    >>> layer([[1.0, 2.0]]).numpy()
    array([[1., 2.]], dtype=float32)
    >>> [v.name for v in layer.variables]
    ['scale/scale']
    """

    #: What a model calls it, where it was given no name; by default the class's, as "my_layer".
    kind: ClassVar[str] = ""

    def __init__(self, name: str = "") -> None:
        self._start(name)

    def _start(self, name: str) -> None:
        kind = self.kind or _snake_case(type(self).__name__)
        self._layer_name = _nn._LayerName(name, kind)
        self._sets: dict[int, dict[str, Any]] = {}
        self._own: list[Variable] = []
        self._regularized: list[tuple[Variable, RegularizerLike]] = []
        self._scope: int | None = None

    @property
    def name(self) -> str:
        """As it was given, or as its model calls it."""
        self._require_start()
        return self._layer_name.get()

    def build(self, *inputs: Array) -> None:
        """Makes the variables, by :meth:`add_weight`; called once in each scope, with the inputs."""

    def call(self, *inputs: Any) -> Any:
        """What the layer computes."""
        raise NotImplementedError(f"{type(self).__name__} has no call(): it says what the layer computes")

    def add_weight(
        self,
        name: str,
        shape: ShapeLike = (),
        initializer: InitializerLike = "glorot_uniform",
        *,
        dtype: DTypeLike = "float32",
        trainable: bool = True,
        regularizer: RegularizerLike = None,
        seed: int = 0,
    ) -> Variable:
        """A variable of the layer, called LAYER/NAME."""
        made = _nn._add_weight(f"{self.name}/{name}", shape, initializer, dtype, trainable, seed)
        self._own.append(made)
        if regularizer is not None:
            self._regularized.append((made, regularizer))
        return made

    @property
    def variables(self) -> list[Variable]:
        """Those of the scope that is open, and of the layers that it has as attributes."""
        self._require_start()
        self._enter()
        found = list(self._own)
        for value in list(vars(self).values()):
            for each in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(each, (Layer, _nn.Layer)):
                    found += each.variables
        names: dict[str, Variable] = {each.name: each for each in found}
        return list(names.values())

    def __call__(self, *inputs: Any) -> Any:
        self._require_start()
        arrays = [each if isinstance(each, Array) or not _is_value(each) else Array(each) for each in inputs]
        if not self._enter():
            before = dict(vars(self))
            self.build(*arrays)
            changed = {k: v for k, v in vars(self).items() if k not in _OWN and before.get(k, _OWN) is not v}
            assert self._scope is not None
            self._sets[self._scope] = {**changed, "_own": self._own, "_regularized": self._regularized}
        for variable, regularizer in self._regularized:
            _nn._add_weight_loss(variable, regularizer)
        return self.call(*arrays)

    def _enter(self) -> bool:
        """Takes the attributes that build() made in the scope that is open; False: it has none yet."""
        scope = _nn._scope_key()
        known = self._sets.get(scope)
        if scope != self._scope or known is None:
            self._scope = scope
            self._own, self._regularized = [], []
            vars(self).update(known or {})
        return known is not None

    def _require_start(self) -> None:
        if "_sets" not in vars(self):
            self._start("")

    def __repr__(self) -> str:
        return f'<{type(self).__qualname__} "{self.name}">'


_OWN = {"_sets", "_own", "_regularized", "_scope", "_layer_name"}


def _is_value(x: Any) -> bool:
    """Whether an input is an array, and no mapping of features or list of several."""
    if isinstance(x, list):
        return not any(isinstance(each, (Array, Variable)) for each in x)
    return isinstance(x, (int, float, Variable)) or hasattr(x, "__array__")
