"""Strategies beside their steps: contexts of replicas, values and datasets dealt out, checkpoints by policy, groups."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import cairn


@pytest.fixture
def mirrored():
    strategy = cairn.MirroredStrategy(["cpu:0", "cpu:1"])
    with strategy.scope():
        yield strategy
    strategy.close()


def test_replicas_know_their_numbers_and_sum_what_they_have(mirrored):
    @mirrored.function
    def step(x):
        context = cairn.get_replica_context()
        assert context.num_replicas_in_sync == 2 and not cairn.in_cross_replica_context()
        number = cairn.cast(x, "float32") * 0.0 + float(context.replica_id_in_sync_group)
        return number, context.all_reduce("sum", number + 1.0), context.all_reduce("mean", number)

    number, total, mean = mirrored.run(step, 1.0)
    assert [each.item() for each in number.values] == [0.0, 1.0]
    assert [each.item() for each in total.values] == [3.0, 3.0]
    assert [each.item() for each in mean.values] == [0.5, 0.5]
    assert number.is_per_replica and number.of_replica(1).item() == 1.0 and len(number) == 2


def test_a_merge_call_runs_once_for_all_replicas(mirrored):
    v = cairn.Variable(1.0, name="v", aggregation="sum")

    def merged(strategy, value):
        assert isinstance(strategy, cairn.MirroredStrategy) and cairn.in_cross_replica_context()
        total = strategy.extended.reduce_to("sum", value, v)
        strategy.extended.update(v, lambda own, change: own.assign_add(change), total)
        return total

    @mirrored.function
    def step(x):
        context = cairn.get_replica_context()
        return context.merge_call(merged, x + float(context.replica_id_in_sync_group))

    assert [each.item() for each in mirrored.run(step, 1.0).values] == [3.0, 3.0]
    assert v.numpy() == 4.0


def test_datasets_are_dealt_out_by_options(mirrored):
    data = cairn.Dataset.range(6).batch(4)
    dealt = mirrored.experimental_distribute_dataset(data, cairn.InputOptions(auto_shard_policy="off"))
    assert dealt.options.auto_shard_policy == "off" and len(dealt.element_spec) == 1
    first, second = list(dealt)
    assert [each.numpy().tolist() for each in first["value"].values] == [[0, 1], [2, 3]]
    assert [each["value"].tolist() for each in second.of_replicas] == [[4], [5]]
    own = mirrored.distribute_datasets_from_function(
        lambda context: cairn.Dataset.range(4).batch(4 // context.num_replicas_in_sync)
    )
    iterator = mirrored.iterate(own)
    assert [each.numpy().tolist() for each in iterator.get_next()["value"].values] == [[0, 1], [2, 3]]
    assert iterator.get_next_as_optional() is None
    values = mirrored.experimental_distribute_values_from_function(lambda c: c.replica_id_in_sync_group * 2)
    assert [each.item() for each in values.values] == [0, 2]


def test_code_finds_the_strategy_in_whose_scope_it_is(mirrored):
    assert isinstance(cairn.get_strategy(), cairn.MirroredStrategy) and cairn.has_strategy()
    v = cairn.Variable([1.0], name="v")
    extended = mirrored.extended
    assert extended.worker_devices == ["cpu:0", "cpu:1"] and extended.variable_created_in_scope(v)
    assert [each.item() for each in extended.batch_reduce_to("mean", [(2.0, v), (3.0, "cpu:0")])] == [2.0, 3.0]
    with pytest.raises(ValueError, match="tpu:0"):
        extended.reduce_to("mean", 1.0, "tpu:0")
    with extended.colocate_vars_with(v):
        cairn.create_variable("w", (2, 3), initializer=cairn.nn.Initializer.constant(2.0))


def test_restores_say_what_matched(tmp_path):
    strategy = cairn.OneDeviceStrategy()
    with strategy.scope():
        v, u = cairn.Variable([1.0, 2.0], name="v"), cairn.Variable([3.0], name="u")
        policy = cairn.CheckpointPolicy(folder=str(tmp_path), keep_last=1)
        strategy.save(policy)
        path = strategy.save(policy, '{"run": 7}')
        assert [found.name for found in tmp_path.glob("ckpt-*")] == [path.rsplit("/", 1)[1]]
        v.assign([0.0, 0.0])
        strategy.restore(path).assert_consumed()
        assert v.numpy().tolist() == [1.0, 2.0]
        other = cairn.Variable([9.0], name="other")
        status = strategy.restore(path)
        assert status.differences().not_saved == ['"other"'] and "v" in status.plan()
        with pytest.raises(cairn.FailedPreconditionError, match="other"):
            status.assert_consumed()
        status.expect_partial()
        left_out = cairn.RestoreOptions(exclude=["v"])
        v.assign([5.0, 5.0])
        plan = cairn.RestorePlan(path, left_out)
        assert plan.leaves_out("v") and plan.chooses and plan.move_of(other) is None
        assert plan.fits(u) and plan.move_of(u).from_ == "u"
        strategy.restore(path, left_out).expect_partial()
        assert v.numpy().tolist() == [1.0, 2.0]  # it begins anew
    with pytest.raises(TypeError, match="did you mean \"keep_last\""):
        cairn.CheckpointPolicy(kep_last=1)
    with pytest.raises(TypeError, match="keep_last"):
        cairn.CheckpointPolicy(keep_last="many")


def test_a_function_is_a_graph_that_can_be_looked_at():
    strategy = cairn.OneDeviceStrategy()
    data = cairn.Dataset.from_tensor_slices({"x": np.zeros((4, 2), "float32")})
    with strategy.scope():
        layer = cairn.nn.Dense(1)

        @strategy.function
        def step(batches):
            features, _ = batches.get_next()
            return layer(features["x"])

        recorded = step.concrete(data.batch(2))
        assert recorded is not None and len(recorded.hash) == 32
        assert [variable.name for variable in recorded.graph.variables] == ["dense/kernel", "dense/bias"]
        assert "matmul" in [node.op for node in recorded.graph.nodes]
        assert any("test_strategies.py:" in node.origin for node in recorded.graph.nodes)
        again = cairn.parse_graph(recorded.graph.serialize())
        again.verify()
        assert cairn.content_hash(again.serialize()) == recorded.hash and str(again) == again.to_text()


def test_recorded_functions_are_written_where_the_environment_says(tmp_path, monkeypatch):
    strategy = cairn.OneDeviceStrategy()
    monkeypatch.setenv("CAIRN_GRAPHS", str(tmp_path / "graphs"))
    double = strategy.function(lambda x: x + x, name="twice a/b")
    recorded = double.concrete(np.float32(1))
    (file,) = (tmp_path / "graphs").iterdir()
    assert file.name.endswith("-twice_a_b.txt")
    assert file.read_text().startswith(f"graph {recorded.hash}: 2 nodes, 0 variables\n%0 = argument()")
    monkeypatch.setenv("CAIRN_GRAPHS", str(file))  # no folder
    with pytest.raises(cairn.PermissionDeniedError, match="CAIRN_GRAPHS"):
        strategy.function(lambda x: x - x).concrete(np.float32(1))


def test_threads_exchange_arrays_as_a_group():
    group = cairn.make_thread_group(3, timeout=30.0)
    results = {}

    def run(member):
        member.barrier()
        (total,) = member.all_reduce("sum", [np.full(4, member.rank + 1.0, "float32")])
        results[member.rank] = (
            total.tolist(),
            [each.item() for each in member.all_gather(np.array([member.rank]))],
            member.broadcast(np.array([member.rank]), root=2).tolist(),
            member.reduce("sum", np.array([1.0], "float32"), root=0),
        )

    threads = [threading.Thread(target=run, args=(member,)) for member in group]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results[rank][:3] == ([6.0] * 4, [0, 1, 2], [2]) for rank in range(3))
    assert results[0][3].tolist() == [3.0] and results[1][3] is None
    group[0].abort("enough")
    with pytest.raises(cairn.AbortedError, match="enough"):
        group[1].barrier()


def test_lines_that_are_skipped_are_told(tmp_path):
    (tmp_path / "a.csv").write_text("1\nmany\n3\n")
    data = cairn.Dataset.csv(str(tmp_path / "a.csv"), {"x": "int64"}, on_error="skip")
    told = []
    iterator = data.open(on_skipped_row=told.append)
    assert [each["x"].item() for each in iterator] == [1, 3]
    assert len(told) == 1 and "a.csv:2" in told[0]


def test_gradients_of_ones_own_are_used():
    strategy = cairn.OneDeviceStrategy()
    with strategy.scope():
        v = cairn.Variable([2.0], name="v")

        @strategy.function
        def step():
            x = v.read()
            y = cairn.custom_gradient([x], lambda xs: xs[0] * 3.0, lambda dy, xs, out: [dy * 10.0])
            return cairn.grad(cairn.sum(y), [x])

        assert strategy.run(step)[0].numpy().tolist() == [10.0]


@pytest.fixture(scope="module")
def cluster():
    with cairn.LocalCluster(ps=2, workers=2) as made:
        yield made


def test_servers_say_where_rows_lie_and_what_runs(cluster, tmp_path):
    strategy = cluster.strategy(
        partitioner=cairn.FixedShardsPartitioner(2), consistency="synchronous",
        engine=cairn.EngineOptions(pipeline_depth=1, heartbeats=cairn.Heartbeats(missed_max=50)),
    )
    coordinator = cairn.ClusterCoordinator(strategy)
    with strategy.scope():
        v = cairn.Variable(np.zeros((4, 2), "float32"), name="v")
        seen = cairn.PerWorkerVariable(0, name="seen")
    part, other = strategy.layout.find("v").parts
    assert (part.rows.begin, part.rows.end, other.rows.end) == (0, 2, 4) and part.shard != other.shard
    assert strategy.layout.find("w") is None and len(strategy.layout.shards) == 2
    assert [(shard.primary.ps, shard.epoch) for shard in strategy.layout.shards] == [(0, 1), (1, 1)]

    values = coordinator.create_per_worker_values(lambda context: np.float32(context.input_pipeline_id))
    assert [each.item() for each in values.values] == [0.0, 1.0]

    @strategy.function
    def step(value):
        v.assign_add(v.read() * 0.0 + 1.0)
        seen.assign_add(1)
        return value

    coordinator.save_automatically(cairn.CheckpointPolicy(folder=str(tmp_path), every_steps=2))
    results = [coordinator.schedule(step, (values,)) for _ in range(4)]
    coordinator.join()
    assert {result.get().item() for result in results} <= {0.0, 1.0}
    assert v.numpy().tolist() == [[4.0, 4.0]] * 4
    assert sum(each.item() for each in seen.read_all()) == 4
    counts, stats = coordinator.counts(), coordinator.stats()
    assert counts.queued == 0 and counts.finished >= 4 and stats.ps_ready == 2
    coordinator.set_program_status('{"name": "test"}')
    strategy.close()


@pytest.mark.parametrize("hybrid", [False, True])
def test_rows_may_lie_on_several_ps(cluster, hybrid):
    strategy = cluster.strategy(replicas=2, hybrid=hybrid)
    with strategy.scope():
        v = cairn.Variable([1.0, 2.0], name="v")
    v.assign_add([1.0, 1.0])
    assert v.numpy().tolist() == [2.0, 3.0]
    strategy.close()


def test_a_start_that_waits_for_tasks_tells_which(tmp_path):
    config = '{"cluster": {"ps": ["unix:%s/a"], "worker": ["unix:%s/b"]}}' % (tmp_path, tmp_path)
    told = []

    def give_up(missing):
        told.extend(task.name for task in missing)
        raise KeyError("not today")

    wait = cairn.StartWait(on_wait=give_up)
    assert wait.on_wait is give_up and cairn.StartWait().on_wait is None
    with pytest.raises(KeyError, match="not today"):
        cairn.ParameterServerStrategy(config, engine=cairn.EngineOptions(start=wait))
    assert set(told) <= {"/job:ps/task:0", "/job:worker/task:0"} and told


def test_a_hybrid_strategy_trains_tables_on_servers_and_all_else_on_workers(cluster):
    strategy = cluster.strategy(hybrid=True)
    coordinator = cairn.ClusterCoordinator(strategy)
    assert isinstance(strategy, cairn.HybridStrategy)
    data = cairn.Dataset.from_tensor_slices({"id": np.arange(8) % 4, "y": np.ones((8, 1), "float32")}, label="y")
    with strategy.scope():
        table, dense = cairn.nn.Embedding(4, 2), cairn.nn.Dense(1)
        optimizer = cairn.optimizers.SGD(0.1)

    @strategy.function
    def step(batches):
        features, label = batches.get_next()
        loss = cairn.mean(cairn.square(dense(table(features["id"])) - label)) / 2.0
        optimizer.minimize(loss)
        return loss

    batches = coordinator.create_shared_dataset(data.repeat().batch(4))
    losses = [coordinator.schedule(step, (batches,)) for _ in range(40)]
    coordinator.join()
    assert losses[-1].get() < losses[0].get()
    mirrored = {variable.name: variable.mirrored for variable in step.concrete(data.batch(4)).graph.variables}
    assert mirrored["dense/kernel"] and not mirrored["embedding"]
    strategy.close()


PROGRAM = """
import os, tempfile
import numpy as np
import cairn

