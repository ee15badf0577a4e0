"""The package's annotations and stubs hold under mypy's strictest rules and under pyright's, and so does what pages show."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pages
import pytest

PACKAGE = pathlib.Path(os.environ["PYTHONPATH"].split(os.pathsep)[0])


def checked(command, **options):
    run = subprocess.run(command, capture_output=True, text=True, **options)
    assert run.returncode == 0, run.stdout + run.stderr


def mypy(*arguments):
    checked(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, *arguments],
        env={**os.environ, "MYPYPATH": str(PACKAGE)},
    )


@pytest.fixture
def programs(tmp_path):
    paths = []
    for name, text in pages.programs().items():
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    assert len(paths) >= 4
    return paths


def test_the_package_is_typed():
    mypy("-p", "cairn")


def test_the_programs_of_pages_and_notebooks_are_typed(programs):
    # What runs on workers is written without annotations, as people write it.
    untyped = ["--allow-untyped-defs", "--allow-untyped-calls", "--allow-untyped-decorators", "--allow-incomplete-defs"]
    mypy("--disable-error-code=import-untyped", *untyped, *programs)


def test_pyright_agrees(programs, tmp_path):
    node, found = shutil.which("node"), importlib.util.find_spec("basedpyright")
    if node is None or found is None or found.origin is None:
        pytest.skip("pyright needs node")
    project = tmp_path / "pyrightconfig.json"
    options = {
        "include": [str(PACKAGE / "cairn"), *programs],
        "extraPaths": [str(PACKAGE)],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.10",
        "reportMissingModuleSource": False,
        "reportUnusedExpression": False,  # a cell of a notebook ends with one
    }
    project.write_text(json.dumps(options), encoding="utf-8")
    index = pathlib.Path(found.origin).parent / "index.js"
    checked([node, str(index), "--project", str(project), "--pythonpath", sys.executable])
