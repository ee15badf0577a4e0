"""Workloads of `tools/bench python`: each prints its figures of one window as JSON, a line each.

    workloads.py closures | latency | wide-deep DATA | calls | table ROWS
    workloads.py perceptron | convolutional | attention      as cairn-bench-fit wants them: examples/s alone
"""

import contextlib
import json
import os
import statistics
import sys
import tempfile
import threading
import time

import numpy as np

import cairn


def tell(name, value, unit):
    print(json.dumps({"name": name, "value": value, "unit": unit}), flush=True)


def seconds(act):
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


@contextlib.contextmanager
def small_cluster():
    with cairn.LocalCluster(ps=1, workers=1) as cluster:
        strategy = cluster.strategy()
        yield strategy, cairn.ClusterCoordinator(strategy)


def closures_a_second(coordinator, step, count):
    def act():
        for _ in range(count):
            coordinator.schedule(step)
        coordinator.join()

    return count / seconds(act)


def closures():
    with small_cluster() as (strategy, coordinator):

        @strategy.function
        def nothing():
            pass

        closures_a_second(coordinator, nothing, 1_000_000)  # memory is there from then on, as in cairn-bench
        tell("closures", closures_a_second(coordinator, nothing, 1_000_000), "/s")
        stop = threading.Event()

        def count():
            number = 0
            while not stop.is_set():
                number += 1

        busy = threading.Thread(target=count)
        busy.start()
        tell("closures beside a busy thread", closures_a_second(coordinator, nothing, 300_000), "/s")
        stop.set()
        busy.join()


def latency():
    with small_cluster() as (strategy, coordinator):

        @strategy.function
        def constant():
            return cairn.Array(1.0)

        def fetched_one_by_one(length):
            each, end = [], time.perf_counter() + length
            while time.perf_counter() < end:
                each.append(seconds(lambda: coordinator.schedule(constant).get()))
            return each

        fetched_one_by_one(0.5)  # as cairn-bench warms up
        tell("schedule to fetch, p50", 1e6 * statistics.median(fetched_one_by_one(1)), "us")


def wide_deep_logits():
    tables = [cairn.nn.Embedding(1000, 8, name=f"deep{i}") for i in range(8)]
    wide = cairn.nn.Embedding(28_000, 1, combiner="sum", name="wide")
    numbers = cairn.nn.Dense(1, use_bias=False, kernel_initializer="zeros", name="wide_numbers")
    tower = cairn.nn.Mlp([128, 64, 1])

    def logits(features):
        ids = features["deep_id"]
        deep = [table(ids[:, i]) for i, table in enumerate(tables)]
        x = features["numeric"]
        return tower(cairn.concat([*deep, x], 1)) + wide(features["wide_id"]) + numbers(x)

    return logits


def wide_deep(data):
    field = cairn.RecordField
    fields = [
        field("label", "float32"),
        field("numeric", "float32", 8),
        field("deep_id", "int32", 8),
        field("wide_id", "int32", 10),
    ]
    with cairn.LocalCluster(ps=1, workers=1) as cluster:
        strategy = cluster.strategy(seed=1)
        coordinator = cairn.ClusterCoordinator(strategy)
        with strategy.scope():
            logits = wide_deep_logits()
            optimizer = cairn.optimizers.Adagrad(0.02)

        @strategy.function
        def train(batches):
            features, label = batches.get_next()
            loss = cairn.mean(cairn.nn.sigmoid_cross_entropy(logits(features), label))
            optimizer.minimize(loss)
            return loss

        batches = coordinator.create_per_worker_dataset(
            lambda context: cairn.Dataset.records(data, fields, label="label").repeat().batch(256).prefetch(2)
        )

        def run(steps):
            def act():
                for _ in range(steps):
                    coordinator.schedule(train, (batches,))
                coordinator.join()

            return seconds(act)

        run(500)
        tell("wide-deep", 256 * 10_000 / run(10_000), "examples/s")


def calls():
    x = cairn.Array([1.0])

    def record():
        for _ in range(20_000):
            x + x

    tell("an operation recorded", 1e6 * seconds(record) / 20_000, "us")
    cairn.Array(np.zeros(2, "float32"))
    large = np.zeros(25_000_000, "float32")
    large.flags.writeable = False
    tell("100 MB in from NumPy", 1e3 * seconds(lambda: cairn.Array(large)), "ms")
    array = cairn.Array(large)
    tell("100 MB out to NumPy", 1e3 * seconds(array.numpy), "ms")
    import pyarrow as pa

    cairn.Dataset.from_table(pa.table({"x": pa.array([1.0], "float32")}))
    table = pa.table({"x": pa.array(large)})
    tell("100 MB in from Arrow", 1e3 * seconds(lambda: cairn.Dataset.from_table(table)), "ms")


