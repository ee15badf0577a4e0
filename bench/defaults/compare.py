#!/usr/bin/env python3
"""Is a first job, which says nothing but its data, features and kind of model, as good as scikit-learn's linear model?
   bench/defaults/compare.py [DATA SET ...] [--kinds wide,deep] [--strategies one_device] [--seeds 3] [--cairn PROGRAM] [--with FILE.toml]
Needs scikit-learn. Every data set is read from examples/data, written as two files, and given to both: logistic regression (C = 1) or ridge
regression (alpha = 1) over standardised numbers and one-hot categories, and `cairn train` under each kind of model and strategy. Prints a line a
run; ends with 1 where a median is worse than the linear model by more than 0.002 AUC, or by more than 0.5 % of its RMSE."""
import argparse
import csv
import gzip
import io
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder, StandardScaler

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "examples/data"


def text_of(name):
    return gzip.open(DATA / name, "rt", encoding="utf-8", newline="\n").read()


def linear(objective, train, test, y_train, y_test):
    """AUC of logistic regression, or RMSE of ridge regression."""
    if objective == "binary":
        model = LogisticRegression(C=1.0, max_iter=3000).fit(train, y_train)
        return roc_auc_score(y_test, model.predict_proba(test)[:, 1])
    model = Ridge(alpha=1.0).fit(train, y_train)
    return float(np.sqrt(np.mean((model.predict(test) - y_test) ** 2)))


class Table:
    """Rows of a CSV file with a header, of which `numeric` and `categories` are features; the label is a number."""

    def __init__(self, name, objective, rows, is_test, numeric, categories, label, more=""):
        self.name, self.objective, self.numeric, self.categories, self.label, self.more = name, objective, numeric, categories, label, more
        self.train, self.test = [r for r in rows if not is_test(r)], [r for r in rows if is_test(r)]

    def write(self, folder):
        for part in ("train", "test"):
            with open(folder / f"{part}.csv", "w", newline="") as out:
                writer = csv.writer(out, lineterminator="\n")
                columns = self.numeric + self.categories + [self.label]
                writer.writerow(columns)
                writer.writerows([row[c] for c in columns] for row in getattr(self, part))
        columns = [f"{c}:float32" for c in self.numeric] + self.categories + [f"{self.label}:float32"]
        return f"""[data]
train = "train.csv"
test = "test.csv"
[data.csv]
header = true
columns = {json.dumps(columns)}
label = {{column = "{self.label}"}}
[features]
numeric = {json.dumps(self.numeric)}
vocabulary = {json.dumps(self.categories)}
{self.more}"""

    def linear(self):
        def matrix(rows, columns, dtype):
            return np.array([[row[c] for c in columns] for row in rows], dtype=dtype)

        numbers = StandardScaler().fit(matrix(self.train, self.numeric, float))
        ids = OneHotEncoder(handle_unknown="ignore").fit(matrix(self.train, self.categories, object))
        parts = [sparse.hstack([sparse.csr_matrix(numbers.transform(matrix(rows, self.numeric, float))), ids.transform(matrix(rows, self.categories, object))]).tocsr() for rows in (self.train, self.test)]
        labels = [np.array([float(row[self.label]) for row in rows]) for rows in (self.train, self.test)]
        return linear(self.objective, *parts, *labels)


class Libsvm:
    objective = "binary"

    def __init__(self, name, train, test, dimension, zero_based, label):
        self.name, self.files, self.dimension, self.zero_based, self.label = name, (train, test), dimension, zero_based, label

    def write(self, folder):
        for part, name in zip(("train", "test"), self.files):
            (folder / f"{part}.svm").write_text(text_of(f"libsvm/{name}"))
        return f"""[data]
train = "train.svm"
test = "test.svm"
[data.libsvm]
dimension = {self.dimension}
zero_based = {str(self.zero_based).lower()}
{self.label}
"""

    def linear(self):
        parts = [load_svmlight_file(gzip.open(DATA / "libsvm" / name), n_features=self.dimension, zero_based=self.zero_based) for name in self.files]
        return linear("binary", parts[0][0], parts[1][0], parts[0][1] > 0, parts[1][1] > 0)


class Messages:
    name, objective = "sms-spam", "binary"

    def __init__(self):
        lines = [line for line in text_of("sms-spam/SMSSpamCollection.gz").split("\n") if line]
        self.train = [line for i, line in enumerate(lines) if i % 5 != 4]
        self.test = lines[4::5]

    def write(self, folder):
        for part in ("train", "test"):
            (folder / f"{part}.txt").write_text("".join(line + "\n" for line in getattr(self, part)))
        return """[data]
train = "train.txt"
test = "test.txt"
format = "text"
[data.text]
label = {positive = "spam", negative = "ham"}
[features.text]
text = 65536
"""

    def linear(self):
        words = CountVectorizer(lowercase=True, token_pattern=r"[A-Za-z0-9]+")
        split = [[line.split("\t", 1) for line in part] for part in (self.train, self.test)]
        train, test = words.fit_transform([x for _, x in split[0]]), words.transform([x for _, x in split[1]])
        return linear("binary", train, test, *([y == "spam" for y, _ in part] for part in split))


