"""Each public class, function, field and value of C++ is bound, or python/not-bound.txt says why not.

A name is bound where the package has it as it is: a class with its members, a function, and the
fields of XOptions as parameters of X. python/bound-as.txt has those that Python knows otherwise."""

from __future__ import annotations

import fnmatch
import functools
import pathlib
import re

import cairn
from bound_names import Bound, plain
from public_headers import ROOT, Symbol, headers, symbols

SHARE = 0.15  # that need not be bound
SUFFIXES = ("Options", "Request", "Schema", "Settings")
NAMESPACES = ("nn", "rpc", "service", "storage", "testing")


@functools.cache
def public() -> list[Symbol]:
    return symbols()


@functools.cache
def bound() -> Bound:
    return Bound(pathlib.Path(cairn.__file__).parent)


@functools.cache
def sources() -> str:
    files = [*(ROOT / "python/src").rglob("*.cc"), *(ROOT / "python/src").rglob("*.h")]
    return "\n".join(file.read_text() for file in [*files, *(ROOT / "python/cairn").glob("*.py")])


@functools.cache
def entries(name: str, separator: str) -> dict[str, str]:
    """The lines of one of the two files: a name of C++'s, or a header, and what is said of it."""
    found: dict[str, str] = {}
    for line in (ROOT / "python" / name).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        left, between, right = (part.strip() for part in line.partition(separator))
        assert between and right, f"python/{name}: not NAME{separator}TEXT: {line}"
        assert left not in found, f"python/{name}: {left} is there twice"
        found[left] = right
    return found


def aliases() -> dict[str, str]:
    return entries("bound-as.txt", " = ")


def excused() -> dict[str, str]:
    return entries("not-bound.txt", ": ")


@functools.cache
def patterns() -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(fnmatch.translate(name)), target) for name, target in aliases().items() if "*" in name]


@functools.cache
def alias_of(name: str) -> str | None:
    """By the name itself, or by a pattern."""
    found = aliases().get(name)
    return found or next((target for pattern, target in patterns() if pattern.match(name)), None)


def targets(name: str) -> list[str]:
    """What a class of C++ is in the package."""
    alias = alias_of(name)
    if alias is not None:
        return alias.split(", ")
    own = name.rsplit("::", 1)[-1]
    shorter = [own[: -len(suffix)] for suffix in SUFFIXES if own.endswith(suffix) and own != suffix]
    return [each for each in [own, *shorter] if bound().offers(each) is not None]


@functools.cache
def is_bound(symbol: Symbol) -> bool:
    scope, _, own = symbol.name.rpartition("::")
    alias = alias_of(symbol.name)
    if symbol.kind == "value":
        whole = alias_of(scope) or ""
        if "." in whole:  # a parameter whose words C++ reads itself
            return is_there(whole)
        among = re.findall(r"\w+", whole)
        own = own if alias is None else "k" + alias
        return word(own) in (among or [word(own)]) and f'"{word(own)}"' in sources() or bool(targets(own[1:] + "Error"))
    if alias is not None and symbol.kind != "enum":
        return all(is_there(target) for target in alias.split(", "))
    if symbol.kind == "enum":
        return any(is_bound(each) for each in public() if each.kind == "value" and each.name.startswith(symbol.name + "::"))
    if symbol.kind == "class":
        return bool(targets(symbol.name))
    if symbol.kind == "constructor":
        return any(makes_one(target) for target in targets(scope))
    if not scope or scope.split("::")[-1] in NAMESPACES:
        return bound().offers(own) is not None
    return any(plain(own) in (bound().offers(target) or ()) for target in targets(scope))


def makes_one(target: str) -> bool:
    """A class that can be called, or a function."""
    members = bound().members_of(plain(target))
    return "init" in members if members else bound().offers(target) is not None


def is_there(target: str) -> bool:
    """A class, a function, or a member or parameter of one."""
    target = target.removeprefix("cairn.")
    owner, _, member = target.rpartition(".")
    return bound().offers(target) is not None or plain(member) in (bound().offers(owner) or ())


def word(value: str) -> str:
    """kSizeAware: "size_aware"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", value[1:]).lower()


def is_excused(symbol: Symbol) -> bool:
    """By its own name, by a class that it is in, or by its header."""
    parts = symbol.name.split("::")
    names = {"::".join(parts[:count]) for count in range(1, len(parts) + 1)}
    excuses = excused()
    if symbol.header in excuses or any(name in excuses for name in names):
        return True
    return any(fnmatch.fnmatchcase(symbol.name, name) for name in excuses if "*" in name)


def test_what_is_public_is_bound_or_says_why_not():
    missing = [each for each in public() if not is_bound(each) and not is_excused(each)]
    text = "\n".join(f"{each.header}: {each.kind} {each.name}" for each in missing)
    assert missing == [], f"neither bound nor in python/not-bound.txt:\n{text}"


def test_few_need_not_be_bound():
    left_out = [each for each in public() if not is_bound(each) and is_excused(each)]
    assert len(left_out) <= SHARE * len(public()), f"{len(left_out)} of {len(public())}"


def test_every_line_of_not_bound_names_what_is_not():
    wrong = []
    for name in excused():
        of_it = [each for each in public() if each.header == name or fnmatch.fnmatchcase(each.name, name) or each.name.startswith(name + "::")]
        if not of_it:
            wrong.append(f"{name}: there is no such name")
        elif all(is_bound(each) for each in of_it):
            wrong.append(f"{name}: it is bound")
    assert wrong == []


def test_every_line_of_bound_as_names_both():
    known = {each.name for each in public()}
    wrong = [name for name in aliases() if not fnmatch.filter(known, name)]
    assert wrong == []


def test_the_parser_finds_what_headers_declare():
    assert len(headers()) > 100 and len(public()) > 2000
    kinds = {each.name: each.kind for each in public()}
    assert kinds["Dataset::shuffle"] == "function" and kinds["EngineStats::losses"] == "field"
    assert kinds["nn::ClickModelOptions::Table"] == "class" and kinds["Placement::kSizeAware"] == "value"
    assert kinds["grad"] == "function" and "Strategy::run_step" not in kinds