def frame_of(rows):
    import polars as pl

    random = np.random.default_rng(0)
    columns = {f"x{i}": random.random(rows, "float32") for i in range(8)}
    columns |= {f"id{i}": random.integers(0, 1000, rows, dtype="int64") for i in range(2)}
    frame = pl.DataFrame(columns)
    names = pl.Series("name", [f"name {i}" for i in range(1000)])
    return frame.with_columns(names[random.integers(0, 1000, rows)].alias("name"))


def examples_a_second(coordinator, step, batches, steps):
    def act():
        for _ in range(steps):
            coordinator.schedule(step, (batches,))
        coordinator.join()

    act()
    return 256 * steps / seconds(act)


def table(rows):
    frame = frame_of(rows)
    made = []
    tell("a table ready in one process", seconds(lambda: made.append(cairn.Dataset.from_table(frame))), "s")
    with tempfile.TemporaryDirectory() as folder, cairn.LocalCluster(ps=1, workers=1) as cluster:
        strategy = cluster.strategy()
        coordinator = cairn.ClusterCoordinator(strategy)

        @strategy.function
        def total(batches):
            batch = batches.get_next()
            ids = cairn.mean(cairn.cast(batch["id0"], "float32"))
            return ids + sum(cairn.mean(batch[f"x{i}"]) for i in range(8))

        spilled = []
        tell("a table ready under ps", seconds(lambda: spilled.append(made[0].spill(folder))), "s")
        records = os.path.join(folder, "rows.bin")
        kinds = [(f"x{i}", "<f4") for i in range(8)] + [(f"id{i}", "<i4") for i in range(2)]
        all_rows = np.empty(rows, kinds)
        for name, _ in kinds:
            all_rows[name] = frame[name].to_numpy()
        all_rows.tofile(records)
        del all_rows
        columns = [cairn.RecordField(f"x{i}", "float32") for i in range(8)]
        columns += [cairn.RecordField(f"id{i}", "int32") for i in range(2)]
        datasets = {"a table": spilled[0], "a records file": cairn.Dataset.records(records, columns)}
        for name, dataset in datasets.items():
            batches = coordinator.create_per_worker_dataset(lambda _, of=dataset: of.repeat().batch(256).prefetch(2))
            tell(f"{name}, examples", examples_a_second(coordinator, total, batches, 10_000), "/s")


def attention():
    size, time_steps, width = 65, 64, 64
    nn = cairn.nn
    characters, positions = nn.Embedding(size, width, name="characters"), nn.PositionalEmbedding(time_steps)
    heads = nn.MultiHeadAttention(4, 16, causal=True)
    first, second = nn.LayerNormalization(name="first"), nn.LayerNormalization(name="second")
    wide, narrow = nn.Dense(256, activation="relu", name="wide"), nn.Dense(width, name="narrow")
    logits = nn.Dense(size, name="logits")

    def network(ids):
        x = positions(characters(ids))
        x = first(x + heads(x))
        return logits(second(x + narrow(wide(x))))

    def loss(prediction, label):
        each = cairn.nn.sparse_softmax_cross_entropy(
            cairn.reshape(prediction, (None, size)), cairn.reshape(label, (None,))
        )
        return cairn.reduce_mean(cairn.reshape(each, (None, time_steps)), 1)

    return network, loss


def fit(name):
    random, steps = np.random.default_rng(1), 150
    loss = cairn.losses.SparseCategoricalCrossentropy(from_logits=True)
    nn = cairn.nn
    if name == "perceptron":
        batch, network = 128, nn.Mlp([128, 10])
        x, y = random.random((batch * steps, 784), "float32"), random.integers(0, 10, batch * steps, dtype="int32")
    elif name == "convolutional":
        batch = 64
        network = nn.Sequential(
            [
                nn.Conv2D(16, 3, activation="relu"),
                nn.MaxPooling2D(),
                nn.Conv2D(32, 3, activation="relu"),
                nn.MaxPooling2D(),
                nn.Flatten(),
                nn.Dense(10),
            ]
        )
        x = random.random((batch * steps, 28, 28, 1), "float32")
        y = random.integers(0, 10, batch * steps, dtype="int32")
    else:
        batch = 16
        network, loss = attention()
        x, y = (random.integers(0, 65, (batch * steps, 64), dtype="int32") for _ in range(2))
    for each in (x, y):
        each.flags.writeable = False  # else fit copies it
    with cairn.OneDeviceStrategy().scope():
        model = cairn.Model(network)
        model.compile(optimizer=cairn.optimizers.Adam(0.001), loss=loss)
        model.fit(x, y, batch_size=batch, verbose=0)
        print(batch * steps / seconds(lambda: model.fit(x, y, batch_size=batch, verbose=0)))


def main():
    cairn.set_log_level("warning")
    name, *rest = sys.argv[1:]
    if name == "closures":
        closures()
    elif name == "latency":
        latency()
    elif name == "wide-deep":
        wide_deep(*rest)
    elif name == "calls":
        calls()
    elif name == "table":
        table(int(rest[0]))
    elif name in ("perceptron", "convolutional", "attention"):
        fit(name)
    else:
        sys.exit(f"no workload is called {name}")


if __name__ == "__main__":
    main()
