"""What Python adds, beside C++ in one run: `tools/bench python` (bench/README.md).

    compare.py TREE [--windows N]       TREE: a build tree with cairn-bench, cairn-bench-fit and the package

C++ and Python run in turns, a window each, in processes of their own; medians, with the least and the most.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

WORKLOADS = pathlib.Path(__file__).with_name("workloads.py")


def python_figures(tree, *arguments):
    environment = dict(os.environ, PYTHONPATH=f"{tree}/python", CAIRN_PROGRAMS=f"{tree}/bin", CAIRN_CUDA_LIBRARY="none")
    done = subprocess.run(
        [sys.executable, str(WORKLOADS), *arguments], env=environment, stdout=subprocess.PIPE, check=True, text=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["name"]: (line["value"], line["unit"]) for line in lines}


def cpp_figures(tree, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        lines = os.path.join(folder, "lines.jsonl")
        subprocess.run(
            [f"{tree}/bin/cairn-bench", *arguments, "--windows", "1", "--transport", "auto", "--json", lines],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        with open(lines, encoding="utf-8") as read:
            return [json.loads(line) for line in read]


def write_wide_deep_records(file, rows=32_768):
    """Records of the layout that the wide-deep benchmark reads (bench/wide_deep_data.h): ids are few and skewed."""
    random = np.random.default_rng(1)
    categories = np.array([9, 16, 7, 15, 6, 5, 2, 42])
    records = np.empty(rows, [("label", "<f4"), ("numeric", "<f4", 8), ("deep", "<i4", 8), ("wide", "<i4", 10)])
    records["label"] = random.random(rows) < 0.3
    records["numeric"] = 2 * random.random((rows, 8)) - 1
    drawn = (random.random((rows, 8)) ** 2 * categories).astype(int)
    records["deep"] = (drawn * 7919 + np.arange(8) * 131) % 1000
    records["wide"][:, :8] = records["deep"] + 1000 * np.arange(8)
    records["wide"][:, 8] = 8000 + (drawn[:, 1] * 100 + drawn[:, 3]) * 31 % 10_000
    records["wide"][:, 9] = 18_000 + (drawn[:, 0] * 100 + drawn[:, 7]) * 31 % 10_000
    records.tofile(file)


class Figures:
    """The windows of each figure, of both sides."""

    def __init__(self):
        self.windows = {}
        self.units = {}

    def add(self, side, name, value, unit):
        self.windows.setdefault(name, {}).setdefault(side, []).append(value)
        self.units[name] = unit

    def told(self, values):
        return f"{statistics.median(values):,.3f} ({min(values):,.3f} to {max(values):,.3f})"

    def print(self):
        for name, sides in self.windows.items():
            unit = self.units[name]
            line = f"{name:32} Python {self.told(sides['Python'])} {unit}"
            if "C++" in sides:
                ratio = statistics.median(sides["Python"]) / statistics.median(sides["C++"])
                line += f"; C++ {self.told(sides['C++'])}; Python to C++ {ratio:.3f}"
            print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree")
    parser.add_argument("--windows", type=int, default=7)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the table")
    options = parser.parse_args()
    tree = os.path.abspath(options.tree)
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "wide_deep.bin")
        write_wide_deep_records(data)
        for _ in range(options.windows):
            for workload in ("closures", "latency"):
                for line in cpp_figures(tree, workload, "--seconds", "1"):
                    add_cpp(figures, line)
                for name, (value, unit) in python_figures(tree, workload).items():
                    figures.add("Python", name, value, unit)
            for line in cpp_figures(tree, "wide-deep", "--steps", "1", "--one-device", "0", "--data", data):
                add_cpp(figures, line)
            for name, (value, unit) in python_figures(tree, "wide-deep", data).items():
                figures.add("Python", name, value, unit)
            for workload in (("calls",), ("table", str(options.rows))):
                for name, (value, unit) in python_figures(tree, *workload).items():
                    figures.add("Python", name, value, unit)
    figures.print()
    other = f"PYTHONPATH={tree}/python CAIRN_CUDA_LIBRARY=none {sys.executable} {WORKLOADS}"
    subprocess.run([f"{tree}/bin/cairn-bench-fit", "all", other], check=True)


def add_cpp(figures, line):
    """Takes those of cairn-bench's figures that Python has, and leaves ratios and limits out."""
    name = {"closures/s": "closures", "us": "schedule to fetch, p50", "examples/s": "wide-deep"}.get(line["unit"])
    ours = line["configuration"].startswith("1 ps") and not line["configuration"].endswith("p99")
    if name and ours:
        figures.add("C++", name, line["median"], line["unit"])


if __name__ == "__main__":
    main()
