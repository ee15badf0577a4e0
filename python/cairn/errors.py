"""Cairn's errors: a class for each code, below :class:`Error`.

A class is Python's own as well where that means the same, so that ``except ValueError`` does what
it says.
"""

from __future__ import annotations

from cairn import _cairn


class Error(Exception):
    """Whatever Cairn raises.

    Attributes:
        code: the canonical name of what went wrong, such as ``"InvalidArgument"``.
        task: the process that met it, such as ``"/job:worker/task:0"``; empty: this one.
        origin: the line of the operation that met it, ``"/home/me/train.py:31"``, where known.

    >>> try:
    ...     cairn.matmul([[1.0]], [[1.0], [2.0]])
    ... except cairn.Error as error:
    ...     print(error.code, isinstance(error, ValueError))
    InvalidArgument True
    """

    code: str = "Unknown"
    task: str = ""
    origin: str = ""


class CancelledError(Error):
    """It was given up: another closure failed first, or the session ended."""


class UnknownError(Error):
    """A foreign error, or the code of a newer peer."""


class InvalidArgumentError(Error, ValueError):
    """The arguments are wrong, whatever the state."""


class DeadlineExceededError(Error, TimeoutError):
    """The time ran out."""


class NotFoundError(Error, FileNotFoundError):
    """A name leads to nothing: a file, a variable, a checkpoint."""

    __init__ = Exception.__init__
    __str__ = Exception.__str__


class AlreadyExistsError(Error):
    """Something is there that must not be replaced."""


class PermissionDeniedError(Error, PermissionError):
    """The system refuses it to this user."""


class ResourceExhaustedError(Error):
    """A bound was reached: memory, disk, open files, a queue."""


class FailedPreconditionError(Error, RuntimeError):
    """The arguments are fine and the state is not."""


class AbortedError(Error):
    """It conflicted with something that happened meanwhile."""


class OutOfRangeError(Error, EOFError):
    """Beyond the end of something finite, such as a dataset."""


class UnimplementedError(Error, NotImplementedError):
    """A newer format, or something that this build does not serve."""


class InternalError(Error):
    """A promise that Cairn's own code makes to itself is broken: a bug."""


class UnavailableError(Error, ConnectionError):
    """Not there at the moment."""


class DataLossError(Error):
    """Stored or transmitted bytes are damaged."""


class UnauthenticatedError(Error):
    """The peer does not prove who it is."""


class NotFiniteError(InvalidArgumentError):
    """A checked value, such as a step's loss, was NaN or infinite."""


class ClosureInputError(Error):
    """A closure's dataset could not give it its elements; ``code`` is the dataset's own.

    Attributes:
        pipeline: the number of the input pipeline that failed.
    """

    pipeline: int = 0


_cairn._set_error_classes(
    {
        1: CancelledError,
        2: UnknownError,
        3: InvalidArgumentError,
        4: DeadlineExceededError,
        5: NotFoundError,
        6: AlreadyExistsError,
        7: PermissionDeniedError,
        8: ResourceExhaustedError,
        9: FailedPreconditionError,
        10: AbortedError,
        11: OutOfRangeError,
        12: UnimplementedError,
        13: InternalError,
        14: UnavailableError,
        15: DataLossError,
        16: UnauthenticatedError,
    },
    NotFiniteError,
    ClosureInputError,
)
