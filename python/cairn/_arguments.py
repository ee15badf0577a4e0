"""What is wrong with the arguments of a call, in one sentence.

The module asks here when none of a function's signatures fits a call.
"""

from __future__ import annotations

import ast
import difflib
import functools
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cairn import _cairn

_WORDS = {"int": "an int", "float": "a number", "bool": "True or False", "str": "a str", "bytes": "bytes"}
_KINDS = {"DTypeLike": "a dtype", "IdsLike": "ids", "DataLike": "an array, a table or a Dataset", "LabelsLike": "labels", "MetricsLike": "a list of metrics"}
_MANY = {"int": "ints", "float": "numbers", "bool": "bools", "str": "strs"}
_SEQUENCES = ("Sequence", "Iterable", "list")
HOLE = "\0"


class Problem(NamedTuple):
    """What one signature says to a call."""

    progress: int  #: how much of the call it had taken; of several signatures the one that took most counts
    text: str  #: with HOLE where what all such signatures want is told
    wanted: str = ""
    out_of_range: bool = False


class Parameters(NamedTuple):
    """A signature's parameters, without `self`."""

    by_place: list[ast.arg]
    by_name: list[ast.arg]
    needed: set[str]
    may_be_none: set[str]
    rest: bool
    rest_by_name: ast.arg | None


@functools.lru_cache(maxsize=None)
def _parameters(signature: str, is_method: bool) -> Parameters:
    text = re.sub(r"\\\d+", "...", signature).replace("def (", "def it(")
    definition = ast.parse(text + ": ...").body[0]
    assert isinstance(definition, ast.FunctionDef)
    of = definition.args
    by_place = of.posonlyargs + of.args
    needed = {each.arg for each in by_place[: len(by_place) - len(of.defaults)]}
    needed |= {each.arg for each, default in zip(of.kwonlyargs, of.kw_defaults) if default is None}
    by_default = list(zip(reversed(by_place), reversed(of.defaults))) + list(zip(of.kwonlyargs, of.kw_defaults))
    none = {each.arg for each, default in by_default if isinstance(default, ast.Constant) and default.value is None}
    return Parameters(by_place[1 if is_method else 0 :], of.kwonlyargs, needed, none, of.vararg is not None, of.kwarg)


# ---- what is wanted and what was given, in words ----


