"""A server follows the rows of a run: what training changes is in the answers, whoever stops, dies or comes back."""

import json
import os
import signal
import time

import numpy as np
import pytest
import served

import cairn

ROWS, DIM = 100_000, 8


class Run:
    """A model with one table under parameter servers, and the program that trains it."""

    def __init__(self, folder, hashed=False):
        self.folder, self.model_folder = folder / "run", folder / "rows"
        self.cluster = cairn.LocalCluster(ps=2, workers=1, folder=str(self.folder))
        strategy = self.cluster.strategy()
        self.coordinator = cairn.ClusterCoordinator(strategy)
        with strategy.scope():
            policy = cairn.nn.RowPolicy(evictable=True) if hashed else cairn.nn.RowPolicy()
            layer = cairn.nn.Embedding(ROWS, DIM, initializer="zeros", hashed=hashed, policy=policy, name="rows")
            self.scale = cairn.Variable(np.ones(1, "float32"), name="scale")
            model = cairn.Model(lambda ids: cairn.reduce_sum(layer(ids), [-1]) * self.scale, name="rows")
            model.build({"id": np.zeros(2, "int64")})
        self.table = next(each for each in model.variables if each.name.startswith("rows"))
        model.save(str(self.model_folder))

    def put(self, row, value):
        self.table.scatter_update(np.array([row]), np.full((1, DIM), value / DIM, "float32"))

    def tasks(self, role):
        description = json.loads((self.folder / "cluster.json").read_text(encoding="utf-8"))
        return [task for task in description["tasks"] if task["role"] == role]

    def close(self):
        self.cluster.close()


@pytest.fixture
def run(tmp_path):
    made = Run(tmp_path)
    yield made
    made.close()


def value_of(server, row):
    answer = server.post("/v1/models/rows:predict", {"instances": [row]})
    assert answer.status == 200, answer.body
    return answer.json()["predictions"][0], answer


def until(what, patience_s=served.PATIENCE_S):
    ends = time.monotonic() + patience_s
    while not (found := what()):
        assert time.monotonic() < ends, "it did not come"
        time.sleep(0.005)
    return found


def until_value(server, row, value):
    until(lambda: value_of(server, row)[0] == value)


def follow(serve, run, *more):
    return serve(f"rows={run.model_folder}", "--follow", f"rows={run.folder}", *more)


@pytest.mark.parametrize("how", [[], ["--from-ps"]], ids=["rows are copied", "rows stay on the ps"])
def test_what_training_changes_is_in_the_answers(serve, run, how):
    run.put(7, 1.0)
    server = follow(serve, run, *how)
    until_value(server, 7, 1.0)
    for row in (7, 50_000, ROWS - 1):
        run.put(row, 3.0)
        until_value(server, row, 3.0)
    assert value_of(server, 8)[0] == 0.0
    run.scale.assign(np.full(1, 2.0, "float32"))
    until_value(server, 7, 6.0)
    # No age is told before everything has come once, which rows that are read on the ps do not wait for.
    until(lambda: value_of(server, 7)[1].headers["x-cairn-age-ms"])
    answer = value_of(server, 7)[1]
    assert int(answer.headers["x-cairn-age-ms"]) >= 0
    assert answer.headers["x-cairn-stale-rows"] is None


def test_a_server_that_was_stopped_has_all_that_changed_meanwhile(serve, run):
    server = follow(serve, run)
    until_value(server, 1, 0.0)
    server.process.send_signal(signal.SIGSTOP)
    for row in range(0, ROWS, 5_000):
        run.put(row, float(row + 1))
    server.process.send_signal(signal.SIGCONT)
    for row in range(0, ROWS, 5_000):
        until_value(server, row, float(row + 1))


@pytest.mark.parametrize("how", [[], ["--from-ps"]], ids=["rows are copied", "rows stay on the ps"])
def test_a_ps_that_was_killed_leaves_the_rows_as_they_were_and_comes_back_with_its_own(serve, run, how):
    for row in (7, ROWS - 7):
        run.put(row, 5.0)
    server = follow(serve, run, *how)
    for row in (7, ROWS - 7):
        until_value(server, row, 5.0)
    run.coordinator.save(str(run.folder / "checkpoints"))
    os.kill(run.tasks("ps")[0]["pid"], signal.SIGKILL)
    for row in (7, ROWS - 7):
        assert value_of(server, row)[0] == 5.0
    # The ps is there again, with its checkpoint's rows.
    run.put(7, 9.0)
    until_value(server, 7, 9.0)
    assert value_of(server, ROWS - 7)[0] == 5.0


@pytest.mark.parametrize("how", [[], ["--from-ps"]], ids=["rows are copied", "rows stay on the ps"])
def test_a_run_that_has_gone_leaves_its_rows_and_their_age(serve, run, how):
    run.put(7, 5.0)
    server = follow(serve, run, *how)
    until_value(server, 7, 5.0)
    until(lambda: value_of(server, 7)[1].headers["x-cairn-age-ms"])
    run.close()
    if how:
        until(lambda: value_of(server, 7)[1].headers["x-cairn-stale-rows"] == "1")
    ages = []
    until(lambda: ages.append(int(value_of(server, 7)[1].headers["x-cairn-age-ms"])) or ages[-1] > 500)
    assert value_of(server, 7)[0] == 5.0
    assert 'cairn_serve_ps_away{model="rows"} 2' in server.get("/metrics").body.decode()


def test_rows_that_were_evicted_are_at_their_initial_values_and_may_be_born_again(serve, tmp_path):
    run = Run(tmp_path, hashed=True)
    server = follow(serve, run)
    run.put(7, 5.0)
    until_value(server, 7, 5.0)
    run.table.evict(np.array([7]))
    until_value(server, 7, 0.0)
    run.put(7, 6.0)
    until_value(server, 7, 6.0)
    run.close()


def test_a_run_is_served_from_its_first_step_on(serve, tmp_path):
    """`cairn train` leaves its graph when it begins, so that nothing has to be saved before."""
    run = tmp_path / "adult"
    training = served.start(
        "train", served.ROOT / "examples/adult.toml", "--ps", 2, "--workers", 1, "--epochs", 10_000, "--dir", run
    )
    try:
        until((run / "graph" / "model.json").exists)
        server = serve("--follow", run)
        line = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States, <=50K\n"
        steps = set()

        def asked():
            answer = server.post("/v1/models/adult:predict?raw", line, content_type="text/csv")
            assert answer.status == 200, answer.body
            steps.add(answer.step)
            return len(steps) > 3

        until(asked)
    finally:
        training.terminate()
        training.wait(served.PATIENCE_S)


def test_mistakes_are_told_before_anything_is_served(tmp_path):
    model = served.save_half_plus(2, tmp_path / "half" / "1")
    for arguments, said in (
        (["--follow", tmp_path / "none"], "there is no run in"),
        (["--follow", "127.0.0.1:1"], "addresses say nothing of the model"),
        (["half=" + str(model), "--consistent"], "add --follow RUN"),
        (["half=" + str(model), "--from-ps"], "add --follow RUN"),
        (["half=" + str(model), "--follow", "other=127.0.0.1:1"], "addresses say nothing of the model"),
        (["half=" + str(model), "--follow", "half=127.0.0.1:1", "--pin", "1"], "leave out its pin"),
        (["half=" + str(model), "--follow", "127.0.0.1:1", "--memory-limit", "1GB"], "leave out the memory limit"),
        (["a=" + str(model), "b=" + str(model), "--follow", "127.0.0.1:1"], "--follow names no model, and there are several"),
    ):
        assert said in served.run("serve", *arguments, "--port", 0, status=1), arguments
