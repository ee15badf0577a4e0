"""Each notebook of examples/notebooks runs from top to bottom, and is kept without output."""

import ast
import sys
import types

import numpy as np
import pages
import pytest

import cairn


def shown(value):
    """What a notebook would show of a cell's last value."""
    html = getattr(value, "_repr_html_", None)
    return html() if html is not None else repr(value)


def run_cell(source, name, names):
    """Runs a cell; the value of its last line, if that is an expression."""
    body = ast.parse(source, name).body
    last = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), name, "exec"), names)
    return eval(compile(last, name, "eval"), names) if last is not None else None


@pytest.mark.parametrize("path", pages.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    names = {"__name__": "__main__"}
    for number, cell in enumerate(pages.cells(path)):
        assert cell["outputs"] == [] and cell["execution_count"] is None, "clear the outputs before you commit"
        value = run_cell("".join(cell["source"]), f"{path.name}#{number}", names)
        assert value is None or shown(value)


def test_there_are_notebooks():
    assert len(pages.NOTEBOOKS) >= 3 and all(len(pages.cells(path)) >= 3 for path in pages.NOTEBOOKS)


# ---- fit's line, in a notebook ----


class Display:
    """IPython's display(), as far as fit uses it."""

    def __init__(self):
        self.made, self.texts = 0, []

    def __call__(self, data, raw, display_id):
        assert raw and display_id
        self.made += 1
        self.update(data, raw)
        return self

    def update(self, data, raw):
        self.texts.append(data["text/plain"])


@pytest.fixture
def display(monkeypatch):
    made = Display()
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=made))
    return made


def test_fit_shows_how_far_it_is_in_one_display_of_a_notebook(display, capsys):
    model = cairn.Model(cairn.nn.Dense(1))
    model.compile("sgd", "mse")
    examples = 4000
    while not display.made:  # the first is drawn after a tenth of a second
        examples *= 2
        x = np.ones((examples, 2), "float32")
        model.fit(x, x[:, 0], batch_size=1, verbose=1)
    assert display.made == 1
    assert any("loss" in text for text in display.texts) and display.texts[-1] == ""
    out = capsys.readouterr().out
    assert "Epoch 1/1" in out and "\r" not in out


def test_without_a_kernel_nothing_is_displayed(display, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    model = cairn.Model(cairn.nn.Dense(1))
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 2), "float32"), np.ones(8, "float32"), verbose=1)
    assert display.made == 0 and "Epoch 1/1" in capsys.readouterr().out