strategy = cairn.MirroredStrategy(["cpu:0", "cpu:1"])
with strategy.scope():
    v, w = cairn.Variable([1.0], name="v"), cairn.PerWorkerVariable(0, name="w")
extended, checkpoint, group = strategy.extended, cairn.Checkpoint(strategy), cairn.make_thread_group(2)
status = strategy.restore(checkpoint.save(tempfile.mkdtemp()))
options = cairn.EngineOptions(start=cairn.StartWait(on_wait=lambda missing: print(options)))
rows = cairn.Dataset.range(4).batch(2)
iterator = rows.open(on_skipped_row=lambda line: print(iterator))
dealt = strategy.experimental_distribute_dataset(rows)
element, beside = iter(dealt).get_next(), extended.colocate_vars_with(v)
beside.__enter__()

@strategy.function
def step(x):
    global context
    context = cairn.get_replica_context()
    return x + 1.0

strategy.run(step, 1.0)
recorded = strategy.function(lambda x: x + x).concrete(1.0)
with cairn.LocalCluster(ps=1, workers=1) as cluster:
    servers = cluster.strategy()
    coordinator, on_servers = cairn.ClusterCoordinator(servers), servers.extended
if CLOSES:
    strategy.close()
    for use in (
        lambda: servers.layout, lambda: on_servers.worker_devices, lambda: coordinator.counts(),
        lambda: status.differences(), lambda: extended.worker_devices, lambda: w.read_all(), lambda: w.assign_add(1),
        lambda: checkpoint.save("x"), lambda: context.num_replicas_in_sync, lambda: next(iter(dealt)),
        lambda: dealt.element_spec, lambda: v.numpy(),
    ):
        try:
            use()
            raise SystemExit("it can be used")
        except cairn.FailedPreconditionError as error:
            assert "closed" in str(error), error
    beside.__exit__(None, None, None)
"""


@pytest.mark.parametrize("closes", [True, False])
def test_what_a_closed_strategy_made_raises_and_nothing_is_left_at_the_end(closes):
    ended = subprocess.run(
        [sys.executable, "-c", f"CLOSES = {closes}\n{PROGRAM}"], capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
