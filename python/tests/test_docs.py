"""Every Python block of docs/python.md runs, and every example in a docstring."""

import doctest
import inspect
import pathlib
import re

import numpy as np
import pytest

import cairn

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(PAGE.parents[1] / "examples")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
    # A file for each, so that errors and recorded lines have a place.
    names = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{PAGE.name}#{number}", "exec"), names)


def documented():
    for name in sorted(dir(cairn)):
        value = getattr(cairn, name)
        if name.startswith("_") or not (inspect.isclass(value) or callable(value)):
            continue
        text = inspect.getdoc(value) or ""
        if ">>>" in text:
            yield pytest.param(value, text, id=name)


@pytest.mark.parametrize("value, text", list(documented()))
def test_an_example_gives_what_it_says(value, text):
    # The signature stands before the text of a function of the module.
    example = text[text.index(">>>") :]
    test = doctest.DocTestParser().get_doctest(example, {"cairn": cairn, "np": np}, "example", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
