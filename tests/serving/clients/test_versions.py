"""Versions come, take over between two requests, are refused, are pinned and labelled, while clients ask."""

import os
import re
import shutil
import threading
import time

import numpy as np
import pytest
import served

import cairn

PREDICT = "/v1/models/line:predict"
BODY = {"instances": [[1.0]]}


def until(what, patience_s=served.PATIENCE_S):
    """Asks again and again until it is so; fails when that takes too long."""
    ends = time.monotonic() + patience_s
    while not (found := what()):
        assert time.monotonic() < ends, "it did not come"
        time.sleep(0.01)
    return found


class Asking:
    """Clients that ask in a loop, each on a connection of its own, and keep which versions answered."""

    def __init__(self, server, training, count=4):
        self.server, self.training = server, training
        self.versions = [[] for _ in range(count)]
        self.wrong = []
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=(each,)) for each in self.versions]

    def ask(self, versions):
        client = served.Client(self.server)
        try:
            while not self.ended.is_set():
                answer = client.post(PREDICT, BODY)
                assert answer.status == 200, answer.body
                versions.append(self.training.version_of(answer))
        except Exception as error:  # shown by the test, which is another thread
            self.wrong.append(error)
        finally:
            client.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join(served.PATIENCE_S)


def test_no_request_fails_and_no_version_goes_back_while_others_take_over(training, serve):
    training.save()
    server = serve(training.folder, "--look-every", 0.01)
    with Asking(server, training) as asking:
        for number in range(8):
            if number == 4:  # the one before serves on
                training.save(damaged=True)
                refused = 'cairn_serve_refused_versions{model="line"} 1\n'
                until(lambda: asking.wrong or refused in server.get("/metrics").body.decode())
            version = training.save()
            until(lambda: asking.wrong or training.version_of(server.post(PREDICT, BODY)) == version)
        newest = [len(versions) for versions in asking.versions]
        until(lambda: asking.wrong or all(len(v) > n + 1 for v, n in zip(asking.versions, newest, strict=True)))
    assert not asking.wrong
    for versions in asking.versions:
        assert versions == sorted(versions) and versions[-1] == 10 and len(set(versions)) > 1
        assert 6 not in versions
    # What has been replaced answers no more.
    server.post("/v2/repository/reload", "")
    assert [each["version"] for each in server.get("/v1/models/line").json()["model_version_status"]] == ["10"]
    assert server.post("/v1/models/line/versions/9:predict", BODY).status == 404


def test_a_run_that_is_trained_on_serves_its_newest_checkpoint(adult, serve, tmp_path):
    run = tmp_path / "adult"
    options = ["--strategy", "one_device", "--dir", run]
    served.run("train", served.ROOT / "examples/adult.toml", *options, "--epochs", 1)
    server = serve(run, "--look-every", 0)
    before = server.post("/v1/models/adult:predict?raw", adult.csv(range(5)))
    served.same_bits(before.json()["predictions"], adult.expected[:5])
    served.run("train", served.ROOT / "examples/adult.toml", *options, "--epochs", 2, "--resume", run)
    served.run("serve", "reload", "--address", server.address)
    after = server.post("/v1/models/adult:predict?raw", adult.csv(range(5)))
    assert after.step == cairn.load_model(str(run / "model")).global_step > before.step
    (tmp_path / "rows.csv").write_text(adult.csv(range(5)), encoding="utf-8")
    served.run("predict", run / "model", "--data", tmp_path / "rows.csv", "--out", tmp_path / "out.csv")
    served.same_bits(after.json()["predictions"], list(map(float, (tmp_path / "out.csv").read_text().split()[1:])))


