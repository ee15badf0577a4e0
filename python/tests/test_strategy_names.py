"""Strategies by name, with the servers that they start; tables that are too large to travel to workers."""

import gc
import glob
import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import cairn
from cairn import nn

X = np.random.default_rng(0).normal(size=(64, 3)).astype("float32")
Y = X @ np.array([1.0, -2.0, 0.5], "float32")


def model(**options):
    made = cairn.Model(nn.Dense(1, kernel_initializer="zeros"), **options)
    made.compile(cairn.optimizers.SGD(0.1), "mse")
    return made


def servers():
    """The ps and workers that this process has started and that still run."""
    own, found = str(os.getpid()), []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            name, _, rest = pathlib.Path(path).read_text().rpartition(")")
        except OSError:
            continue  # it has ended meanwhile
        if rest.split()[1] == own and rest.split()[0] != "Z" and name.endswith(("(cairn-ps", "(cairn-worker")):
            found.append(path)
    return found


@pytest.mark.parametrize("name", ["one_device", "mirrored", "central_storage"])
def test_a_model_trains_under_a_strategy_of_that_name(name):
    named = model(strategy=name)
    history = named.fit(X, Y, epochs=20, batch_size=16, verbose=0)
    assert history["loss"][-1] < 0.05 < history["loss"][0]
    assert named.evaluate(X, Y)["loss"] < 0.05 and named.predict(X).shape == (64, 1)
    assert named.strategy.num_workers == 1
    assert named.strategy.closed is False


