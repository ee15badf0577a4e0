"""Parameter servers from Python: closures, waits, Ctrl-C, ends."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import cairn


@pytest.fixture(scope="module")
def cluster():
    with cairn.LocalCluster(ps=1, workers=1) as made:
        yield made


def stop(pid):
    """Stops a process, and returns when each of its threads stands still: they do so one after another."""
    os.kill(pid, signal.SIGSTOP)
    while True:
        states = []
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8") as file:
                states.append(file.read().rpartition(")")[2].split()[0])
        if set(states) == {"T"}:
            return


@pytest.fixture(scope="module")
def strategy(cluster):
    return cluster.strategy()


@pytest.fixture(scope="module")
def coordinator(strategy):
    return cairn.ClusterCoordinator(strategy)


def test_closures_run_on_workers_and_give_what_the_function_returned(strategy, coordinator):
    @strategy.function
    def step(x, y):
        return {"sum": x + y, "all": [x, y]}

    values = [coordinator.schedule(step, (float(i), 1.0)) for i in range(20)]
    coordinator.join()
    assert [value.get()["sum"].item() for value in values] == [i + 1 for i in range(20)]
    fetched = coordinator.fetch({"last": values[-1], "else": [values[0]]})
    assert fetched["last"]["all"][0].item() == 19
    assert fetched["else"][0]["sum"].item() == 1


def test_updates_count_once(strategy, coordinator):
    with strategy.scope():
        v = cairn.Variable(np.zeros(3, "float32"), name="counter")

    @strategy.function
    def count():
        v.assign_add(np.ones(3, "float32"))

    for _ in range(50):
        coordinator.schedule(count)
    coordinator.join()
    assert v.numpy().tolist() == [50, 50, 50]


def test_each_element_of_a_shared_dataset_goes_to_one_closure(strategy, coordinator):
    @strategy.function
    def step(batches):
        return batches.get_next()["value"]

    data = coordinator.create_shared_dataset(cairn.Dataset.range(100).batch(10))
    values = [coordinator.schedule(step, (data,)) for _ in range(10)]
    coordinator.join()
    assert sorted(np.concatenate([value.get() for value in values]).tolist()) == list(range(100))


def test_an_error_of_a_worker_names_the_line_here(strategy, coordinator):
    with strategy.scope():
        table = cairn.Variable(np.zeros((4, 2), "float32"), name="rows")

    @strategy.function
    def look(ids):
        return table.gather(ids)

    coordinator.schedule(look, (np.array([9]),))
    with pytest.raises(cairn.InvalidArgumentError, match=r"test_cluster\.py:\d+, in look: gather_variable") as caught:
        coordinator.join()
    assert caught.value.origin.split(":")[0].endswith("test_cluster.py")
    coordinator.join()  # raised once


def test_a_timeout_is_python_s_own(strategy, coordinator, cluster):
    @strategy.function
    def step():
        return cairn.Array(1.0)

    stop(cluster.pids["worker:0"])
    try:
        value = coordinator.schedule(step)
        with pytest.raises(TimeoutError):
            value.get(timeout=0.2)
    finally:
        os.kill(cluster.pids["worker:0"], signal.SIGCONT)
    assert value.get() == 1


def test_ctrl_c_gives_a_wait_up_and_leaves_the_coordinator_usable(strategy, coordinator, cluster):
    @strategy.function
    def step(x):
        return x + 1.0

    for wait in (coordinator.join, lambda: coordinator.fetch(value)):
        stop(cluster.pids["worker:0"])
        try:
            value = coordinator.schedule(step, (1.0,))
            sent = []

            def press():
                sent.append(time.monotonic())
                signal.raise_signal(signal.SIGINT)

            threading.Timer(0.3, press).start()
            with pytest.raises(KeyboardInterrupt):
                wait()
            assert time.monotonic() - sent[0] < 10  # 0.1 s, on a machine with nothing else to do
        finally:
            os.kill(cluster.pids["worker:0"], signal.SIGCONT)
        coordinator.join()
        assert value.get() == 2


def test_a_notebook_sees_tasks_and_closures_of_a_coordinator(strategy, coordinator):
    @strategy.function
    def step():
        return cairn.Array(1.0)

    coordinator.schedule(step)
    coordinator.join()
    html = coordinator._repr_html_()
    assert "<td>/job:ps/task:0</td>" in html and "<td>/job:worker/task:0</td>" in html and "<td>up</td>" in html
    assert "0 queued, 0 running" in html and "Updates lost: 0." in html


@pytest.mark.parametrize("call", ["schedule", "done"])
def test_ctrl_c_gives_a_call_up_that_waits_for_what_still_runs_after_an_error(call):
    with cairn.LocalCluster(ps=1, workers=2) as two:
        strategy = two.strategy()
        coordinator = cairn.ClusterCoordinator(strategy)
        step = strategy.function(lambda x: cairn.check_numerics(x, "x"), name="step")
        coordinator.schedule(step, (1.0,)).get()
        stop(two.pids["worker:0"])
        try:
            before = now = coordinator.status  # perhaps of the moment before
            while now["uptime_seconds"] == before["uptime_seconds"] or not any(now["workers"][0]["inflight"]):
                for _ in range(100):
                    coordinator.schedule(step, (1.0,))
                time.sleep(0.01)
                now = coordinator.status
            failing = []
            while not any(value.ready() for value in failing):
                failing.append(coordinator.schedule(step, (float("nan"),)))  # perhaps on the worker that stands still, too
                limit = time.monotonic() + 3
                while not failing[-1].ready() and time.monotonic() < limit:
                    time.sleep(0.01)
            # A thread of Python's presses the key, and so runs while the call waits, for 10 s at most.
            threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
            with pytest.raises(KeyboardInterrupt):
                coordinator.schedule(step, (1.0,)) if call == "schedule" else coordinator.done()
        finally:
            os.kill(two.pids["worker:0"], signal.SIGCONT)
        with pytest.raises(cairn.NotFiniteError):
            coordinator.join()
        assert coordinator.schedule(step, (2.0,)).get() == 2


def test_a_wait_for_a_strategy_that_another_thread_closes_is_given_up():
    with cairn.LocalCluster(ps=1, workers=1) as one:
        strategy = one.strategy()
        coordinator = cairn.ClusterCoordinator(strategy)
        step = strategy.function(lambda x: x + 1.0, name="step")
        coordinator.schedule(step, (1.0,)).get()
        stop(one.pids["worker:0"])
        try:
            coordinator.schedule(step, (1.0,))
            errors = []

            def join():
                try:
                    coordinator.join()
                except Exception as error:
                    errors.append(error)

            thread = threading.Thread(target=join)
            thread.start()
            threading.Timer(0.2, strategy.close).start()
            thread.join(60)
        finally:
            os.kill(one.pids["worker:0"], signal.SIGCONT)
        assert isinstance(errors[0], cairn.FailedPreconditionError) and "closed" in str(errors[0])


def test_strategies_that_end_within_a_call_leave_it_alone(strategy):
    class Other(cairn.callbacks.Callback):
        def on_epoch_end(self, epoch, logs):
            other = cairn.OneDeviceStrategy()
            assert other.num_replicas_in_sync == 1
            other.close()

    with strategy.scope():
        model = cairn.Model(cairn.nn.Dense(1, name="left/alone"))
        model.compile("sgd", "mse")
        x = np.ones((64, 2), "float32")
        assert len(model.fit(x, x[:, 0], epochs=3, batch_size=8, verbose=0, callbacks=[Other()])) == 3


def test_what_is_wrong_to_schedule_is_a_type_error(strategy, coordinator):
    @strategy.function
    def step(x):
        return x

    with pytest.raises(TypeError, match="strategy.function"):
        coordinator.schedule(lambda: 1)
    value = coordinator.schedule(step, (1.0,))
    with pytest.raises(TypeError, match="RemoteValue"):
        coordinator.schedule(step, (value,))
    coordinator.join()


def test_a_model_is_fitted_on_workers(strategy):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(512, 4)).astype("float32")
    y = x @ np.array([1.0, -2.0, 3.0, 0.5], "float32")
    with strategy.scope():
        model = cairn.Model(cairn.nn.Dense(1))
        model.compile(optimizer=cairn.optimizers.Adam(0.05), loss="mse")
        history = model.fit(x, y, epochs=10, batch_size=32, verbose=0)
    assert history["loss"][-1] < 0.1 * history["loss"][0]
    assert model.predict(x[:3]).shape == (3, 1)


PROGRAM = """
import sys, cairn, numpy as np
cluster = cairn.LocalCluster(ps=1, workers=1)
strategy = cluster.strategy()
coordinator = cairn.ClusterCoordinator(strategy)
@strategy.function
def step(x):
    return x + 1.0
