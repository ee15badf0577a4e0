"""The public classes, functions, fields and values of enumerations, read from the headers that
cmake/public_headers.txt names. A plain parser does, since tools/format lays all of them out alike."""

from __future__ import annotations

import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKEN = re.compile(r"[A-Za-z_]\w*|::|->|[{}()\[\]<>;,=:~&*]|\S")
OPENING, CLOSING = "([{<", ")]}>"


class Symbol(NamedTuple):
    header: str
    kind: str  # class, constructor, enum, function, field, value
    name: str  # "Dataset::shuffle", without the namespace cairn


def headers() -> list[str]:
    lines = (ROOT / "cmake/public_headers.txt").read_text().splitlines()
    return [line for line in (each.split("#")[0].strip() for each in lines) if line]


def tokens_of(text: str) -> list[str]:
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|R"\((?:.|\n)*?\)"', '""', re.sub(r"//[^\n]*", "", text))
    text = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"(?<=\d)'(?=\d)", "", text)
    return TOKEN.findall(re.sub(r"\[\[\w+\]\]|'(?:\\.|[^'\\])'", " ", text))


def skip_balanced(tokens: list[str], at: int) -> int:
    """The place behind the bracket that closes the one at `at`."""
    depth = 0
    closing = CLOSING[OPENING.index(tokens[at])]
    for i in range(at, len(tokens)):
        depth += (tokens[i] == tokens[at]) - (tokens[i] == closing)
        if depth == 0:
            return i + 1
    raise ValueError("a bracket that is not closed")


def without_templates(statement: list[str]) -> list[str]:
    """Without template<...> and requires clauses in front of a declaration."""
    while statement and statement[0] in ("template", "requires"):
        if statement[0] == "template":
            statement = statement[skip_balanced(statement, 1) :]
            continue
        at = 1
        if statement[1] != "(":  # requires Concept<T>
            at = next((i for i in range(1, len(statement)) if statement[i] == "<"), 1)
        statement = statement[skip_balanced(statement, at) :]
        while statement and statement[0] == "||":
            statement = statement[skip_balanced(statement, 1) :]
    return statement


class Parser:
    def __init__(self, header: str, text: str) -> None:
        self.header, self.tokens, self.at = header, tokens_of(text), 0
        self.found: list[Symbol] = []

    def add(self, kind: str, scope: list[str], name: str) -> None:
        self.found.append(Symbol(self.header, kind, "::".join([*scope, name])))

    def scope(self, names: list[str], of_class: str | None, public: bool, hidden: bool) -> None:
        """Declarations up to the bracket that closes this scope."""
        statement: list[str] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token == "}":
                self.at += 1
                return
            if token == ":" and statement in (["public"], ["private"], ["protected"]):
                public = statement == ["public"]
                self.at += 1
                statement = []
            elif token == ";":
                self.at += 1
                self.declare(statement, names, of_class, public and not hidden)
                statement = []
            elif token == "{":
                statement = self.open(statement, names, of_class, public, hidden)
            elif token in "([" or (token == "<" and statement and statement[-1] != "operator"):
                end = skip_balanced(self.tokens, self.at) if token != "<" else self.angle_end()
                statement += self.tokens[self.at : end]
                self.at = end
            else:
                statement.append(token)
                self.at += 1

    def angle_end(self) -> int:
        """Behind the > of a list of template arguments; behind the < where it is none."""
        depth = 0
        for i in range(self.at, min(self.at + 400, len(self.tokens))):
            token = self.tokens[i]
            depth += (token == "<") - (token == ">")
            if depth == 0:
                return i + 1
            if token in ";{":
                break
        return self.at + 1

    def open(
        self, statement: list[str], names: list[str], of_class: str | None, public: bool, hidden: bool
    ) -> list[str]:
        plain = without_templates(statement)
        kind = plain[0] if plain else ""
        shown = public and not hidden
        if kind == "namespace" or plain[:2] == ["inline", "namespace"]:
            inner = [each for each in plain[1:] if each not in ("::", "cairn")]
            self.at += 1
            self.scope(names + inner, None, True, hidden or "detail" in inner or not plain[1:])
            return []
        if kind in ("class", "struct") and "(" not in plain and "=" not in plain:
            head = plain[1 : plain.index(":")] if ":" in plain else plain[1:]
            specialised = "<" in head
            name = next(each for each in head if re.match(r"[A-Za-z_]", each) and each != "final")
            if shown and not specialised:
                self.add("class", names, name)
            self.at += 1
            self.scope([*names, name], name, kind == "struct", hidden or not public or specialised)
            return []
        if kind == "enum":
            name = next(each for each in plain[1:] if each not in ("class", "struct"))
            if shown:
                self.add("enum", names, name)
            end = skip_balanced(self.tokens, self.at)
            if shown:
                for value in self.values(self.tokens[self.at + 1 : end - 1]):
                    self.add("value", [*names, name], value)
            self.at = end
            return []
        self.at = skip_balanced(self.tokens, self.at)
        is_function = "(" in plain and ("operator" in plain or "=" not in plain[: plain.index("(")])
        if is_function and self.tokens[self.at] != ";":
            if self.tokens[self.at] in (",", "{"):  # of a constructor's members
                return statement
            self.declare(plain, names, of_class, shown)
            return []
        return [*statement, "="]  # a value in braces

    @staticmethod
    def values(inner: list[str]) -> list[str]:
        return [each for i, each in enumerate(inner) if re.match(r"k[A-Z]", each) and (i == 0 or inner[i - 1] == ",")]

    def declare(self, statement: list[str], names: list[str], of_class: str | None, shown: bool) -> None:
        plain = without_templates(statement)
        if plain[:1] in (["class"], ["struct"]) and "(" in plain:  # of the type that it returns
            plain = plain[1:]
        if not shown or not plain or plain[0] in ("using", "typedef", "friend", "static_assert", "class", "struct"):
            return
        if plain[0] in ("enum", "namespace", "extern") or "operator" in plain or "override" in plain or "~" in plain:
            return
        flat, depth = [], 0
        for token in plain:
            depth += (token == "<") - (token == ">")
            if depth == 0 and token != ">":
                flat.append(token)
        call = flat.index("(") if "(" in flat else len(flat)
        if call < (flat.index("=") if "=" in flat else len(flat)):
            name = flat[call - 1]
            if "delete" not in flat[call:] and (call < 2 or flat[call - 2] != "::"):
                self.add("constructor" if name == of_class else "function", names, name)
            return
        if of_class is None or "constexpr" in flat:
            return  # a constant
        for part in self.declarators(flat):
            self.add("field", names, part)

    @staticmethod
    def declarators(flat: list[str]) -> list[str]:
        names, depth, last, initial = [], 0, "", False
        for token in [*flat, ","]:
            depth += (token in OPENING) - (token in CLOSING)
            if depth == 0 and token == ",":
                names.append(last)
                initial = False
            elif token == "=" or (token == "[" and depth == 1):
                initial = True
            elif depth == 0 and not initial and re.match(r"[A-Za-z_]\w*$", token):
                last = token
        return names


def symbols() -> list[Symbol]:
    found: dict[tuple[str, str], Symbol] = {}
    for header in headers():
        parser = Parser(header, (ROOT / header).read_text())
        parser.scope([], None, True, False)
        for each in parser.found:
            found.setdefault((each.kind, each.name), each)
    return list(found.values())