def test_servers_run_as_long_as_the_model_does(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    before = len(servers())
    named = model(strategy="parameter_server", ps=1, workers=1)
    assert len(servers()) == before + 2
    named.fit(X, Y, epochs=20, batch_size=16, verbose=0)
    assert named.evaluate(X, Y)["loss"] < 0.05
    assert isinstance(named.strategy, cairn.ParameterServerStrategy)
    del named
    gc.collect()
    assert len(servers()) == before


def test_a_strategy_that_is_closed_ends_its_servers(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    before = len(servers())
    named = model(strategy="parameter_server", ps=1, workers=1)
    named.close()
    assert len(servers()) == before
    with pytest.raises(cairn.FailedPreconditionError, match="closed"):
        named.fit(X, Y, verbose=0)


def test_a_strategy_holds_the_cluster_that_it_was_made_of():
    before = len(servers())
    strategy = cairn.LocalCluster(ps=1, workers=1).strategy()
    gc.collect()
    with strategy.scope():
        variable = cairn.Variable([1.0, 2.0], name="v")
    assert variable.numpy().tolist() == [1.0, 2.0] and len(servers()) == before + 2
    del variable, strategy
    gc.collect()
    assert len(servers()) == before


def test_a_strategy_may_be_given_itself():
    strategy = cairn.OneDeviceStrategy()
    given = model(strategy=strategy)
    assert given.strategy is strategy
    given.close()
    assert not strategy.closed  # it was not made by the model
    given.fit(X, Y, verbose=0)
    with strategy.scope():
        assert isinstance(model().strategy, cairn.Strategy)
    assert model().strategy is None


def test_other_names_and_arguments_are_refused():
    with pytest.raises(ValueError, match='"one_device", "mirrored", "central_storage", "parameter_server", not "tpu"'):
        model(strategy="tpu")
    with pytest.raises(TypeError, match="not a int"):
        model(strategy=3)
    with pytest.raises(ValueError, match='ps and workers go with strategy="parameter_server"'):
        model(strategy="mirrored", ps=1)
    with cairn.OneDeviceStrategy().scope(), pytest.raises(cairn.FailedPreconditionError, match="scope"):
        model(strategy="one_device")


def test_the_cluster_of_the_environment_is_used(monkeypatch):
    with cairn.LocalCluster(ps=1, workers=1) as cluster:
        for name, value in [("TF_CONFIG", cluster._run.cluster.tf_config), ("CAIRN_CLUSTER_ID", cluster._run.cluster.cluster_id)]:
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("CAIRN_TOKEN_FILE", os.path.join(cluster.folder, "token"))
        before = len(servers())
        named = model(strategy="parameter_server")
        assert len(servers()) == before
        named.fit(X, Y, epochs=20, batch_size=16, verbose=0)
        assert named.evaluate(X, Y)["loss"] < 0.05
        named.strategy.close()


def test_servers_end_with_a_program_that_never_lets_go(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import cairn, numpy as np
        model = cairn.Model(cairn.nn.Dense(1), strategy="parameter_server", ps=1, workers=1)
        model.compile("sgd", "mse")
        model.fit(np.ones((8, 2), "float32"), np.ones(8, "float32"), verbose=0)
        held = [model]
        held.append(held)
        run, = cairn.local_cluster._running
        print(run.folder, *run.cluster.pids.values())
    """))
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    folder, *pids = ended.stdout.split()
    assert len(pids) == 2 and not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    assert not os.path.exists(folder)


# ---- tables that are too large to travel ----


def large(rows=900_000):
    table = {f"f{i}": np.arange(rows, dtype="float64") + i for i in range(9)}
    table["id"] = np.arange(rows)
    table["y"] = np.ones(rows, "float32")
    return table


def test_large_tables_are_written_into_the_runs_folder_and_removed():
    table = large()
    with cairn.LocalCluster(ps=1, workers=2) as cluster:
        strategy = cluster.strategy()
        folder = pathlib.Path(cluster.folder) / "tables"
        coordinator = cairn.ClusterCoordinator(strategy)
        data = cairn.Dataset.from_tensor_slices(table, label="y").batch(10_000)

        @strategy.function
        def total(batches):
            return cairn.reduce_sum(batches.get_next().features["id"])

        shared = coordinator.create_shared_dataset(data)
        totals = [coordinator.schedule(total, (shared,)) for _ in range(90)]
        coordinator.join()
        assert sum(each.get().item() for each in totals) == np.arange(900_000).sum()
        written = sorted(folder.iterdir())
        assert len(written) == 11

        each = coordinator.create_per_worker_dataset(lambda context: data.shard(context))
        assert coordinator.schedule(total, (each,)).get().item() > 0
        assert sorted(folder.iterdir()) == written  # the same contents are the same files
        assert coordinator.schedule(total, (coordinator.create_per_worker_dataset(data),)).get().item() > 0
        strategy.close()
        assert not folder.exists()


def test_fit_evaluate_and_predict_take_large_tables():
    table = large()
    scale = nn.Dense(1, use_bias=False, kernel_initializer="zeros")
    named = cairn.Model(lambda features: scale(cairn.reshape(cairn.cast(features["f0"], "float32"), (-1, 1))) + 1.0, strategy="parameter_server", ps=1, workers=1)
    named.compile(cairn.optimizers.SGD(0.0), "mse")
    run, = cairn.local_cluster._running
    named.fit(table, "y", batch_size=100_000, verbose=0)
    files = len(os.listdir(os.path.join(run.folder, "tables")))
    assert files == 11
    assert named.evaluate(table, "y", batch_size=100_000)["loss"] == 0.0
    assert named.predict({name: table[name] for name in table if name != "y"}, batch_size=100_000).shape == (900_000, 1)
    assert len(os.listdir(os.path.join(run.folder, "tables"))) == files
    named.strategy.close()


def test_ragged_columns_travel_in_files():
    words = cairn.Ragged(np.arange(6), np.array([0, 2, 2, 6]))
    table = nn.Embedding(rows=6, dim=1, combiner="sum", name="e", initializer="zeros")
    named = cairn.Model(lambda features: table(nn.Ids(features.values("words"), features.row_splits("words"))) + 1.0, strategy="parameter_server", ps=1, workers=1)
    named.compile("sgd", "mse")
    assert named.evaluate({"words": words}, np.ones(3, "float32"))["loss"] == 0.0
    named.strategy.close()


def test_a_worker_that_does_not_see_the_folder_names_it(tmp_path):
    with cairn.LocalCluster(ps=1, workers=1) as cluster:
        strategy = cluster.strategy()
        coordinator = cairn.ClusterCoordinator(strategy)

        @strategy.function
        def total(batches):
            return cairn.reduce_sum(batches.get_next().features["id"])

        folder = pathlib.Path(cluster.folder) / "tables"
        batches = coordinator.create_shared_dataset(cairn.Dataset.from_tensor_slices(large()).batch(1000))
        for file in folder.iterdir():
            file.unlink()
        with pytest.raises(cairn.Error, match=f"does not see the table's file {folder}/"):
            coordinator.schedule(total, (batches,)).get(timeout=60)


def test_a_folder_that_was_there_stays(tmp_path):
    with cairn.LocalCluster(ps=1, workers=1) as cluster:
        run = cluster._run.cluster
        strategy = cairn.ParameterServerStrategy(run.tf_config, run.cluster_id, run.token, tables_folder=str(tmp_path))
        coordinator = cairn.ClusterCoordinator(strategy)
        coordinator.create_shared_dataset(cairn.Dataset.from_tensor_slices(large()).batch(1000))
        assert len(os.listdir(tmp_path)) == 11
        strategy.close()
        assert len(os.listdir(tmp_path)) == 11