values = [coordinator.schedule(step, (np.ones(256, "float32"),)) for _ in range(2000)]
print(cluster.folder, *cluster.pids.values(), flush=True)
"""


@pytest.mark.parametrize("end, status", [("", 0), ("sys.exit(3)", 3), ("raise ValueError()", 1), ("coordinator.join()", 0)])
def test_a_program_that_ends_while_closures_run_ends_in_order(end, status):
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM) + end], capture_output=True, text=True, timeout=60)
    assert run.returncode == status, run.stderr
    assert "terminate" not in run.stderr and "leak" not in run.stderr, run.stderr
    folder, *pids = run.stdout.split()
    assert not os.path.exists(folder) and "cluster.json" not in run.stderr, run.stderr  # it goes after the processes
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_a_child_of_fork_gets_an_error(strategy, coordinator):
    @strategy.function
    def step():
        return cairn.Array(1.0)

    coordinator.schedule(step).get()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            coordinator.schedule(step)
        except cairn.FailedPreconditionError as error:
            code = 0 if "forked" in str(error) else 2
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


COUNTS = """
import sys
import cairn, numpy as np
config, cluster_id, token, folder = sys.argv[1:]
journal = cairn.JournalOptions(folder=folder)
strategy = cairn.ParameterServerStrategy(config, cluster_id, token, engine=cairn.EngineOptions(journal=journal))
with strategy.scope():
    counts = cairn.Variable(np.zeros((2000, 1), "float32"), name="counts")
