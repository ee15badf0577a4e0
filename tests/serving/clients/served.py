"""`cairn serve` as a process, models that it serves, and requests to it."""

import http.client
import json
import os
import pathlib
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import cairn

ROOT = pathlib.Path(__file__).resolve().parents[3]
CAIRN = os.path.join(os.environ["CAIRN_PROGRAMS"], "cairn")
PATIENCE_S = 60


def run(*arguments, status=0):
    """What a command of `cairn` prints, after it has ended with this status."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CAIRN_TOKEN")}
    done = subprocess.run(
        [CAIRN, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == status, f"cairn {arguments} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def start(*arguments):
    """A command of `cairn` that goes on; it ends with the thread that starts it, however that ends."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CAIRN_TOKEN")}
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", CAIRN, *map(str, arguments)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json()["error"]

    @property
    def step(self):
        return int(self.headers["x-cairn-step"])


class Client:
    """One connection."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)

    def ask(self, method, target, body=None, **headers):
        """Keywords are headers: content_type is Content-Type."""
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, target, body, named)
        return Answer(self.connection.getresponse())

    def get(self, target, **headers):
        return self.ask("GET", target, **headers)

    def post(self, target, body, **headers):
        return self.ask("POST", target, body, **headers)

    def close(self):
        self.connection.close()


class Server:
    """The process, from its line "serving at" until it has ended in order."""

    def __init__(self, *arguments):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CAIRN_TOKEN")}
        # Ends with the thread that starts it, however that ends.
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", CAIRN, "serve", *map(str, arguments), "--port", "0"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.log, self.url, self.listens = "", None, threading.Event()
        self.reading = threading.Thread(target=self._read)
        self.reading.start()
        self.listens.wait(PATIENCE_S)
        if self.url is None:
            self.process.kill()
            raise AssertionError(f"ended with {self.process.wait()} instead of serving: {self.log}")
        self.port = int(self.url.rsplit(":", 1)[1])
        self.address = f"127.0.0.1:{self.port}"
        self.client = Client(self)

    def _read(self):
        """All that the process prints, so that it never waits for a reader."""
        for line in self.process.stdout:
            self.log += line
            if line.startswith("serving at "):
                self.url = line.split()[-1]
                self.listens.set()
        self.listens.set()

    def get(self, target, **headers):
        return self.client.get(target, **headers)

    def post(self, target, body, **headers):
        return self.client.post(target, body, **headers)

    def end(self):
        """Asks the process to end, and waits until it has."""
        self.client.close()
        self.process.terminate()
        return self.ended()

    def ended(self):
        """The status of the process, which ends by itself; `log` is whole then."""
        status = self.process.wait(PATIENCE_S)
        self.reading.join(PATIENCE_S)
        return status

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.client.close()
        if self.process.poll() is None:
            status = self.end()
            assert kind or status == 0, f"ended with {status}: {self.log}"
        self.process.stdout.close()


def save_half_plus(number, folder):
    """TensorFlow Serving's half_plus_two and its kin: x * 0.5 + number."""
    model = cairn.Model(lambda x: x * 0.5 + float(number), name=folder.parent.name)
    model.build({"x": np.zeros(2, "float32")})
    model.save(str(folder))
    return folder.parent


