"""Every Python block of README and docs/ runs, and every example in a docstring.

Blocks of a page run in its order, in one program. TensorFlow's programs, which are there to compare, are in ```py blocks.
"""

import ast
import doctest
import inspect
import pathlib

import numpy as np
import pages
import pytest

import cairn


@pytest.mark.parametrize("page", pages.WITH_BLOCKS, ids=lambda page: page.name)
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(pages.ROOT / "examples")
    # A file for each, so that errors and recorded lines have a place.
    names = {}
    for number, block in enumerate(pages.blocks(page)):
        exec(compile(block, f"{page.name}#{number}", "exec"), names)


def test_the_pages_that_show_python_have_blocks():
    assert {"README.md", "python.md"} <= {page.name for page in pages.WITH_BLOCKS}
    assert sum(len(pages.blocks(page)) for page in pages.WITH_BLOCKS) >= 8


def test_tensorflow_s_programs_are_python_at_least():
    programs = pages.blocks(pages.ROOT / "docs" / "python.md", "py")
    assert len(programs) >= 2
    for number, program in enumerate(programs):
        compile(program, f"python.md, ```py {number}", "exec")


MODULES = [cairn, cairn.nn, cairn.optimizers, cairn.losses, cairn.metrics, cairn.callbacks, cairn.data, cairn.errors]


def members(kind):
    """A class's own public members, which may have examples of their own."""
    for name, member in vars(kind).items():
        function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        if not name.startswith("_"):
            yield name, function.fget if isinstance(member, property) and member.fget else function


def documented():
    seen = set()
    for module in MODULES:
        named = [("", module)]
        for name in sorted(vars(module)):
            value = getattr(module, name)
            if name.startswith("_") or not (inspect.isclass(value) or callable(value)):
                continue
            named.append((name, value))
            if inspect.isclass(value):
                named += [(f"{name}.{member}", each) for member, each in members(value)]
        for name, value in named:
            text = inspect.getdoc(value) or ""
            # A text that a class inherits, or a name that another module has as well, is tested once.
            if ">>>" in text and text not in seen:
                seen.add(text)
                yield pytest.param(text, id=f"{module.__name__}.{name}".rstrip("."))


DOCUMENTED = list(documented())


def only_given():
    """Classes of the module that a program cannot make objects of."""
    stubs = pathlib.Path(cairn.__file__).parent / "_cairn"
    kinds = [kind for stub in stubs.glob("*.pyi") for kind in ast.parse(stub.read_text()).body if isinstance(kind, ast.ClassDef)]
    return {kind.name for kind in kinds if not any(getattr(each, "name", "") == "__init__" for each in kind.body)}


def test_each_public_name_has_an_example():
    named = {name: value for module in MODULES for name, value in vars(module).items() if not name.startswith("_")}
    own = {name: value for name, value in named.items() if callable(value) and (value.__module__ or "").startswith("cairn")}
    # The classes of single codes are said by their base.
    without = {name for name, value in own.items() if ">>>" not in (inspect.getdoc(value) or "")}
    without -= {name for name in without if inspect.isclass(own[name]) and issubclass(own[name], cairn.Error)}
    # Objects that only Cairn makes, such as figures of a run, are in the examples of what gives them.
    without -= only_given()
    assert len(own) > 300 and not without, without


@pytest.mark.parametrize("text", DOCUMENTED)
def test_an_example_gives_what_it_says(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # The signature stands before the text of a function of the module.
    example = text[text.index(">>>") :]
    test = doctest.DocTestParser().get_doctest(example, {"cairn": cairn, "np": np}, "example", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
