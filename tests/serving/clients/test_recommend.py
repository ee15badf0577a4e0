"""`:recommend` gives numpy's exact top k, of examples/visits and of jobs of `cairn train`."""

import os
import time

import numpy as np
import pytest
import served

K = 10
QUERIES, FILMS, WIDTH = 400, 3000, served.FILM_WIDTH


def exact(queries, vectors, k, exclude=()):
    """The places of the best for each query: by descending product; of equal ones the lower place comes first."""
    scores = queries @ vectors.T
    for row, places in enumerate(exclude):
        scores[row, list(places)] = -np.inf
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def recall(found, best):
    return np.mean([len(np.intersect1d(*pair)) for pair in zip(found, best, strict=True)]) / K


def recommended(answer):
    assert answer.status == 200, answer.body
    return answer.json()["recommendations"]


# ---- examples/visits ----


@pytest.fixture(scope="module")
def visits_server(visits):
    with served.Server(visits.model, "--threads", 2) as server:
        yield server


def test_visits_are_recommended_from_what_the_example_leaves(visits, visits_server):
    body = {"instances": visits.seen.tolist(), "k": K}
    found = recommended(visits_server.post("/v1/models/visits:recommend", body))
    assert [each["ids"] for each in found] == (exact(visits.queries, visits.vectors, K) + served.Visits.FIRST).tolist()
    scores = np.sort(visits.queries @ visits.vectors.T, axis=1)[:, ::-1][:, :K]
    np.testing.assert_allclose([each["scores"] for each in found], scores, rtol=1e-5, atol=1e-6)


def test_what_a_user_has_seen_is_left_out(visits, visits_server):
    seen = [[int(area) for area in row if area < served.Visits.AREAS] for row in visits.seen]
    exclude = [[served.Visits.FIRST + area for area in row] for row in seen]
    body = {"instances": visits.seen.tolist(), "exclude": exclude}
    found = recommended(visits_server.post("/v1/models/visits:recommend", body))
    wanted = exact(visits.queries, visits.vectors, K, seen) + served.Visits.FIRST
    assert [each["ids"] for each in found] == wanted.tolist()


def test_eight_clients_at_once_get_the_bits_that_one_gets(visits, visits_server):
    def one(client, user):
        body = {"instances": [visits.seen[user].tolist()], "k": 1 + user % 20}
        return client.post("/v1/models/visits:recommend", body).body

    alone = [one(visits_server, user) for user in range(served.Visits.USERS)]

    def asks(number):
        client = served.Client(visits_server)
        users = np.random.default_rng(number).permutation(served.Visits.USERS).tolist()
        assert all(one(client, user) == alone[user] for user in users)
        client.close()

    served.at_once(8, asks)


# ---- an index ----


class Films:
    """Films around a few topics, and queries that are drawn as those of the sample are."""

    def __init__(self, folder):
        self.folder = folder / "films"
        draws = np.random.default_rng(3)
        topics = draws.normal(size=(40, WIDTH))
        self.films = (topics[draws.integers(40, size=FILMS)] + draws.normal(size=(FILMS, WIDTH))).astype("float32")
        tastes = (topics[draws.integers(40, size=2 * QUERIES)] + draws.normal(size=(2 * QUERIES, WIDTH))).astype("float32")
        self.tastes = tastes[:QUERIES]
        self.folder.mkdir()
        served.save_films(self.folder / "1", 1)
        sample = {"query/taste": tastes[QUERIES:]}
        np.savez(self.folder / "candidates.npz", ids=np.arange(FILMS), film=self.films, **sample)

    def found(self, server):
        body = {"inputs": {"taste": self.tastes.astype(float).tolist()}, "k": K}
        return np.array(server.post("/v1/models/films:recommend", body).json()["outputs"]["ids"])


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    return Films(tmp_path_factory.mktemp("films"))


def test_the_exact_scan_says_that_it_finds_all_and_does(films, serve):
    server = serve(films.folder)
    told = server.get("/v1/models/films/metadata").json()["metadata"]["candidates"]
    assert told == {"count": FILMS, "width": WIDTH, "index": "exact", "recall_at_10": 1.0}
    # The last bits of products may put two films in another order.
    assert recall(films.found(server), exact(films.tastes, films.films, K)) > 0.999


