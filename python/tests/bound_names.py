"""What the package offers, read from its stubs and its Python files: classes with their attributes and
methods, functions, and the parameters of both."""

from __future__ import annotations

import ast
import importlib
import pathlib


def plain(name: str) -> str:
    """Names are compared without case and underscores: AUC is Auc, from_ is from."""
    return name.replace("_", "").lower()


class Bound:
    def __init__(self, package: pathlib.Path) -> None:
        self.members: dict[str, dict[str, set[str]]] = {}  # by class: attributes, with parameters
        self.bases: dict[str, set[str]] = {}
        self.functions: dict[str, set[str]] = {}  # by function: parameters
        for file in [*package.glob("[a-z]*.py"), package / "__init__.py", *package.glob("_cairn/*.pyi")]:
            for node in ast.parse(file.read_text()).body:
                self.read(node)

    def read(self, node: ast.stmt) -> None:
        if isinstance(node, ast.ClassDef):
            self.read_class(node)
        elif isinstance(node, ast.FunctionDef):
            self.functions.setdefault(plain(node.name), set()).update(parameters(node))
        elif isinstance(node, ast.ImportFrom):  # a class or a function under another name
            for alias in node.names:
                if alias.asname and plain(alias.asname) != plain(alias.name):
                    self.bases.setdefault(plain(alias.asname), set()).add(plain(alias.name))

    def read_class(self, node: ast.ClassDef) -> None:
        name = plain(node.name)
        own = self.members.setdefault(name, {})
        bases = self.bases.setdefault(name, set())
        bases.update(plain(ast.unparse(base).rsplit(".", 1)[-1]) for base in node.bases)
        bases.discard(name)
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                own.setdefault(plain(each.name), set()).update(parameters(each))
            elif isinstance(each, ast.AnnAssign):
                own.setdefault(plain(ast.unparse(each.target)), set())

    def members_of(self, name: str) -> dict[str, set[str]]:
        """The members of a class, those of its bases too."""
        found: dict[str, set[str]] = {}
        for base in self.bases.get(name, set()):
            found.update(self.members_of(base))
        found.update(self.members.get(name, {}))
        return found

    def offers(self, target: str) -> set[str] | None:
        """The names that belong to a target: to a class its members and what makes one, to a function
        or "Class.method" its parameters, to another library's its attributes; None: there is none."""
        head, _, member = target.partition(".")
        if head == "cairn":
            head, _, member = member.partition(".")
        if head in ("builtins", "numpy", "logging"):
            found = importlib.import_module(head)
            for part in member.split("."):
                found = getattr(found, part, None)
            return None if found is None else {plain(each) for each in dir(found)}
        name = plain(head)
        if member:
            method, _, parameter = member.partition(".")
            found = self.members_of(name).get(plain(method))
            return found if not parameter or found is None else (set() if plain(parameter) in found else None)
        members = self.members_of(name)
        if name in self.functions or members or name in self.bases:
            return self.functions.get(name, set()) | members.keys() | members.get("init", set())
        return None


def parameters(node: ast.FunctionDef) -> set[str]:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return {plain(each.arg) for each in every}
