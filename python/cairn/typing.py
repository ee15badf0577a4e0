"""What arguments may be, for annotations."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Union

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from cairn import Array, Variable

    class _HasArray(Protocol):
        def __array__(self) -> npt.NDArray[Any]: ...

    #: An Array, a Variable, a NumPy array or whatever gives one, a number, a text, or lists of such.
    ArrayLike = Union[Array, Variable, npt.ArrayLike, _HasArray]
    NDArray = npt.NDArray[Any]
    UFunc = np.ufunc
    #: "float32", NumPy's dtype, or float, int, bool, str.
    DTypeLike = Union[str, "np.dtype[Any]", type]
else:
    ArrayLike = Any
    DTypeLike = Any
    NDArray = Any
    UFunc = Any

#: Sizes of axes; None: not known.
ShapeLike = Union[int, Sequence[Union[int, None]]]
#: What stands in x[...].
Subscript = Union[int, slice, None, types.EllipsisType, Sequence[bool]]
Subscripts = Union[Subscript, tuple[Subscript, ...]]
