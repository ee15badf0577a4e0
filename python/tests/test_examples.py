"""The examples in C++ and in Python are the same programs: they record equal graphs and, where
workers go in step, end in equal bits."""

import difflib
import gzip
import os
import pathlib
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import cairn

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ["CAIRN_PROGRAMS"])
CAIRN = str(PROGRAMS / "cairn")
SERVERS = ["--ps", "2", "--workers", "2"]


class Run:
    """A run of an example in a folder of its own, which it finds its data beside."""

    def __init__(self, folder, up, program, *flags):
        self.folder = folder
        self.graphs = folder / "graphs"
        folder.mkdir()
        command = [*program, *flags]
        if up:
            command = [CAIRN, "up", *up, "--dir", str(folder / "run"), "--", *command]
        environment = {**os.environ, "CAIRN_GRAPHS": str(self.graphs)}
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        self.output = ended.stdout

    def functions(self):
        """How often each function was recorded, by the text that begins with its hash."""
        return Counter(file.read_text() for file in self.graphs.iterdir())

    def figures(self):
        """The figures of the line in which the example tells what it reached."""
        lines = [line for line in self.output.splitlines() if re.search(r"loss \d|AUC|@10", line)]
        return re.findall(r"\d+\.\d+", lines[-1].split(", checkpoint")[0])

    def variables(self, where):
        """What the newest checkpoint holds, slots included, as bytes."""
        newest = max((self.folder / where).glob("ckpt-*"), default=self.folder / where)
        file = self.folder / "weights.npz"
        command = [CAIRN, "ckpt", "export", newest, file, "--untouched", "keys"]
        subprocess.run(command, check=True, capture_output=True)
        arrays = {name: array for name, array in np.load(file).items() if name != "__metadata__"}
        return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


def difference(cpp, python):
    texts = [sorted(texts.elements()) for texts in (cpp, python)]
    lines = [line for pair in zip(*texts) for line in difflib.unified_diff(*map(str.splitlines, pair), lineterm="")]
    return f"{len(texts[0])} functions differ from {len(texts[1])}\n" + "\n".join(lines)


def twins(folder, name, up, *flags):
    """The runs in C++ and in Python, which have recorded the same functions."""
    cpp = Run(folder / "cpp", up, [str(PROGRAMS / name)], *flags)
    python = Run(folder / "python", up, [sys.executable, str(ROOT / "examples" / (name + ".py"))], *flags)
    ours, theirs = cpp.functions(), python.functions()
    assert all(text.startswith("graph ") for text in ours) and len(ours) > 0
    assert ours == theirs, difference(ours - theirs, theirs - ours)
    return cpp, python


def assert_same_bits(runs, where):
    cpp, python = runs
    ours, theirs = cpp.variables(where), python.variables(where)
    assert len(ours) > 2
    assert [name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)] == []
    assert cpp.figures() == python.figures() != []


@pytest.mark.parametrize(
    ("strategy", "up"),
    [
        ("one_device", []),
        ("mirrored", []),
        ("mesh", []),
        ("central_storage", []),
        ("multi_worker_mirrored", ["--workers", "2"]),
        ("parameter_server", ["--ps", "2", "--workers", "1"]),
        ("hybrid", ["--ps", "2", "--workers", "1"]),
    ],
)
def test_strategies(tmp_path, strategy, up):
    runs = twins(
        tmp_path, "strategies", up, f"--strategy={strategy}", "--steps=50", "--checkpoints=checkpoints"
    )
    assert_same_bits(runs, "checkpoints")


def idx(path, array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    with gzip.open(path, "wb") as file:
        file.write(header + array.tobytes())


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """50 steps of images, and a batch to judge by."""
    folder = tmp_path_factory.mktemp("images")
    for name, count in (("train", 50 * 128), ("t10k", 500)):
        numbers = np.random.default_rng(count).integers(0, 256, (count, 28, 28), np.uint8)
        idx(folder / f"{name}-images-idx3-ubyte.gz", numbers)
        idx(folder / f"{name}-labels-idx1-ubyte.gz", numbers[:, 0, 0] % 10)
    return folder


@pytest.mark.parametrize(("strategy", "up"), [("mirrored", []), ("synchronous", SERVERS)])
def test_fashion_mnist(tmp_path, images, strategy, up):
    cpp, python = twins(
        tmp_path,
        "fashion_mnist",
        up,
        f"--strategy={strategy}",
        "--epochs=1",
        f"--data={images}",
        "--model=model",
        "--predictions=predictions.csv",
    )
    assert_same_bits((cpp, python), "model/weights")
    ours, theirs = ((run.folder / "predictions.csv").read_bytes() for run in (cpp, python))
    assert ours == theirs


def test_wide_deep(tmp_path):
    flags = [str(ROOT / "examples/data/adult"), "checkpoints", "--steps=100", "--consistency=synchronous"]
    runs = twins(tmp_path, "wide_deep", SERVERS, *flags)  # of two closures each: 50 steps
    assert_same_bits(runs, "checkpoints")


@pytest.mark.parametrize(("kind", "steps"), [("dlrm", 50), ("dcn_v2", 2), ("deepfm", 2)])
def test_dlrm(tmp_path, kind, steps):
    clicks = cairn.CriteoLike(seed=1, rows_max=1000)
    clicks.write_records(str(tmp_path / "train.bin"), 0, 4096)
    clicks.write_records(str(tmp_path / "test.bin"), 4096, 5000)
    flags = [str(tmp_path / "train.bin"), str(tmp_path / "test.bin"), kind, str(steps), "--rows-max=1000"]
    runs = twins(tmp_path, "dlrm", ["--ps", "2", "--workers", "1"], *flags, "--consistency=synchronous", "--checkpoint=checkpoints")
    assert_same_bits(runs, "checkpoints")


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """The first visits of the data: so many of them that 3,000 are held out, and few are left."""
    lines = gzip.open(ROOT / "examples/data/msweb/anonymous-msweb.data.gz", "rt", encoding="latin-1")
    path = tmp_path_factory.mktemp("visits") / "visits.gz"
    users, visited, taken = 0, 0, []
    for line in lines:
        if line.startswith("C,"):
            users += visited > 1
            visited = 0
            if users == 3_300:
                break
        visited += line.startswith("V,")
        taken.append(line)
    with gzip.open(path, "wt", encoding="latin-1") as file:
        file.writelines(taken)
    return path


@pytest.mark.parametrize(("name", "strategy"), [("matrix_factorisation", "one_device"), ("visits", "mirrored")])
def test_msweb(tmp_path, visits, name, strategy):
    runs = twins(
        tmp_path, name, [], f"--strategy={strategy}", f"--data={visits}", "--checkpoint=checkpoints"
    )
    assert_same_bits(runs, "checkpoints")


@pytest.mark.parametrize("name", ["matrix_factorisation", "visits"])
def test_msweb_records_the_same_for_servers(tmp_path, visits, name):
    twins(tmp_path, name, SERVERS, "--strategy=parameter_server", f"--data={visits}")
