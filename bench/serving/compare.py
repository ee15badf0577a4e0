"""What `cairn serve` answers, beside what bounds it, in one run: `tools/bench serving` (bench/README.md).

    compare.py TREE [--windows N] [--seconds S]      TREE: a build tree with cairn, its servers and the benchmarks

The server runs on core 0, the clients on core 1. Each window measures every figure and its limit in turn; medians,
with the least and the most.
"""

import argparse
import gzip
import http.client
import json
import os
import pathlib
import random
import re
import signal
import statistics
import struct
import subprocess
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADULT = ROOT / "examples" / "data" / "adult" / "adult.test.gz"


def on_core(core, command, **how):
    return subprocess.Popen(["taskset", "-c", str(core), *map(str, command)], text=True, **how)


class Server:
    """A program that prints where it serves; ended at the end."""

    def __init__(self, command, pattern):
        self.process = on_core(0, command, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
        for line in self.process.stdout:
            if found := re.search(pattern, line):
                self.url = f"http://127.0.0.1:{found.group(1)}"
                return
        raise RuntimeError(f"{command[0]} ended before it served")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)


def wrk(url, seconds, connections, body=None, headers=None, refused=False, until=None):
    """Requests a second, p50 and p99 in milliseconds. Any answer other than 200 is an error, unless some may be refused.

    until: a process; it is asked until that ends, for `seconds` at most."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency"]
        if body is not None:
            file = pathlib.Path(folder, "body")
            file.write_bytes(body)
            script = pathlib.Path(folder, "post.lua")
            lines = ['wrk.method = "POST"', f'wrk.body = io.open("{file}", "rb"):read("*a")']
            lines += [f'wrk.headers["{name}"] = "{value}"' for name, value in (headers or {}).items()]
            script.write_text("\n".join(lines), encoding="utf-8")
            command += ["-s", str(script)]
        done = on_core(1, [*command, url], stdout=subprocess.PIPE)
        if until is not None:
            until.wait(seconds)
            done.send_signal(signal.SIGINT)  # it prints what it has measured
        out = done.communicate()[0]
    if ("Non-2xx" in out and not refused) or "Socket errors" in out:
        raise RuntimeError(out)
    unit = {"us": 1e-3, "ms": 1.0, "s": 1e3}
    of = {}
    for share in ("50%", "99%"):
        value, name = re.search(rf"{share}\s+([\d.]+)(us|ms|s)", out).groups()
        of[share] = float(value) * unit[name]
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)), of["50%"], of["99%"]


def columns_of(url):
    metadata = json.load(urllib.request.urlopen(f"{url}/v2/models/adult"))
    return metadata["inputs"], metadata["outputs"]


def json_body(inputs, examples):
    draw = random.Random(1)

    def value(column):
        if column["datatype"].startswith("FP"):
            return [round(draw.uniform(-2, 2), 4) for _ in range(column["shape"][1])]
        return draw.randrange(3)

    instances = [{column["name"]: value(column) for column in inputs} for _ in range(examples)]
    return json.dumps({"instances": instances}, separators=(",", ":")).encode()


def binary_body(inputs, outputs, examples):
    draw = random.Random(1)
    tensors, head = b"", []
    for column in inputs:
        width = column["shape"][1] if len(column["shape"]) > 1 else 1
        if column["datatype"] == "FP32":
            data = struct.pack(f"<{examples * width}f", *(draw.uniform(-2, 2) for _ in range(examples * width)))
        else:
            ids = (draw.randrange(3 if width == 1 else 100_000) for _ in range(examples * width))
            data = struct.pack(f"<{examples * width}q", *ids)
        shape = [examples, *column["shape"][1:]]
        head.append(
            {
                "name": column["name"],
                "shape": shape,
                "datatype": column["datatype"],
                "parameters": {"binary_data_size": len(data)},
            }
        )
        tensors += data
    asked = [{"name": output["name"], "parameters": {"binary_data": True}} for output in outputs]
    text = json.dumps({"inputs": head, "outputs": asked}).encode()
    text += b" " * (-len(text) % 8)  # tensors on boundaries of 8 bytes are not copied
    return text + tensors, {"Inference-Header-Content-Length": len(text)}


def raw_lines(count):
    lines = [line for line in gzip.open(ADULT, "rt") if line.strip() and not line.startswith("|")]
    return "".join(lines[:count])


def predict_rate(tree, model, folder):
    """Lines a second of `cairn predict`: of many lines less of few, so that the start does not count."""
    many, few = pathlib.Path(folder, "many.csv"), pathlib.Path(folder, "few.csv")
    if not many.exists():
        lines = raw_lines(16_000)
        many.write_text(lines * 20, encoding="utf-8")
        few.write_text(raw_lines(64), encoding="utf-8")

    def run(file):
        began = time.perf_counter()
        command = [tree / "bin/cairn", "predict", model, "--data", file, "--out", f"{folder}/out.csv", "--overwrite"]
        on_core(0, [*command, "--batch", "64"], stdout=subprocess.DEVNULL).wait()
        return time.perf_counter() - began

    return 320_000 / (run(many) - run(few))


class Figures:
    def __init__(self):
        self.windows = {}

    def add(self, name, value):
        self.windows.setdefault(name, []).append(value)

    def median(self, name):
        return statistics.median(self.windows[name])

    def told(self, name):
        values = self.windows[name]
        return f"{self.median(name):,.4g} ({min(values):,.4g} to {max(values):,.4g})"

    def ratio(self, what, name, limit, goal):
        print(
            f"{what:46} {self.told(name)}; {limit} {self.told(limit)}; "
            f"ratio {self.median(name) / self.median(limit):.2f} (goal {goal})",
            flush=True,
        )


def window(figures, tree, model, folder, seconds):
    with Server([tree / "bin/cairn-bench-fixed-http"], r"(\d+)") as fixed:
        rate, _, p99 = wrk(fixed.url + "/", seconds, 32)
        figures.add("fixed answer, 1/s", rate)
        figures.add("fixed answer, p99 ms", p99)
    run = on_core(0, [tree / "bin/cairn-bench-loaded-model", f"{model}/model", 64, 1], stdout=subprocess.PIPE)
    figures.add("LoadedModel at 64, examples/s", float(run.communicate()[0]))
    figures.add("cairn predict, lines/s", predict_rate(tree, model, folder))
    command = [tree / "bin/cairn", "serve", f"adult={model}", "--port", "0", "--threads", "1"]
    with Server(command, r"serving at http://[^:]*:(\d+)") as server:
        inputs, outputs = columns_of(server.url)
        predict = f"{server.url}/v1/models/adult:predict"
        wrk(predict, 1, 32, json_body(inputs, 1))  # the first second makes graphs ready for their shapes
        rate, _, p99 = wrk(predict, seconds, 32, json_body(inputs, 1))
        figures.add("JSON of 1, requests/s", rate)
        figures.add("JSON of 1, p99 ms", p99)
        rate, _, _ = wrk(predict, seconds, 8, json_body(inputs, 64))
        figures.add("JSON of 64, examples/s", 64 * rate)
        body, headers = binary_body(inputs, outputs, 64)
        rate, _, _ = wrk(f"{server.url}/v2/models/adult/infer", seconds, 8, body, headers)
        figures.add("binary of 64, examples/s", 64 * rate)
        rate, _, _ = wrk(f"{predict}?raw", seconds, 8, raw_lines(64).encode())
        figures.add("raw CSV of 64, lines/s", 64 * rate)


QUERIES = (1, 16)  # that are looked up together


def candidates(figures, tree):
    """The best 100 of 200,000 candidates of 32 numbers, and one matrix product of that size: queries a second."""
    told = on_core(0, [tree / "bin/cairn-bench-candidates"], stdout=subprocess.PIPE).communicate()[0]
    for each in map(json.loads, told.splitlines()):
        if each["queries"] in QUERIES:
            figures.add(f"top 100 of 200,000, {each['queries']} at once, queries/s", each["best"])
            figures.add(f"one product, {each['queries']} at once, queries/s", each["product"])


def memory_mb(process, name):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return int(re.search(rf"{name}:\s+(\d+)", status.read()).group(1)) / 1024


def swap(tree, folder, rows, seconds):
    """Takes a version of a large model in while it is asked, and says what that costs."""
    place = pathlib.Path(folder, "dlrm")
    subprocess.run([tree / "bin/cairn-bench-large-model", place, str(rows)], check=True)
    following = pathlib.Path(folder, "next")
    (place / "next").rename(following)
    command = [tree / "bin/cairn", "serve", f"adult={place}", "--port", "0", "--threads", "1", "--look-every", "0"]
    with Server(command, r"serving at http://[^:]*:(\d+)") as server:
        inputs, outputs = columns_of(server.url)
        body, headers = binary_body(inputs, outputs, 64)
        infer = f"{server.url}/v2/models/adult/infer"
        wrk(infer, seconds, 4, body, headers)
        _, _, before = wrk(infer, seconds, 4, body, headers)
        held = memory_mb(server.process, "VmRSS")
        following.rename(place / "2")
        asked = subprocess.Popen(["curl", "-s", "-d", "{}", f"{server.url}/v2/repository/reload"], stdout=subprocess.PIPE)
        began = time.perf_counter()
        _, _, during = wrk(infer, 600, 4, body, headers, until=asked)
        took = time.perf_counter() - began
        top = memory_mb(server.process, "VmHWM")
        time.sleep(1)
        print(
            f"a version of {rows:,} rows x 32 taken in: {took:.1f} s; p99 {during:.2f} ms, before {before:.2f} ms; "
            f"ratio {during / before:.2f} (goal at most 2); memory {held:.0f} MB, at its top {top:.0f} MB "
            f"({top / held:.2f}; goal at most 1.1), afterwards {memory_mb(server.process, 'VmRSS'):.0f} MB",
            flush=True,
        )


def polite(url, seconds):
    """What one client waits for that asks for one row at a time, in ms: the 99th percentile; all are answered."""
    host, path = url.removeprefix("http://").split("/", 1)
    connection = http.client.HTTPConnection(host)
    line, took = raw_lines(1), []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        connection.request("POST", f"/{path}", line, {"Content-Type": "text/csv"})
        response = connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise SystemExit(f"a client that asks for little is refused during a flood: {response.status} {answer}")
        took.append(1e3 * (time.perf_counter() - began))
        time.sleep(0.002)
    return statistics.quantiles(took, n=100)[98]


def flood(figures, tree, model, seconds):
    """512 connections that ask for 64 rows each as fast as they can, and a client that asks for one now and then."""
    command = [tree / "bin/cairn", "serve", f"adult={model}", "--port", "0", "--threads", "1", "--queue", "4096"]
    with Server(command, r"serving at http://[^:]*:(\d+)") as server:
        url = f"{server.url}/v1/models/adult:predict?raw"
        polite(url, 1)
        figures.add("a polite client, p99 ms", polite(url, seconds))
        asked = (url, seconds + 2, 512, raw_lines(64).encode())
        flooding = threading.Thread(target=wrk, args=asked, kwargs={"refused": True})
        flooding.start()
        time.sleep(1)
        figures.add("a polite client during a flood, p99 ms", polite(url, seconds))
        flooding.join()
        figures.add("memory during a flood, MB", memory_mb(server.process, "VmHWM"))


EXPONENT = 1.2  # of the power law


def limited(figures, tree, model, rows, windows, seconds):
    """A large model of which a quarter fits into memory, beside the same with all of it in memory."""
    limit_mb = rows * 32 * 4 / 4 / 1e6
    for _ in range(windows):
        for name, limit in (("all in memory", "none"), ("a quarter in memory", f"{limit_mb} MB")):
            command = [tree / "bin/cairn-bench-limited-model", model, limit, seconds, EXPONENT]
            told = json.loads(on_core(0, command, stdout=subprocess.PIPE).communicate()[0].splitlines()[-1])
            figures.add(f"{name}, examples/s", told["examples_per_s"])
            figures.add(f"{name}, MB at the top", told["top_mb"])
            figures.add(f"{name}, hits", told["hit_rate"])
    print(
        f"{rows:,} rows x 32 with a limit of {limit_mb:.0f} MB, power law of exponent {EXPONENT}: hits "
        f"{figures.told('a quarter in memory, hits')} (goal 0.95); memory at its top "
        f"{figures.told('a quarter in memory, MB at the top')} MB, without a limit "
        f"{figures.told('all in memory, MB at the top')} MB",
        flush=True,
    )


def followed(figures, tree, windows, seconds):
    """Rows that a run changes, in the answers of a server that follows it."""
    command = [ROOT / "build/python/bin/python", ROOT / "bench/serving/followed.py", tree]
    environment = dict(os.environ, PYTHONPATH=str(tree / "python"), CAIRN_CUDA_LIBRARY="none")
    told = subprocess.run(
        [*map(str, command), "--windows", str(windows), "--seconds", str(seconds)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ).stdout
    for line in told.splitlines():
        figure = json.loads(line)
        figures.add(figure["name"], figure["value"])
    print(
        f"205,000 changed rows/s followed: a marked row is in an answer after {figures.told('a marked row, p50 ms')} ms, "
        f"p99 {figures.told('a marked row, p99 ms')} ms (goal 300), at the latest "
        f"{figures.told('a marked row, longest ms')} ms (goal 1,000)",
        flush=True,
    )


def record(figures, file):
    """Appends each figure as a line, as cairn-bench writes them."""
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii")).group(1)
    with open(file, "a", encoding="utf-8") as lines:
        for name, values in figures.windows.items():
            line = {"bench": "serving", "configuration": name, "median": figures.median(name)}
            line |= {"min": min(values), "max": max(values), "windows": len(values)}
            line |= {"machine": f"{model}, {os.cpu_count()} cores", "commit": commit.strip()}
            line["date"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            lines.write(json.dumps(line, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each figure in a window")
    parser.add_argument("--rows", type=int, default=10_600_000, help="of the large model; 0: leave it out")
    parser.add_argument("--record", action="store_true", help="append the figures to bench/history.jsonl")
    options = parser.parse_args()
    tree = options.tree.resolve()
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/adult"
        job = ROOT / "examples" / "adult.toml"
        subprocess.run(
            [tree / "bin/cairn", "train", job, "--dir", model],
            check=True,
            stdout=subprocess.DEVNULL,
            env=dict(os.environ, CAIRN_CUDA_LIBRARY="none"),
        )
        for _ in range(options.windows):
            window(figures, tree, model, folder, options.seconds)
            flood(figures, tree, model, options.seconds)
            candidates(figures, tree)
        if options.rows > 0:
            swap(tree, folder, options.rows, options.seconds)
            limited(figures, tree, f"{folder}/dlrm/1", options.rows, options.windows, options.seconds)
    followed(figures, tree, options.windows, options.seconds)
    if options.record:
        record(figures, ROOT / "bench/history.jsonl")
    figures.ratio("one example a request, JSON, 32 connections", "JSON of 1, requests/s", "fixed answer, 1/s", "0.5")
    figures.ratio("its p99, in milliseconds", "JSON of 1, p99 ms", "fixed answer, p99 ms", "at most 4, and 2 ms")
    figures.ratio("64 examples a request, JSON", "JSON of 64, examples/s", "LoadedModel at 64, examples/s", "0.2")
    figures.ratio("64 examples, binary tensors", "binary of 64, examples/s", "LoadedModel at 64, examples/s", "0.5")
    if options.rows > 0:
        quarter, whole = "a quarter in memory, examples/s", "all in memory, examples/s"
        figures.ratio("a table of which a quarter fits", quarter, whole, "0.6")
    figures.ratio("p99 in ms while rows are followed", "followed, p99 ms", "not followed, p99 ms", "at most 2")
    figures.ratio("a trainer that is followed", "trainer followed, steps/s", "trainer not followed, steps/s", "0.95")
    for count in QUERIES:
        best, product = (f"{of}, {count} at once, queries/s" for of in ("top 100 of 200,000", "one product"))
        figures.ratio(f"the best 100 of 200,000, {count} at once", best, product, "0.5")
    flooded = "a polite client during a flood, p99 ms"
    figures.ratio("a polite client during a flood", flooded, "a polite client, p99 ms", "at most 5")
    figures.ratio("64 lines of CSV", "raw CSV of 64, lines/s", "cairn predict, lines/s", "0.6")


if __name__ == "__main__":
    main()
