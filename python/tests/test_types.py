"""The package's annotations and stubs hold under mypy's strictest rules, and so does what docs/python.md shows."""

import os
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"


def mypy(*arguments):
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, *arguments],
        capture_output=True, text=True, env={**os.environ, "MYPYPATH": os.environ["PYTHONPATH"]},
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_package_is_typed():
    mypy("-p", "cairn")


def test_the_page_is_typed(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    program = tmp_path / "program.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    mypy("--disable-error-code=import-untyped", "--allow-untyped-defs", "--allow-untyped-calls", "--allow-untyped-decorators", str(program))


def test_the_examples_are_typed():
    folder = PAGE.parents[1] / "examples"
    mypy("--explicit-package-bases", *sorted(str(file) for file in folder.glob("*.py")))
