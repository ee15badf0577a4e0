"""What Python adds to a call: closures a second, a fetch, an operation recorded, 100 MB in and out.

    PYTHONPATH=build/dev/python CAIRN_PROGRAMS=build/dev/bin build/python/bin/python bench/python/measure.py [--windows N]

Medians of N windows (7), with the least and the most. Beside it, in the same minute, `cairn-bench closures latency` says what
C++ does.
"""
import argparse
import statistics
import threading
import time

import numpy as np

import cairn


def told(name, values, unit):
    low, middle, high = min(values), statistics.median(values), max(values)
    print(f"{name:44} {middle:12,.3f} {unit}   ({low:,.3f} - {high:,.3f})", flush=True)


def seconds(act):
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def closures(coordinator, step, count, args=None):
    def act():
        for _ in range(count):
            coordinator.schedule(step, args)
        coordinator.join()

    return count / seconds(act)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int, default=7)
    windows = parser.parse_args().windows
    cairn.set_log_level("warning")

    with cairn.LocalCluster(ps=1, workers=1) as cluster:
        strategy = cluster.strategy()
        coordinator = cairn.ClusterCoordinator(strategy)

        @strategy.function
        def nothing():
            pass

        @strategy.function
        def one(x):
            return x

        kilobyte = np.zeros(256, "float32")
        closures(coordinator, nothing, 20000)
        told("closures without arguments", [closures(coordinator, nothing, 200000) for _ in range(windows)], "/s")
        told("closures with 1 KB", [closures(coordinator, one, 50000, (kilobyte,)) for _ in range(windows)], "/s")

        stop = threading.Event()

        def count():
            number = 0
            while not stop.is_set():
                number += 1

        busy = threading.Thread(target=count)
        busy.start()
        told("closures beside a busy thread", [closures(coordinator, nothing, 100000) for _ in range(windows)], "/s")
        stop.set()
        busy.join()

        fetches = []
        for _ in range(windows):
            each = [seconds(lambda: coordinator.schedule(one, (1.0,)).get()) for _ in range(2000)]
            fetches.append(1e6 * statistics.median(each))
        told("schedule to fetch, p50", fetches, "us")

    x = cairn.Array([1.0])

    def recorded(count=20000):
        y = x
        for _ in range(count):
            y = x + x
        return y

    told("an operation recorded", [1e6 * seconds(recorded) / 20000 for _ in range(windows)], "us")
    large = np.zeros(25_000_000, "float32")
    large.flags.writeable = False
    told("100 MB in", [1e3 * seconds(lambda: cairn.Array(large)) for _ in range(windows)], "ms")
    array = cairn.Array(large)
    told("100 MB out", [1e3 * seconds(lambda: array.numpy()) for _ in range(windows)], "ms")


if __name__ == "__main__":
    main()
