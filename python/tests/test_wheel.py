"""The wheel of the tree: it is small, and all that it needs besides comes with it, in each CPython that this machine has."""

import glob
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = pathlib.Path(os.environ["CAIRN_PROGRAMS"]).parent
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CAIRN_"))}
# Numbers of a debug-free wheel and of what pip makes of it.
WHEEL_BYTES_MAX, INSTALLED_BYTES_MAX = 30e6, 95e6

PROGRAM = """
import time
begin = time.perf_counter()
import numpy as np
between = time.perf_counter()
import cairn
print(f"import cairn: {time.perf_counter() - between:.3f} s after numpy's {between - begin:.3f} s")
with cairn.LocalCluster(ps=1, workers=1) as cluster:
    strategy = cluster.strategy()
    coordinator = cairn.ClusterCoordinator(strategy)
    @strategy.function
    def step(x):
        return x + 1.0
    values = [coordinator.schedule(step, (float(i),)) for i in range(10)]
    coordinator.join()
    assert [value.get().item() for value in values] == [i + 1.0 for i in range(10)]
print("done")
"""


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **{"env": CLEAN, **options})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "CAIRN_PROGRAMS")}
    run([str(ROOT / "tools" / "wheel"), "--tree", str(TREE), "--to", str(folder)], env=environment)
    [made] = folder.glob("*.whl")
    return made


def pythons():
    """The CPython at hand, by its version; with CAIRN_EVERY_PYTHON each from 3.10 to 3.13, on the PATH or of pyenv."""
    found = {sys.version_info[:2]: sys.executable}
    for minor in range(10, 14) if os.environ.get("CAIRN_EVERY_PYTHON") else []:
        beside = sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3.{minor}")))
        for path in [shutil.which(f"python3.{minor}"), *beside]:
            works = path and subprocess.run([path, "-c", "import pip, venv"], capture_output=True).returncode == 0
            if works:
                found.setdefault((3, minor), path)
    return found


def test_it_is_small(wheel):
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
    assert wheel.name.endswith("-cp310-abi3-manylinux_2_35_x86_64.whl")
    assert wheel.stat().st_size <= WHEEL_BYTES_MAX
    with zipfile.ZipFile(wheel) as file:
        libraries = [os.path.basename(name) for name in file.namelist() if ".libs/" in name]
    assert any(name.startswith("libdnnl") for name in libraries)
    assert not any(name.startswith(("libcurl", "libcrypto")) for name in libraries)


@pytest.mark.parametrize("version", sorted(pythons()), ids=lambda version: "%d.%d" % version)
def test_it_runs_where_pip_installs_it(wheel, version, tmp_path):
    place = tmp_path / "venv"
    run([pythons()[version], "-m", "venv", "--without-pip", str(place)])
    [packages] = place.glob("lib/python*/site-packages")
    own = version == sys.version_info[:2]
    if own:  # NumPy and the like are those at hand, so that this works without an index
        (packages / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    pip = [pythons()[version], "-m", "pip", "--python", str(place / "bin" / "python"), "install", "--quiet"]
    installed = subprocess.run([*pip, *(["--no-index"] if own else []), str(wheel)], capture_output=True, text=True, env=CLEAN)
    if installed.returncode != 0 and not own and "No matching distribution found for n" in installed.stderr:
        pytest.skip("Python's index is not reached")
    assert installed.returncode == 0, installed.stderr
    size = sum(path.stat().st_size for part in packages.glob("cairn*") for path in part.rglob("*") if path.is_file())
    said = run([str(place / "bin" / "python"), "-c", PROGRAM], cwd=tmp_path)
    print(f"installed: {size / 1e6:.1f} MB; {said}")
    assert said.endswith("done\n") and size <= INSTALLED_BYTES_MAX
    assert run([str(place / "bin" / "cairn"), "--version"]).startswith("cairn")
    if own:
        calls_the_machine_s_libcurl(place / "bin" / "cairn")


def calls_the_machine_s_libcurl(program):
    keys = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "c"}
    asked = subprocess.run([str(program), "ckpt", "ls", "s3://bucket/prefix"], capture_output=True, text=True, env={**CLEAN, **keys})
    assert asked.returncode != 0 and "connect" in asked.stderr, asked.stderr
