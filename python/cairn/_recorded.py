"""Where in a function that is recorded something is wrong, for the module's errors."""

from __future__ import annotations

import dis
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any


def _code(function: Any) -> CodeType | None:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__code__"):
        function = getattr(type(function), "__call__", None)
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None


def line_that_returns(function: Callable[..., Any]) -> str:
    """"train.py:31, in step: " for its only line that returns, else for the line that it begins at."""
    code = _code(function)
    if code is None:
        return ""
    lines = {begin: line for begin, _, line in code.co_lines() if line is not None}
    returning: set[int] = set()
    line = code.co_firstlineno
    for each in dis.get_instructions(code):
        line = lines.get(each.offset, line)
        if each.opname.startswith("RETURN_") and each.opname != "RETURN_GENERATOR":
            returning.add(line)
    only = returning.pop() if len(returning) == 1 else code.co_firstlineno
    return f"{os.path.basename(code.co_filename)}:{only}, in {code.co_name}: "


def _paths(value: Any, path: str) -> Iterator[str]:
    """The way to each leaf of a nest, as the module takes it apart."""
    if value is None or isinstance(value, (str, bytes)):
        return
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _paths(each, f"{path}/{key}")
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            yield from _paths(each, f"{path}/{i}")
    else:
        yield path


def path_of(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], leaf: int) -> str:
    """"x/a/0": the parameter, and the way to that leaf within it."""
    names: list[str] = []
    try:
        for each in inspect.signature(function).parameters.values():
            many = each.kind is inspect.Parameter.VAR_POSITIONAL
            names += [f"{each.name}[{i}]" for i in range(len(args))] if many else [each.name]
    except (TypeError, ValueError):
        pass
    names += [str(i) for i in range(len(names), len(args))]
    given = [*zip(names, args), *kwargs.items()]
    return [path for name, value in given for path in _paths(value, name)][leaf]