def test_a_damaged_version_is_refused_and_told_everywhere(training, serve):
    training.save()
    server = serve(training.folder, "--look-every", 0)
    said = served.run("serve", "status", "--address", server.address)
    assert said.split() == ["line", "1", "READY"]
    training.save(damaged=True)

    said = served.run("serve", "reload", "--address", server.address, status=1)

    newest, oldest = said.splitlines()
    assert newest.split()[:3] == ["line", "2", "UNAVAILABLE"] and len(newest.split()) > 4, said
    assert oldest.split() == ["line", "1", "READY"]
    assert served.run("serve", "status", "--address", server.address, status=1) == said
    versions = server.get("/v1/models/line").json()["model_version_status"]
    assert [(each["version"], each["state"]) for each in versions] == [("2", "END"), ("1", "AVAILABLE")]
    assert versions[0]["status"]["error_code"] != "OK" and versions[0]["status"]["error_message"] in newest
    assert 'cairn_serve_refused_versions{model="line"} 1\n' in server.get("/metrics").body.decode()
    assert "version 2 in " in server.log and "is refused, and version 1 serves on" in server.log
    assert training.version_of(server.post(PREDICT, BODY)) == 1
    assert server.post("/v1/models/line/versions/2:predict", BODY).status == 404
    assert server.get("/v2/health/ready").status == 200

    # One that is sound takes over, and the refused one is told of no more once it is gone.
    training.save()
    shutil.rmtree(training.folder / "2")
    assert served.run("serve", "reload", "--address", server.address).split() == ["line", "3", "READY"]
    assert 'cairn_serve_refused_versions{model="line"} 0\n' in server.get("/metrics").body.decode()


def test_a_version_of_another_signature_is_refused(models, serve, tmp_path):
    folder = tmp_path / "half_plus_two"
    shutil.copytree(models / "half_plus_two", folder)
    server = serve(folder, "--look-every", 0)
    other = served.Training(tmp_path / "line")
    other.save()
    shutil.copytree(other.folder / "1", folder / "124")
    said = served.run("serve", "reload", "--address", server.address, status=1)
    assert '"x"' in said.splitlines()[0]
    assert server.post("/v1/models/half_plus_two:predict", {"instances": [1.0]}).json() == {"predictions": [2.5]}


def test_a_model_that_is_damaged_at_the_start_is_a_mistake_that_is_told(training, tmp_path):
    training.save(damaged=True)
    said = served.run("serve", training.folder, "--port", 0, status=1)
    assert "model line: version 1 cannot be served: " in said


def test_a_sound_version_serves_from_the_start_beside_damaged_newer_ones(training, serve):
    training.save()
    training.save(damaged=True)
    training.save(damaged=True)
    server = serve(training.folder, "--look-every", 0)
    assert training.version_of(server.post(PREDICT, BODY)) == 1
    states = [each["state"] for each in server.get("/v1/models/line").json()["model_version_status"]]
    assert states == ["END", "END", "AVAILABLE"]
    assert 'cairn_serve_refused_versions{model="line"} 2\n' in server.get("/metrics").body.decode()
    assert "version 3" in server.log and "version 2" in server.log and "model line: version 1\n" in server.log


def test_a_pinned_version_stays_however_many_newer_ones_come(training, serve):
    for _ in range(3):
        training.save()
    server = serve(training.folder, "--pin", 2, "--look-every", 0)
    assert training.version_of(server.post(PREDICT, BODY)) == 2
    training.save()
    assert served.run("serve", "reload", "--address", server.address).split() == ["line", "2", "READY"]
    assert training.version_of(server.post(PREDICT, BODY)) == 2


def test_labels_serve_further_versions_at_addresses_of_their_own(training, serve):
    for _ in range(3):
        training.save()
    server = serve(training.folder, "--label", "stable=1", "--label", "line:canary=3", "--look-every", 0)
    assert training.version_of(server.post("/v1/models/line/labels/stable:predict", BODY)) == 1
    assert training.version_of(server.post("/v1/models/line/labels/canary:predict", BODY)) == 3
    assert training.version_of(server.post("/v1/models/line/versions/1:predict", BODY)) == 1
    assert training.version_of(server.post(PREDICT, BODY)) == 3
    about = server.get("/v1/models/line/labels/stable/metadata").json()
    assert about["model_spec"]["version"] == "1"
    status = server.get("/v1/models/line/labels/stable").json()
    assert [each["version"] for each in status["model_version_status"]] == ["1"]
    training.save()
    served.run("serve", "reload", "--address", server.address)
    assert training.version_of(server.post(PREDICT, BODY)) == 4
    assert training.version_of(server.post("/v1/models/line/labels/stable:predict", BODY)) == 1
    answer = server.post("/v1/models/line/labels/stabel:predict", BODY)
    assert answer.status == 404 and 'did you mean "stable"?' in answer.error