def adult():
    names = ["age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"]
    rows = []
    for part in ("data", "test"):
        for line in text_of(f"adult/adult.{part}.gz").split("\n"):
            if not line or line.startswith("|"):
                continue
            row = dict(zip(names, (cell.strip() for cell in line.split(","))))
            rows.append({**row, "income": int(row["income"].rstrip(".") == ">50K"), "part": part})
    return Table("adult", "binary", rows, lambda r: r["part"] == "test", ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"],
                 ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country"], "income")


def rows_of(name):
    return csv.DictReader(io.StringIO(text_of(name)))


def minutes(clock):
    return int(clock) // 100 * 60 + int(clock) % 100


def flights(label):
    """Every flight, in the order of the calendar: late by more than 15 minutes, or how long it is in the air."""
    rows = []
    for row in rows_of("nycflights13/flights.csv.gz"):
        if row["arr_delay"] in ("", "NA"):
            continue
        row["late"] = int(float(row["arr_delay"]) > 15)
        row["departure"], row["arrival"] = minutes(row["sched_dep_time"]), minutes(row["sched_arr_time"])
        rows.append(row)
    is_test = lambda row: int(row["day"]) % 5 == 0
    if label == "late":
        return Table("flights-late", "binary", rows, is_test, ["departure", "arrival", "distance"], ["carrier", "origin", "dest", "month", "hour", "tailnum", "flight"], label)
    return Table("flights-air-time", "regression", rows, is_test, ["departure", "arrival", "distance"], ["carrier", "origin", "dest", "month"], label, '[model]\nobjective = "regression"\n')


def planes():
    """How many seats an aeroplane has."""
    rows = [{**row, "year": row["year"] if row["year"] != "NA" else "2000"} for row in rows_of("nycflights13/planes.csv.gz")]
    for i, row in enumerate(rows):
        row["part"] = i % 5
    return Table("planes", "regression", rows, lambda row: row["part"] == 4, ["year", "engines"], ["type", "manufacturer", "engine", "model"], "seats", '[model]\nobjective = "regression"\n')


DATA_SETS = {
    "adult": adult,
    "a9a": lambda: Libsvm("a9a", "a9a.gz", "a9a.t.gz", 123, False, 'label = {positive = "+1", negative = "-1"}'),
    "agaricus": lambda: Libsvm("agaricus", "agaricus.txt.train.gz", "agaricus.txt.test.gz", 127, True, ""),
    "sms-spam": Messages,
    "flights-late": lambda: flights("late"),
    "flights-air-time": lambda: flights("air_time"),
    "planes": planes,
}


def train(cairn, job, strategy, seed, flags):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [cairn, "train", str(job), "--dir", f"{folder}/run", "--report", str(report), "--seed", str(seed), "--strategy", strategy, *flags]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stdout}")
        return json.loads(report.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", choices=[*DATA_SETS, []], help="all by default")
    parser.add_argument("--kinds", default="wide,deep,wide_deep")
    parser.add_argument("--strategies", default="one_device,parameter_server")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cairn", default=str(ROOT / "build/release/bin/cairn"), help="the program to train with")
    parser.add_argument("--with", dest="more", help="a file whose text is added to each job")
    parser.add_argument("--flags", default="", help="for cairn train, in one argument")
    asked = parser.parse_args()
    asked.flags = asked.flags.split()
    worse = 0
    for name in asked.data or DATA_SETS:
        data = DATA_SETS[name]()
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made)
            text, base = data.write(folder), data.linear()
            metric = "auc" if data.objective == "binary" else "rmse"
            print(f"{name:18} {'linear model':30} {metric} {base:.4f}", flush=True)
            for kind in asked.kinds.split(","):
                model = text if "[model]" in text else text + "[model]\n"
                model = model.replace("[model]\n", f'[model]\nkind = "{kind}"\n')
                job = folder / "job.toml"
                job.write_text(model + (pathlib.Path(asked.more).read_text() if asked.more else ""))
                for strategy in asked.strategies.split(","):
                    reports = [train(asked.cairn, job, strategy, seed, asked.flags) for seed in range(1, asked.seeds + 1)]
                    value = statistics.median(report["metrics"][metric] for report in reports)
                    bad = value < base - 0.002 if metric == "auc" else value > base * 1.005
                    worse += bad
                    print(f"{name:18} {kind + ', ' + strategy:30} {metric} {value:.4f}  {value - base:+.4f}  {reports[0]['steps']} steps, {reports[0]['seconds']:.1f} s{'  WORSE' if bad else ''}", flush=True)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