class Training:
    """A folder of versions of a model that has learned a step more in each."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.expected = {}  # by version, for x = 1
        self.versions = {}  # by the training step, which grows with them
        self.version = 0
        self.model = cairn.Model(cairn.nn.Sequential([cairn.nn.Dense(1)]), name="line")
        self.model.compile(optimizer="sgd", loss="mse")

    def save(self, damaged=False):
        """The next version; it appears at once, as a folder that is moved there."""
        ones = np.ones((4, 1), "float32")
        self.model.fit(ones, 3 * ones, batch_size=4, epochs=1, verbose=0)
        self.version += 1
        made = self.model.save(str(self.folder.parent / f"made-{self.version}"))
        loaded = cairn.load_model(made)
        self.expected[self.version] = float(loaded.predict(ones[:1])[0, 0])
        self.versions[loaded.global_step] = self.version
        if damaged:
            self._damage(pathlib.Path(made))
        os.rename(made, self.folder / str(self.version))
        return self.version

    def version_of(self, answer):
        """The version that an answer is of, by its header and by what it predicts."""
        version = self.versions[answer.step]
        same_bits(answer.json()["predictions"], [self.expected[version]])
        return version

    @staticmethod
    def _damage(model):
        """Half of what was saved of the weights is there no longer."""
        tables = list((model / "weights").rglob("*.sst"))
        assert tables
        for table in tables:
            saved = table.read_bytes()
            half = len(saved) // 2
            table.write_bytes(bytes(half) + saved[half:])


class Adult:
    """Wide & Deep on the census data, as the quickstart trains it, and what `cairn predict` says of its test rows."""

    ROWS = 203  # 29 batches of 7

    def __init__(self, folder):
        self.run = pathlib.Path(folder) / "adult"
        run("train", ROOT / "examples/adult.toml", "--strategy", "one_device", "--epochs", 1, "--dir", self.run)
        loaded = cairn.load_model(str(self.run / "model"))
        self.names = list(loaded.inputs)
        text = subprocess.run(
            ["zcat", ROOT / "examples/data/adult/adult.test.gz"], capture_output=True, text=True, check=True
        ).stdout
        self.lines = [line for line in text.splitlines() if line and not line.startswith("|")][: self.ROWS]
        rows = pathlib.Path(folder) / "rows.csv"
        rows.write_text("".join(line + "\n" for line in self.lines), encoding="utf-8")
        predicted = run("predict", self.run / "model", "--data", rows, "--out", pathlib.Path(folder) / "predicted.csv")
        assert str(self.ROWS) in predicted
        header, *cells = (pathlib.Path(folder) / "predicted.csv").read_text().split()
        assert header == "probability"
        self.expected = np.array([np.float32(cell) for cell in cells])
        batches = list(loaded.examples([str(rows)]).batch(self.ROWS))
        assert len(batches) == 1
        self.columns = {name: np.asarray(batches[0][name]) for name in self.names}

    # What the file calls its columns, those left out by "-" among them.
    HEADER = (
        "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
        "capital-loss hours-per-week native-country income"
    ).split()
    NUMBERS = {"age", "education-num", "capital-gain", "capital-loss", "hours-per-week"}

    def csv(self, rows):
        return "".join(self.lines[row] + "\n" for row in rows)

    def objects(self, rows):
        """Rows as JSON objects by column name."""
        made = []
        for row in rows:
            cells = dict(zip(self.HEADER, (cell.strip() for cell in self.lines[row].split(",")), strict=True))
            del cells["fnlwgt"], cells["income"]
            made.append({name: int(cell) if name in self.NUMBERS else cell for name, cell in cells.items()})
        return made


FILM_WIDTH = 16


def save_films(folder, seed):
    """A model whose queries and films are their own vectors, turned by what a seed draws."""
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(FILM_WIDTH, FILM_WIDTH)))[0].astype("float32")

    def network(features):
        return {"query": features["taste"] @ turn, "candidate": features["film"] @ turn}

    model = cairn.Model(network, name="films")
    model.build({"taste": np.zeros((2, FILM_WIDTH), "float32"), "film": np.zeros((2, FILM_WIDTH), "float32")})
    model.save(str(folder))


class Visits:
    """What examples/visits.py leaves, and vectors of its areas and of some users."""

    FIRST, AREAS, SEEN = 1000, 298, 8
    USERS = 200

    def __init__(self, folder):
        self.model = folder / "visits"
        program = [sys.executable, ROOT / "examples" / "visits.py", f"--model={self.model}"]
        subprocess.run(program, cwd=ROOT, check=True, capture_output=True, timeout=200)
        users = np.random.default_rng(7)
        self.seen = np.full((self.USERS, self.SEEN), self.AREAS)
        for row in self.seen:
            visited = users.choice(self.AREAS, users.integers(1, self.SEEN + 1), replace=False)
            row[: len(visited)] = visited
        loaded = cairn.load_model(str(self.model))
        areas = np.arange(self.AREAS)
        both = loaded.predict({"seen": self.seen[np.zeros(self.AREAS, int)], "area": areas})
        self.vectors = np.asarray(both["candidate"])
        self.queries = np.asarray(loaded.predict({"seen": self.seen, "area": areas[:self.USERS]})["query"])


def at_once(count, job):
    """The results of job(0), ..., job(count - 1), each in a thread of its own."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(job, range(count)))


def same_bits(found, expected):
    found, expected = np.asarray(found, "float32").ravel(), np.asarray(expected, "float32").ravel()
    assert found.shape == expected.shape
    differ = np.flatnonzero(found.view("uint32") != expected.view("uint32"))
    assert differ.size == 0, f"{differ.size} differ, the first at {differ[0]}: {found[differ[0]]} is not {expected[differ[0]]}"