def test_a_folder_without_a_version_is_waited_for(training, serve):
    server = serve(training.folder, "--look-every", 0.01)
    assert "nothing to serve yet" in server.log
    assert server.get("/v2/health/live").status == 200 and server.get("/v2/health/ready").status == 503
    answer = server.post(PREDICT, BODY)
    assert answer.status == 503 and "no version that serves yet" in answer.error
    assert served.run("serve", "status", "--address", server.address, status=1).split()[:1] == ["line"]
    training.save()
    until(lambda: server.get("/v2/health/ready").status == 200)
    assert training.version_of(server.post(PREDICT, BODY)) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pin", "two"], '--pin: "two" is no number of a version'),
        (["--pin", "lien=2"], 'there is no model "lien"; did you mean "line"?'),
        (["--label", "=2"], "write LABEL=VERSION"),
        (["line=/nowhere"], "no folder /nowhere"),
        (["--candidates", "lien=films.npz"], 'there is no model "lien"; did you mean "line"?'),
        (["--candidates", "/nowhere.npz"], "there is no file /nowhere.npz"),
        (["--host", "0.0.0.0"], "token"),
        (["--host", "somewhere"], "somewhere"),
    ],
)
def test_a_command_line_that_cannot_be_served_says_why(training, arguments, said):
    training.save()
    models = [] if "=" in arguments[0] else [training.folder]
    assert said in served.run("serve", *models, *arguments, "--port", 0, status=1)


def test_a_version_that_is_removed_gives_way_to_the_one_before(training, serve):
    training.save()
    training.save()
    server = serve(training.folder, "--look-every", 0)
    assert training.version_of(server.post(PREDICT, BODY)) == 2
    shutil.rmtree(training.folder / "2")
    assert served.run("serve", "reload", "--address", server.address).split() == ["line", "1", "READY"]
    assert training.version_of(server.post(PREDICT, BODY)) == 1
    # The last one serves on without its files.
    shutil.rmtree(training.folder / "1")
    served.run("serve", "reload", "--address", server.address)
    assert training.version_of(server.post(PREDICT, BODY)) == 1


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--threads", ["0", "-1", "1025"]),
        ("--queue", ["0", "-1"]),
        ("--batch-max", ["0"]),
        ("--batch-wait", ["-1", "nan", "1e9"]),
        ("--deadline", ["0", "-1", "inf"]),
        ("--max-body", ["0", "-1", "nan", "1e30"]),
        ("--look-every", ["-1", "nan"]),
        ("--drain", ["-1", "nan"]),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_by_its_option(models, option, values):
    for value in values:
        said = served.run("serve", models / "half_plus_two", "--port", 0, option, value, status=2)
        assert f"{option}: Value {value} not in range" in said


def test_memory_is_given_back_when_versions_end(serve, tmp_path):
    table, tower = cairn.nn.Embedding(rows=200_000, dim=16, name="table"), cairn.nn.Mlp([1000, 2000, 1])
    large = cairn.Model(lambda ids: tower(table(ids)), name="large")
    large.build({"id": np.arange(2)})
    made = large.save(str(tmp_path / "made"))
    folder = tmp_path / "large"

    def put(version):
        shutil.copytree(made, tmp_path / "next")
        folder.mkdir(exist_ok=True)
        os.rename(tmp_path / "next", folder / str(version))

    def resident():
        page = server.get("/metrics").body.decode()
        return float(re.search("^process_resident_memory_bytes (.*)$", page, re.MULTILINE)[1])

    put(1)
    server = serve(folder, "--look-every", 0)
    ask = lambda: server.post("/v1/models/large:predict", {"instances": [1, 2, 3]})
    assert ask().status == 200
    before = resident()
    for version in range(2, 17):
        put(version)
        said = served.run("serve", "reload", "--address", server.address)
        assert said.split() == ["large", str(version), "READY"]
        assert ask().status == 200
        shutil.rmtree(folder / str(version - 1))
    server.post("/v2/repository/reload", "")
    # A version has 20 MB.
    assert resident() < 1.05 * before, (before, resident())
