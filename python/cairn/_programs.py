"""The programs that lie in the package, as pip puts them on the PATH."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def _run(name: str) -> NoReturn:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    try:
        os.execv(path, [path, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: cannot start {path}: {error.strerror}; reinstall cairn-ps")


def cairn() -> NoReturn:
    _run("cairn")


def cairn_ps() -> NoReturn:
    _run("cairn-ps")


def cairn_worker() -> NoReturn:
    _run("cairn-worker")


def cairn_coordinator() -> NoReturn:
    _run("cairn-coordinator")


def cairn_data() -> NoReturn:
    _run("cairn-data")