coordinator = cairn.ClusterCoordinator(strategy)

@strategy.function
def count(batches):
    counts.scatter_add(batches.get_next().features["value"], np.ones((1, 1), "float32"))

batches = coordinator.create_shared_dataset(cairn.Dataset.range(2000).batch(1))
resumed = coordinator.resumed
print("begins at", resumed.global_step if resumed else -1, flush=True)
try:
    while True:
        for _ in range(50):
            coordinator.schedule(count, (batches,))
        coordinator.join()
        print("step", coordinator.stats().global_step, flush=True)
except cairn.OutOfRangeError:
    pass
values = counts.numpy()
print("counted once:", bool((values == 1).all()), coordinator.stats().lost_updates, flush=True)
"""


def test_a_program_that_is_killed_goes_on_with_its_journal(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(COUNTS)
    with cairn.LocalCluster(ps=2, workers=2) as cluster:
        run = cluster._run.cluster
        command = [sys.executable, str(program), run.tf_config, run.cluster_id, run.token, str(tmp_path / "journal")]
        at_least = -1
        for life in range(4):
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                begin = process.stdout.readline().split()
                assert begin[:2] == ["begins", "at"], process.stderr.read()
                assert int(begin[2]) >= at_least
                while life < 3:
                    at_least = int(process.stdout.readline().split()[1])
                    if at_least >= 400 * (life + 1):
                        process.kill()
                        break
                else:
                    rest = process.stdout.read().splitlines()
                    assert rest[-1] == "counted once: True 0", process.stderr.read()
