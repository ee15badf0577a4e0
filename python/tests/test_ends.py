"""Programs that end in every way: the right exit status, no `terminate`, no leak told, no process left.

    CAIRN_ENDS=500 python -m pytest test_ends.py     more of them than the suite runs
"""

import os
import random
import signal
import subprocess
import sys
import textwrap

import pytest

ENDS = int(os.environ.get("CAIRN_ENDS", "16"))

HEAD = """
import sys, threading
import numpy as np
import cairn
"""
CLUSTER = """
cluster = cairn.LocalCluster(ps=1, workers=1)
strategy = cluster.strategy()
coordinator = cairn.ClusterCoordinator(strategy)
with strategy.scope():
    table = cairn.Variable(np.zeros((64, 8), "float32"), name="table")
@strategy.function
def step(x):
    table.scatter_add(np.arange(8), np.ones((8, 8), "float32"))
    return cairn.reduce_sum(x)
values = [coordinator.schedule(step, (np.ones(256, "float32"),)) for _ in range(1000)]
"""
LOCAL = """
strategy = cairn.OneDeviceStrategy()
with strategy.scope():
    model = cairn.Model(cairn.nn.Mlp([64, 64, 1]))
    model.compile(optimizer="adam", loss="mse")
x = np.random.default_rng(0).normal(size=(4096, 16)).astype("float32")
y = x.sum(axis=1)
"""
CYCLE = """
class Holder:
    pass
holder = Holder()
holder.strategy, holder.itself = strategy, holder
@strategy.function
def looking(x):
    return x + (1.0 if holder else 2.0)
holder.function = looking
"""
DAEMON = """
def turn():
    while True:
        np.asarray(cairn.exp(cairn.Array([1.0])))
threading.Thread(target=turn, daemon=True).start()
"""
FIT = """
print("fitting", flush=True)
model.fit(x, y, epochs=100000, batch_size=32, verbose=0)
"""
JOIN = """
print("joining", flush=True)
while True:
    for _ in range(1000):
        coordinator.schedule(step, (np.ones(256, "float32"),))
    coordinator.join()
"""
# What is done last, and the exit status.
LAST = {
    "": 0,
    "sys.exit(3)": 3,
    "raise ValueError('on purpose')": 1,
    "del strategy": 0,
    "strategy.close()": 0,
    "raise SystemExit('a text')": 1,
}


def program(random):
    """A program, the line at which it is interrupted (or None), and its exit status."""
    cluster = random.random() < 0.6
    text = HEAD + (CLUSTER if cluster else LOCAL)
    if random.random() < 0.5:
        text += CYCLE
    if random.random() < 0.5:
        text += DAEMON
    if random.random() < 0.4:
        return text + (JOIN if cluster else FIT), "joining" if cluster else "fitting", 130
    last = random.choice(sorted(LAST))
    return text + last + "\n", None, LAST[last]


def processes_of(pid):
    """The ps and workers that the process has started and that still run."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if f"CAIRN_END_OF={pid}".encode() in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return found


def test_a_program_that_imports_in_another_thread_ends_in_order():
    text = """
import threading
def use():
    global cairn
    import cairn
    cairn.exp(1.0).item()
thread = threading.Thread(target=use)
thread.start()
thread.join()
print(cairn.exp(0.0).item())
"""
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "1.0\n", "")


@pytest.mark.parametrize("seed", range(ENDS))
def test_a_program_ends_in_order(seed):
    drawn = random.Random(seed)
    text, interrupted_at, status = program(drawn)
    mark = f"{os.getpid()}-{seed}"
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(text)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "CAIRN_END_OF": mark},
    )
    try:
        if interrupted_at:
            assert process.stdout.readline().strip() == interrupted_at
            with pytest.raises(subprocess.TimeoutExpired):  # it does not end by itself
                process.wait(drawn.uniform(0.001, 0.5))
            process.send_signal(signal.SIGINT)
        said, error = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    code = 130 if process.returncode == -signal.SIGINT else process.returncode
    assert code == status, f"{text}\n{error}"
    for word in ("terminate", "leak", "Fatal", "Segmentation"):
        assert word not in error, f"{text}\n{error}"
    assert processes_of(mark) == [], text
