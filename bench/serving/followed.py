"""A table that is trained while a server follows it: `tools/bench serving` runs it in the package's environment.

    followed.py TREE [--windows N] [--seconds S]

A JSON line for each figure. 1 M rows of 32 floats on one ps, of which a worker changes 2,048 random ones a step:
100 steps a second, 205,000 rows, are what the server follows while it answers, and as many as it can while the
trainer's own rate is measured.
"""

import argparse
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

import numpy as np

import cairn

ROWS, DIM, STEP, STEPS_PER_S = 1_000_000, 32, 2048, 100
MARKS = 1_000  # rows below this one are not trained
IN_FLIGHT = 8  # steps


class Training:
    """Steps at a pace, or as fast as they go, from its beginning to its end."""

    def __init__(self, coordinator, step, steps_per_s=None):
        self.coordinator, self.step, self.steps_per_s = coordinator, step, steps_per_s
        self.steps, self.ended = 0, threading.Event()
        self.thread = threading.Thread(target=self.train)

    def train(self):
        random = np.random.default_rng(1)
        batches = [np.sort(random.choice(ROWS - MARKS, STEP, replace=False)) + MARKS for _ in range(64)]
        began, under_way = time.perf_counter(), []
        while not self.ended.is_set():
            under_way.append(self.coordinator.schedule(self.step, (batches[self.steps % len(batches)],)))
            if len(under_way) > IN_FLIGHT:
                under_way.pop(0).get()
            self.steps += 1
            if self.steps_per_s:
                self.ended.wait(max(0, began + self.steps / self.steps_per_s - time.perf_counter()))
        for step in under_way:
            step.get()

    def rate(self, seconds):
        before, began = self.steps, time.perf_counter()
        time.sleep(seconds)
        return (self.steps - before) / (time.perf_counter() - began)

    def __enter__(self):
        self.thread.start()
        time.sleep(1)
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


class Server:
    def __init__(self, tree, *arguments):
        command = [tree / "bin/cairn", "serve", *arguments, "--port", "0", "--threads", "1"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if line.startswith("serving at"):
                self.connection = http.client.HTTPConnection("127.0.0.1", int(line.rsplit(":", 1)[1]))
                return
        raise RuntimeError("cairn serve ended before it served")

    def ask(self, row):
        self.connection.request("POST", "/v1/models/rows:predict", json.dumps({"instances": [int(row)]}))
        answer = self.connection.getresponse()
        return json.loads(answer.read())["predictions"][0]

    def p99_ms(self, seconds):
        rows, took = np.random.default_rng(3).integers(0, ROWS, 1000), []
        ends = time.perf_counter() + seconds
        while time.perf_counter() < ends:
            began = time.perf_counter()
            self.ask(rows[len(took) % len(rows)])
            took.append(time.perf_counter() - began)
        return 1e3 * statistics.quantiles(took, n=100)[98]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()


def tell(name, value):
    print(json.dumps({"name": name, "value": value}), flush=True)


def marks(server, table):
    """How long after its push each marked row is in an answer, in milliseconds."""
    took = []
    for row in range(MARKS):
        value = 1.0 + time.perf_counter() % 1000
        table.scatter_update(np.array([row]), np.full((1, DIM), value, "float32"))
        began = time.perf_counter()
        while abs(server.ask(row) - DIM * value) > 1e-3 * value:
            assert time.perf_counter() < began + 10, f"row {row} did not come"
        took.append(1e3 * (time.perf_counter() - began))
    tell("a marked row, p50 ms", statistics.median(took))
    tell("a marked row, p99 ms", statistics.quantiles(took, n=100)[98])
    tell("a marked row, longest ms", max(took))


def window(tree, run, model, coordinator, step, table, seconds):
    followed = f"rows={model}", "--follow", f"rows={run}"
    with Training(coordinator, step, STEPS_PER_S) as training:
        with Server(tree, *followed) as server:
            server.p99_ms(1)
            tell("followed, p99 ms", server.p99_ms(seconds))
            tell("steps/s", training.rate(1))
            marks(server, table)
        with Server(tree, f"rows={model}") as server:
            server.p99_ms(1)
            tell("not followed, p99 ms", server.p99_ms(seconds))
    with Training(coordinator, step) as training:
        for follows in (False, True, True, False):  # the machine's own speed drifts from second to second
            with Server(tree, *((*followed, "--follow-rate", "25") if follows else followed[:1])):
                time.sleep(1)
                tell(f"trainer {'' if follows else 'not '}followed, steps/s", training.rate(seconds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    cairn.set_log_level("warning")
    os.environ["CAIRN_PROGRAMS"] = str(options.tree / "bin")
    with tempfile.TemporaryDirectory() as folder, cairn.LocalCluster(ps=1, workers=1, folder=f"{folder}/run") as cluster:
        strategy = cluster.strategy()
        coordinator = cairn.ClusterCoordinator(strategy)
        with strategy.scope():
            layer = cairn.nn.Embedding(ROWS, DIM, name="rows")
            model = cairn.Model(lambda ids: cairn.reduce_sum(layer(ids), [-1]), name="rows")
            model.build({"id": np.zeros(2, "int64")})
        (table,) = model.variables

        @strategy.function
        def step(ids):
            table.scatter_add(ids, np.ones((STEP, DIM), "float32"))

        model.save(f"{folder}/model")
        for _ in range(options.windows):
            window(options.tree, f"{folder}/run", f"{folder}/model", coordinator, step, table, options.seconds)


if __name__ == "__main__":
    main()