def test_an_index_finds_as_many_as_its_metadata_says(films, serve):
    server = serve(films.folder, "--index", "hnsw")
    told = server.get("/v1/models/films/metadata").json()["metadata"]["candidates"]
    assert told["index"] == "hnsw"
    best = exact(films.tastes, films.films, K)
    found = recall(films.found(server), best)
    assert abs(found - told["recall_at_10"]) <= 0.01, (found, told)
    assert found > 0.9
    assert server.get("/v2/models/films").json()["parameters"]["candidate_recall_at_10"] == told["recall_at_10"]


def test_a_new_version_has_candidates_of_its_own_while_clients_ask(films, serve):
    server = serve(films.folder, "--look-every", 0.05)
    wanted = exact(films.tastes, films.films, K)
    served.save_films(films.folder / "made", 2)
    os.rename(films.folder / "made", films.folder / "2")
    ends = time.monotonic() + served.PATIENCE_S
    while server.get("/v1/models/films/metadata").json()["model_spec"]["version"] != "2":
        assert time.monotonic() < ends, "it did not take over"
        # The turn of one version's queries and of another one's films would give other products.
        assert np.mean(films.found(server) == wanted) > 0.99
    assert np.mean(films.found(server) == wanted) > 0.99
    os.rename(films.folder / "2", films.folder.parent / "2")


# ---- a job of `cairn train` ----

JOB = """
[data]
train = "a.csv"
batch = 50
epochs = 10
shuffle = 500
candidate = "film"
[data.csv]
header = true
columns = ["user", "age:float32", "film", "length:float32"]
[features]
vocabulary = ["user", "film"]
numeric = ["age", "length"]
[model]
objective = "retrieval"
query = ["user", "age"]
candidate = ["film", "length"]
hidden = [16]
[optimizer]
kind = "adagrad"
learning_rate = 0.3
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Users of a taste see films of it: of 30 films, three belong to each taste."""
    folder = tmp_path_factory.mktemp("job")
    lines = ["user,age,film,length"]
    for i in range(1500):
        user = i * 7 % 40
        film = user % 10 * 3 + i // 40 % 3
        lines.append(f"u{user},{20 + user},film_{film},{80 + film % 3}")
    (folder / "a.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "job.toml").write_text(JOB, encoding="utf-8")
    served.run("train", folder / "job.toml", "--strategy", "one_device", "--dir", folder / "run")
    return folder / "run"


def test_rows_of_the_training_data_are_recommended_from(run, serve):
    server = serve(run, "--candidates", run.parent / "a.csv")
    rows = [{"user": f"u{user}", "age": 20 + user, "film": "film_0", "length": 80} for user in range(40)]
    answer = server.post("/v1/models/run:recommend?raw&k=3", rows, Content_Type="application/json")
    right = 0
    for user, each in enumerate(recommended(answer)):
        assert len(each["ids"]) == 3 and each["scores"] == sorted(each["scores"], reverse=True)
        right += len({f"film_{user % 10 * 3 + i}" for i in range(3)} & set(each["ids"]))
    assert right > 108  # of 120; by chance it is 12


def test_exported_vectors_serve_the_version_that_they_are_of(run, serve, tmp_path):
    films = tmp_path / "films.npz"
    served.run("model", "candidates", run, "--data", run.parent / "a.csv", "--out", films)
    rows = "user,age,film,length\nu3,23,film_0,80\n"
    target = "/v1/models/run:recommend?raw"
    exported = serve(run, "--candidates", films).post(target, rows)
    assert recommended(exported) == recommended(serve(run, "--candidates", run.parent / "a.csv").post(target, rows))
    with np.load(films) as arrays:
        np.savez(tmp_path / "older.npz", **{**arrays, "step": arrays["step"] - 1})
    said = served.run("serve", run, "--port", 0, "--candidates", tmp_path / "older.npz", status=1)
    assert "give the candidates' columns" in said
