"""Tables that are too large for a description, or ragged: in files that workers map."""

import os

import numpy as np
import pytest

import cairn

Dataset = cairn.Dataset


def columns(rows):
    random = np.random.default_rng(rows)
    lengths = random.integers(0, 5, rows)
    return {
        "x": random.normal(size=(rows, 3)).astype("float32"), "id": np.arange(rows), "small": np.arange(rows, dtype="uint8"),
        "text": np.array([f"täxt {i}" * (i % 3) for i in range(rows)], object),
        "tags": cairn.Ragged(random.integers(0, 99, lengths.sum()), np.r_[0, np.cumsum(lengths)]),
        "words": cairn.Ragged(np.array([f"w{i}" for i in range(lengths.sum())], object), np.r_[0, np.cumsum(lengths)]),
    }


def same(one, other):
    for name in one:
        left, right = one[name], other[name]
        if isinstance(left, cairn.Ragged):
            if left.values.tolist() != right.values.tolist() or left.row_splits.tolist() != right.row_splits.tolist():
                return False
        elif left.dtype != right.dtype or left.tolist() != right.tolist():
            return False
    return one.keys() == other.keys()


def test_a_dataset_in_files_gives_the_same_elements(tmp_path):
    whole = Dataset.from_tensor_slices(columns(50), label="id")
    spilled = whole.spill(tmp_path / "run")
    assert spilled.element_spec == whole.element_spec and spilled.cardinality() == 50
    for change in [lambda data: data, lambda data: data.batch(7), lambda data: data.shuffle(20, 3).batch(4), lambda data: data.skip(13).shard(3, 1)]:
        pairs = list(zip(change(whole), change(spilled), strict=True))
        assert pairs and all(same(one, other) for one, other in pairs)


def test_what_is_above_the_table_stays(tmp_path):
    plain = {"id": np.arange(50)}
    chain = Dataset.from_tensor_slices(plain).shuffle(10, 1).batch(8).repeat(2)
    both = Dataset.zip([Dataset.range(50), Dataset.from_tensor_slices(plain)]).batch(8)
    for data in [chain, both]:
        assert [each["id"].tolist() for each in data.spill(tmp_path)] == [each["id"].tolist() for each in data]
    assert len(os.listdir(tmp_path)) == 1  # equal columns are one file
    small = chain.spill(tmp_path / "none", bytes_min=1 << 20)
    assert not (tmp_path / "none").exists() and len(list(small)) == len(list(chain))


def test_an_iterator_goes_on_in_a_run_that_begins_again(tmp_path):
    state = None
    data = Dataset.from_tensor_slices(columns(40)).spill(tmp_path).batch(3)
    iterator = iter(data)
    for _ in range(5):
        next(iterator)
    state = iterator.state
    again = Dataset.from_tensor_slices(columns(40)).spill(tmp_path).batch(3)
    assert [each["id"].tolist() for each in again.open(state)] == [each["id"].tolist() for each in iterator]


def test_files_that_are_missing_or_damaged_are_named(tmp_path):
    data = Dataset.from_tensor_slices(columns(9)).spill(tmp_path)
    files = sorted(tmp_path.iterdir())
    for file in files:
        whole = file.read_bytes()
        for torn in [whole[:-1], whole[:10], b"", whole + b"x", b"X" + whole[1:]]:
            file.write_bytes(torn)
            with pytest.raises((cairn.DataLossError, ValueError), match=file.name):
                list(data)
        file.write_bytes(whole)
    assert len(list(data)) == 9
    files[0].unlink()
    with pytest.raises(FileNotFoundError, match=f"does not see the table's file .*{files[0].name}.*workers share"):
        list(data)
    with pytest.raises(FileNotFoundError, match="cannot be made"):
        Dataset.range(3).concatenate(Dataset.range(2)).zip([Dataset.from_tensor_slices({"x": np.arange(3)})]).spill(tmp_path / "no" / "folder")


def test_random_bytes_in_a_file_are_an_error_or_other_values(tmp_path):
    data = Dataset.from_tensor_slices(columns(20)).spill(tmp_path).batch(20)
    random = np.random.default_rng(3)
    for file in sorted(tmp_path.iterdir()):
        whole = file.read_bytes()
        for _ in range(40):
            spoiled = bytearray(whole)
            for place in random.integers(0, len(whole), 3):
                spoiled[place] = random.integers(256)
            file.write_bytes(spoiled)
            try:
                list(data)
            except (cairn.DataLossError, ValueError):
                pass
        file.write_bytes(whole)


def test_workers_map_what_does_not_travel(tmp_path):
    rows = 300_000
    random = np.random.default_rng(1)
    table = {f"f{i}": random.random(rows) for i in range(30)}
    table["id"] = np.arange(rows)
    data = Dataset.from_tensor_slices(table).batch(1000)
    with cairn.LocalCluster(ps=1, workers=2) as cluster:
        strategy = cluster.strategy()
        coordinator = cairn.ClusterCoordinator(strategy)
        ragged = Dataset.from_tensor_slices({"tags": cairn.Ragged(np.arange(6), np.array([0, 2, 2, 6]))}).batch(3)
        inputs = [coordinator.create_per_worker_dataset(each.spill(tmp_path)) for each in (data, ragged)]

        @strategy.function
        def step(iterator):
            return cairn.reduce_sum(next(iterator).features["id"])

        @strategy.function
        def tags(iterator):
            of = next(iterator).features
            return cairn.reduce_sum(of.values("tags")), cairn.reduce_sum(of.row_splits("tags"))

        totals = [coordinator.schedule(step, (inputs[0],)) for _ in range(20)]
        both = coordinator.schedule(tags, (inputs[1],))
        coordinator.join()
        assert all(total.get().item() % 1000 == 500 for total in totals)  # each of 1000 numbers in a row
        assert [each.item() for each in both.get()] == [15, 10]
