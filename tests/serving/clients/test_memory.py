"""Tables that are larger than the server's memory: read from the model's files, the hot rows cached, under --memory-limit."""

import pathlib
import re
import shutil

import numpy as np
import pytest
import served
import test_metrics

import cairn

ROWS, DIM = 200_000, 32  # 26 MB
# 50 MB of which are the process's own: the table does not fit.
LIMIT = "64 MB"
PREDICT = "/v1/models/large:predict"


class Large:
    """A model that gives a row of its table for each id."""

    def __init__(self, folder):
        table = cairn.nn.Embedding(rows=ROWS, dim=DIM, name="table")
        model = cairn.Model(lambda ids: table(ids) * 1.0, name="large")
        model.build(np.zeros(1, "int64"))
        self.expected = np.random.default_rng(1).standard_normal((ROWS, DIM)).astype("float32")
        table.table.scatter_update(np.arange(ROWS), self.expected)
        self.path = pathlib.Path(model.save(str(folder / "large")))

    def ask(self, server, ids):
        return server.post(PREDICT, {"instances": [int(id) for id in ids]})

    def verify(self, server, ids):
        answer = self.ask(server, ids)
        assert answer.status == 200, answer.body
        served.same_bits(answer.json()["predictions"], self.expected[ids])


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return Large(tmp_path_factory.mktemp("large"))


def metric(server, name, **labels):
    _, now = test_metrics.families(server)
    return test_metrics.value(now, name.removesuffix("_total"), name, **labels)


def test_rows_of_a_table_that_does_not_fit_have_the_bits_of_one_in_memory(large, serve):
    server = serve(large.path, "--memory-limit", LIMIT)
    draw = np.random.default_rng(2)
    for _ in range(5):
        large.verify(server, draw.integers(0, ROWS, 500))
    large.verify(server, [0, ROWS - 1])
    assert metric(server, "cairn_serve_memory_limit_bytes") == 64e6
    assert 1 << 20 < metric(server, "cairn_serve_cache_bytes") < 64e6
    # The table is not in memory: what the version holds is what finds its rows.
    assert metric(server, "cairn_serve_model_bytes", model="large", version=server_version(server)) < 1 << 20


def server_version(server):
    return server.get("/v1/models/large").json()["model_version_status"][0]["version"]


def test_rows_that_are_asked_for_again_are_cached_and_counted(large, serve):
    server = serve(large.path, "--memory-limit", LIMIT)
    ids = np.arange(300) * 601
    large.verify(server, ids)
    hits, misses = (metric(server, f"cairn_serve_cache_{kind}_total", model="large") for kind in ("hits", "misses"))
    assert (hits, misses) == (0, 300)
    for _ in range(3):
        large.verify(server, ids)
    hits, misses = (metric(server, f"cairn_serve_cache_{kind}_total", model="large") for kind in ("hits", "misses"))
    assert (hits, misses) == (900, 300)


def test_a_model_that_fits_is_in_memory(large, serve):
    server = serve(large.path, "--memory-limit", "200 MB")
    large.verify(server, [1, 2, 3])
    assert metric(server, "cairn_serve_cache_misses_total", model="large") == 0
    assert metric(server, "cairn_serve_model_bytes", model="large", version=server_version(server)) > 25e6


def test_a_damaged_block_is_told_to_the_request_that_reads_it(large, serve, tmp_path):
    shutil.copytree(large.path, tmp_path / "large")
    server = serve(tmp_path / "large", "--memory-limit", LIMIT)
    # In the file, in place: a version that is verified as a whole when it is loaded would be refused.
    (file,) = (tmp_path / "large" / "weights").rglob("*.sst")
    damaged = ROWS // 2
    saved = file.read_bytes()
    at = saved.find(large.expected[damaged].tobytes())
    assert at > 0
    with open(file, "r+b") as changed:
        changed.seek(at)
        changed.write(bytes([saved[at] ^ 1]))

    answer = large.ask(server, [5, damaged])

    assert answer.status == 500
    assert str(file) in answer.error and f"row {damaged}" in answer.error and "checksum" in answer.error
    large.verify(server, [5, 6, ROWS - 1])
    assert metric(server, "cairn_serve_damaged_blocks_total", model="large") == 1
    assert large.ask(server, [damaged]).status == 500
    assert metric(server, "cairn_serve_damaged_blocks_total", model="large") == 1
    assert str(file) in server.log


def test_a_version_that_is_removed_while_it_serves_is_read_on(large, serve, tmp_path):
    folder = tmp_path / "large"
    shutil.copytree(large.path, folder / "1")
    server = serve(folder, "--memory-limit", LIMIT, "--look-every", 0)
    shutil.rmtree(folder / "1")
    served.run("serve", "reload", "--address", server.address)
    large.verify(server, np.arange(0, ROWS, 97))


def test_versions_take_over_within_the_limit(large, serve, tmp_path):
    folder = tmp_path / "large"
    shutil.copytree(large.path, folder / "1")
    server = serve(folder, "--memory-limit", LIMIT, "--look-every", 0)
    ids = np.arange(0, ROWS, 301)
    large.verify(server, ids)
    cache = metric(server, "cairn_serve_cache_bytes")
    for version in range(2, 6):
        shutil.copytree(large.path, tmp_path / "next")
        (tmp_path / "next").rename(folder / str(version))
        said = served.run("serve", "reload", "--address", server.address)
        assert said.split() == ["large", str(version), "READY"]
        large.verify(server, ids)
        assert metric(server, "cairn_serve_cache_bytes") == cache


def test_ids_that_a_hashed_table_has_no_row_for_are_counted(serve, tmp_path):
    table = cairn.nn.Embedding(rows=1 << 40, dim=4, hashed=True, name="table")
    model = cairn.Model(lambda ids: table(ids) * 1.0, name="hashed")
    model.build(np.zeros(1, "int64"))
    table.table.scatter_update(np.arange(10), np.ones((10, 4), "float32"))
    server = serve(model.save(str(tmp_path / "hashed")))
    for ids, unknown in (([1, 2, 3], 0), ([9, 10, 11], 2), ([10, 1 << 39], 4)):
        assert server.post("/v1/models/hashed:predict", {"instances": ids}).status == 200
        assert metric(server, "cairn_serve_unknown_ids_total", model="hashed") == unknown


def test_a_model_that_cannot_fit_is_refused_with_both_numbers(serve, tmp_path):
    model = cairn.Model(cairn.nn.Mlp([2000, 2000, 1]), name="wide")
    model.build(np.zeros((1, 2), "float32"))
    made = model.save(str(tmp_path / "wide"))
    said = served.run("serve", made, "--port", 0, "--memory-limit", "60 MB", status=1)
    needs, leaves, raised = map(int, re.search(r"needs (\d+) MB .* leaves (\d+) MB: .* Raise the limit to (\d+) MB", said).groups())
    assert leaves < needs < raised
    serve(made, "--memory-limit", f"{raised} MiB")


@pytest.mark.parametrize("limit", ["1 MB", "much", "-1 GB", "350"])
def test_a_limit_that_makes_no_sense_is_refused(large, limit):
    said = served.run("serve", large.path, "--port", 0, "--memory-limit", limit, status=1)
    assert "memory" in said and ("too small" in said or "no bound" in said), said