def _named(names: Iterable[str], last: str = "and") -> str:
    quoted = [f'"{each}"' for each in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"


def _or(parts: Iterable[str]) -> str:
    all_of = list(dict.fromkeys(parts))
    return all_of[0] if len(all_of) == 1 else f"{', '.join(all_of[:-1])} or {all_of[-1]}"


def _article(word: str) -> str:
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"


def _last_name(of: ast.expr) -> str:
    return of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""


def _alternatives(of: ast.expr) -> list[ast.expr]:
    if isinstance(of, ast.BinOp):
        return _alternatives(of.left) + _alternatives(of.right)
    return [of]


def _parts(of: ast.Subscript) -> list[ast.expr]:
    return of.slice.elts if isinstance(of.slice, ast.Tuple) else [of.slice]


def _many(of: ast.expr) -> str:
    return _or(_MANY.get(_last_name(each)) or _wanted(each).split(" ", 1)[-1] + "s" for each in _alternatives(of))


def _wanted(of: ast.expr | None) -> str:
    if of is None:
        return "another value"
    if isinstance(of, ast.BinOp):
        return _or(_wanted(each) for each in _alternatives(of))
    if isinstance(of, ast.Constant) and of.value is None:
        return "None"
    if isinstance(of, ast.Subscript):
        kind = _last_name(of.value)
        if kind in _SEQUENCES:
            return f"a list of {_many(_parts(of)[0])}"
        if kind in ("Mapping", "dict"):
            return f"a dict from {_many(_parts(of)[0])} to {_many(_parts(of)[1])}"
        if kind == "tuple":
            return f"a tuple of {len(_parts(of))}"
        return {"Callable": "a function", "PathLike": "a path"}.get(kind, _article(kind))
    name = _last_name(of)
    if name.endswith("Like"):
        return _KINDS.get(name) or _article(re.sub("(?<=.)(?=[A-Z])", " ", name.removesuffix("Like")).lower())
    return _WORDS.get(name) or _article(name)


def described(value: Any) -> str:
    """A value as errors name what was given: "3", "'text'", "None", "a Dense", "the class Dense"."""
    if isinstance(value, (str, bytes)):
        return repr(value) if len(value) <= 40 else f"{value[:37]!r}..."
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    if kind == "ndarray":
        return f"a NumPy array of {value.dtype}{list(value.shape)}"
    return _article(kind)


# ---- whether a value fits ----


def _class(name: str) -> Any:
    for module in (_cairn, _cairn.nn, _cairn._callbacks):
        found = getattr(module, name, None)
        if isinstance(found, type):
            return found
    return None


class _Unfit(NamedTuple):
    place: str  #: within the argument
    value: Any
    wanted: str
    out_of_range: bool = False


def _has(value: Any, name: str) -> bool:
    return hasattr(type(value), name)  # not of the object, which may run code of its own


def _index(value: Any) -> int | None:
    """The value as an int; None: it is none."""
    if isinstance(value, float) or not _has(value, "__index__"):
        return None
    try:
        return operator.index(value)
    except TypeError:  # of an array of several
        return None


def _unfit_int(value: Any) -> _Unfit | None:
    return _Unfit("", value, "an int") if _index(value) is None else None


def _unfit_float(value: Any) -> _Unfit | None:
    if _has(value, "__float__") or _has(value, "__index__"):
        try:
            float(value)
            return None
        except Exception:  # as it was converted
            pass
    return _Unfit("", value, "a number")


def _unfit_all(values: Iterable[tuple[str, Any]], of: ast.expr) -> _Unfit | None:
    for place, value in values:
        found = _unfit(of, value)
        if found is not None:
            return found._replace(place=place + found.place)
    return None


def _unfit_nest(of: ast.Subscript, value: Any) -> _Unfit | None:
    kind, parts = _last_name(of.value), _parts(of)
    if kind == "Callable":
        return None if callable(value) else _Unfit("", value, "a function")
    if kind == "PathLike":
        return None if _has(value, "__fspath__") else _Unfit("", value, "a path")
    if kind in ("Mapping", "dict"):
        if not isinstance(value, Mapping):
            return _Unfit("", value, _wanted(of))
        keys = _unfit_all(((" as a key", each) for each in value), parts[0])
        return keys or _unfit_all(((f" for {key!r}", each) for key, each in value.items()), parts[1])
    if kind not in (*_SEQUENCES, "tuple"):
        return None
    if isinstance(value, (str, bytes, Mapping)) or not (isinstance(value, Sequence) or _has(value, "__len__")):
        return _Unfit("", value, _wanted(of))
    try:
        value = list(value)
    except Exception:  # code of the object's own
        return _Unfit("", value, _wanted(of))
    if kind != "tuple" or (len(parts) == 2 and isinstance(parts[1], ast.Constant)):
        return _unfit_all(((f" at position {i}", each) for i, each in enumerate(value)), parts[0])
    if len(value) != len(parts):
        return _Unfit("", value, _wanted(of))
    for i, (part, each) in enumerate(zip(parts, value)):
        found = _unfit(part, each)
        if found is not None:
            return found._replace(place=f" at position {i}{found.place}")
    return None


def _unfit(of: ast.expr | None, value: Any) -> _Unfit | None:
    """Why the value is none of this type, as far as that can be told; None: it may be one."""
    if of is None:
        return None
    if isinstance(of, ast.BinOp):
        found = [_unfit(each, value) for each in _alternatives(of)]
        if None in found:
            return None
        deepest = max((each for each in found if each is not None), key=lambda each: len(each.place))
        return deepest if deepest.place else _Unfit("", value, _wanted(of))
    if isinstance(of, ast.Constant):
        return None if value is None else _Unfit("", value, "None")
    if isinstance(of, ast.Subscript):
        return _unfit_nest(of, value)
    name = _last_name(of)
    if value is None:
        return None if name in ("Any", "object", "") else _Unfit("", value, _wanted(of))
    if name == "int":
        return _unfit_int(value)
    if name == "float":
        return _unfit_float(value)
    if name in ("bool", "str", "bytes"):
        kind = {"bool": bool, "str": str, "bytes": bytes}[name]
        return None if isinstance(value, kind) else _Unfit("", value, _WORDS[name])
    known = _class(name)
    return None if known is None or isinstance(value, known) else _Unfit("", value, _article(name))


def _beyond(of: ast.expr | None, value: Any) -> str:
    """What is wrong with a number that is an int and does not fit the one of C++; empty: nothing is known."""
    number = _index(value)
    if of is None or number is None or "int" not in [_last_name(each) for each in _alternatives(of)]:
        return ""
    if number < 0:
        return f"is {number}, where a number of at least 0 is wanted"
    for bits in (64, 63, 32, 31):
        if number >= 2**bits:
            return f"is {number}, which is beyond the {bits + bits % 2} bits that it has"
    return ""


# ---- the call ----


def _arity(title: str, of: Parameters, args: Sequence[Any], named: Mapping[str, Any]) -> str:
    """What is wrong with the number and the names of the arguments; empty: nothing."""
    places, names = [each.arg for each in of.by_place], [each.arg for each in of.by_name]
    if len(args) > len(places) and not of.rest:
        takes = f"{title} takes {len(places) or 'no'} argument{'' if len(places) == 1 else 's'}"
        if names:
            return f"{takes} by their places, and {len(args)} are given: pass {_named(names, 'or')} by name"
        listed = f", {_named(places)}," if places else ""
        return f"{takes}{listed} and {len(args)} {'is' if len(args) == 1 else 'are'} given"
    for name in named:
        if name in places[: len(args)]:
            return f'{title}: the argument "{name}" is given twice, by its place and by its name'
        if name not in places + names and of.rest_by_name is None:
            near = difflib.get_close_matches(name, places + names, 1)
            known = f'did you mean "{near[0]}"?' if near else f"it takes {_named(places + names)}" if places + names else "it takes none"
            return f'{title} has no argument "{name}"; {known}'
    missing = [each for each in places[len(args) :] + names if each in of.needed and each not in named]
    if missing:
        return f"{title}: the argument{'s' if len(missing) > 1 else ''} {_named(missing)} {'are' if len(missing) > 1 else 'is'} missing"
    return ""


def _problem(title: str, of: Parameters, args: Sequence[Any], named: Mapping[str, Any]) -> Problem:
    wrong = _arity(title, of, args, named)
    if wrong:
        return Problem(0, wrong)
    types = {each.arg: each.annotation for each in of.by_place + of.by_name}
    rest = of.rest_by_name.annotation if of.rest_by_name is not None else None
    given = [(parameter.arg, value) for parameter, value in zip(of.by_place, args)] + list(named.items())
    for place, (name, value) in enumerate(given):
        unfit = None if value is None and name in of.may_be_none else _unfit(types.get(name, rest), value)
        if unfit is not None:
            argument = f'{title}: the argument "{name}"' if name else title
            has = f"has {described(unfit.value)}{unfit.place}" if unfit.place else f"is {described(unfit.value)}"
            return Problem(1 + place, f"{argument} {has}, where {HOLE} is wanted", unfit.wanted)
    for name, value in given:
        beyond = _beyond(types.get(name, rest), value)
        if beyond:
            return Problem(1 + len(given), f'{title}: the argument "{name}" {beyond}', out_of_range=True)
    all_of = ", ".join(described(value) for _, value in given)
    return Problem(1 + len(given), f"{title} does not take {all_of}: {HOLE} is wanted", ", ".join(_wanted(each) for each in types.values()))


def explain(title: str, signatures: Sequence[Sequence[Any]], is_method: bool, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[bool, str]:
    """The sentence, and whether a number was out of range. Of a method `args` lacks the object."""
    problems = [_problem(title, _parameters(signature[0], is_method), args, named) for signature in signatures]
    furthest = [each for each in problems if each.progress == max(each.progress for each in problems)]
    text = furthest[0].text
    alike = [each.wanted for each in furthest if each.text == text]
    return furthest[0].out_of_range, text.replace(HOLE, _or(alike)) if furthest[0].wanted else text
