"""NumPy and hnswlib read the candidates of a retrieval model:
  read_candidates.py CAIRN"""
import csv
import os
import subprocess
import sys
import tempfile

import hnswlib
import numpy

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


def write_data(folder):
    """Users of a taste see films of it: of 30 films, three belong to each taste."""
    with open(os.path.join(folder, "a.csv"), "w") as out:
        out.write("user,age,film,length\n")
        for i in range(1500):
            user = i * 7 % 40
            film = user % 10 * 3 + i // 40 % 3
            out.write(f"u{user},{20 + user},film_{film},{80 + film % 3}\n")
    with open(os.path.join(folder, "job.toml"), "w") as out:
        out.write(JOB)


def names_in(arrays):
    ends = arrays["text_ends"]
    text = arrays["text"].tobytes()
    return [text[begin:end].decode() for begin, end in zip([0, *ends], ends)]


def vectors_of(row, which):
    width = sum(1 for name in row if name.startswith(which + "_"))
    return numpy.array([float(row[f"{which}_{i}"]) for i in range(width)], "f4")


def main():
    cairn = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder)

        def run(*arguments):
            subprocess.run([cairn, *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL)

        run("train", "job.toml", "--strategy", "one_device", "--dir", "run")
        run("predict", "run", "--data", "a.csv", "--out", "predicted.csv")
        run("model", "candidates", "run", "--data", "a.csv", "--out", "films.npz")
        run("model", "candidates", "run", "--data", "a.csv", "--out", "films.hnsw")
        arrays = numpy.load(os.path.join(folder, "films.npz"))
        names, vectors = names_in(arrays), arrays["vectors"]
        assert sorted(names) == sorted(f"film_{i}" for i in range(30)), names
        with open(os.path.join(folder, "a.csv")) as data, \
             open(os.path.join(folder, "predicted.csv")) as predicted:
            rows = list(zip(csv.DictReader(data), csv.DictReader(predicted)))
        first = {}
        for row, prediction in rows:
            first.setdefault(row["film"], vectors_of(prediction, "candidate"))
        assert list(first) == names, "candidates come in the order of the data"
        numpy.testing.assert_allclose(vectors, numpy.array(list(first.values())), atol=1e-6)

        index = hnswlib.Index(space="ip", dim=vectors.shape[1])
        index.load_index(os.path.join(folder, "films.hnsw"))
        beside = numpy.load(os.path.join(folder, "films.hnsw.ids.npz"))
        assert names_in(beside) == names
        assert index.get_current_count() == len(names)
        queries = numpy.array([vectors_of(prediction, "query") for _, prediction in rows[:40]])
        index.set_ef(50)
        labels, distances = index.knn_query(queries, k=3)
        best = numpy.sort(queries @ vectors.T, axis=1)[:, ::-1][:, :3]
        numpy.testing.assert_allclose(1 - distances, best, atol=1e-5)
        found = {names[label] for label in labels[0]}
        print(f"{len(names)} candidates of {vectors.shape[1]} numbers; for {rows[0][0]['user']}: {found}")


main()
