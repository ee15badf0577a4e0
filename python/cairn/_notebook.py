"""A line of a notebook's output that is written again and again."""

from __future__ import annotations

import sys
from typing import Any


class Line:
    """A display of the cell that runs; it is updated in its place."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._shown: Any = None

    def draw(self, text: str) -> None:
        data = {"text/plain": text}
        if self._shown is None:
            self._shown = self._display(data, raw=True, display_id=True)
        else:
            self._shown.update(data, raw=True)


def line() -> Line | None:
    """A line of the notebook that this runs in; None: it runs in none."""
    # A kernel has imported IPython before it runs a cell, and its shell knows the kernel.
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    if get_ipython is None or getattr(get_ipython(), "kernel", None) is None:
        return None
    return Line(sys.modules["IPython.display"].display)
