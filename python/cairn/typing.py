"""What arguments may be, for annotations."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Union

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from cairn import Array, Dataset, Loss, Strategy, Variable
    from cairn import nn

    class _HasArray(Protocol):
        def __array__(self) -> npt.NDArray[Any]: ...

    class _HasArrowStream(Protocol):
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

    #: An Array, a Variable, a NumPy array or whatever gives one, a number, a text, or lists of such.
    ArrayLike = Union[Array, Variable, npt.ArrayLike, _HasArray]
    NDArray = npt.NDArray[Any]
    UFunc = np.ufunc
    #: "float32", NumPy's dtype, or float, int, bool, str.
    DTypeLike = Union[str, "np.dtype[Any]", type]
    #: The name of an activation, or a function of an array; None: linear.
    ActivationLike = Union[str, Callable[[Array], Array], None]
    #: A name, an Initializer, a value, or a function of (fan_in, fan_out, seed); None: the default.
    InitializerLike = Union[str, nn.Initializer, ArrayLike, Callable[[int, int, int], Any], None]
    #: "l1", "l2", "l1_l2", a Regularizer, or a function of an array; None: none.
    RegularizerLike = Union[str, nn.Regularizer, Callable[[Array], Array], None]
    #: A layer, the name of an activation, or a function of an array.
    LayerLike = Union[nn.Layer, str, Callable[[Array], Array]]
    #: Ids of examples: an array, or bags.
    IdsLike = Union[nn.Ids, ArrayLike]
    #: A number, a schedule, or a function of the step.
    LearningRateLike = Union[float, nn.LearningRateSchedule, Callable[[Array], Array]]
    #: A loss: its name, an object, or a function of prediction and label; None: none.
    LossLike = Union[str, Loss, Callable[[Array, Array], Array], None]
    #: A metric: its name, an object, or a function of prediction and label.
    MetricLike = Union[str, nn.Metric, Callable[[Array, Array], Array]]
    #: Several of them, or of several outputs such lists by name.
    MetricsLike = Union[Sequence[MetricLike], Mapping[str, Sequence[MetricLike]], None]
    #: What estimators learn from: a table, a dict of columns, or an array [examples, features].
    TableLike = Union[_HasArrowStream, Mapping[str, Any], ArrayLike]
    #: A Strategy, its name, or None: that of the scope.
    StrategyLike = Union[str, Strategy, None]
    #: Features: an array, arrays by name, or a Dataset.
    DataLike = Union[Dataset, ArrayLike, Mapping[str, ArrayLike]]
    #: Labels: an array, or arrays by the names of outputs.
    LabelsLike = Union[ArrayLike, Mapping[str, ArrayLike], None]
else:
    ArrayLike = Any
    DTypeLike = Any
    NDArray = Any
    UFunc = Any
    ActivationLike = InitializerLike = RegularizerLike = Any
    LayerLike = IdsLike = LearningRateLike = LossLike = MetricLike = MetricsLike = Any
    DataLike = LabelsLike = StrategyLike = TableLike = Any

#: Sizes of axes; None: not known.
ShapeLike = Union[int, Sequence[Union[int, None]]]
#: What stands in x[...].
Subscript = Union[int, slice, None, types.EllipsisType, Sequence[bool]]
Subscripts = Union[Subscript, tuple[Subscript, ...]]
