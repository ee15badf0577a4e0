"""Datasets, columns of files and tables that are given what they cannot take."""

import tempfile

import numpy as np
import pandas as pd
import pytest

import cairn
from bad import Case, parametrized

INVALID, STATE = cairn.InvalidArgumentError, cairn.FailedPreconditionError
D = cairn.Dataset
X = np.ones((4, 2), "float32")


def slices(**columns):
    return D.from_tensor_slices(columns or {"x": X, "t": np.array(list("abcd"))})


def given(*elements, spec={"x": "float32"}):
    return list(D.from_generator(lambda: iter(elements), spec))


def csv_rows(text, *columns):
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/people.csv"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return list(D.csv(path, list(columns), header=True))


SLICES = [
    Case("rows", lambda: slices(a=X, b=X[:3]), INVALID, '"b"', "3", "4"),
    Case("a single number", lambda: slices(a=1.0), INVALID, '"a"', "rank 1"),
    Case("nothing", lambda: D.from_tensor_slices({}), INVALID, "column"),
    Case("names that are ints", lambda: D.from_tensor_slices({1: X}), TypeError, "named by texts", "not by 1"),
    Case("dates", lambda: slices(a=np.zeros(3, "datetime64[s]")), TypeError, '"a"', "datetime64", "int64"),
    Case("complex", lambda: slices(a=np.zeros(3, "complex128")), TypeError, '"a"', "complex128"),
    Case("objects", lambda: slices(a=np.array([1, None], object)), TypeError, '"a"', "element 0"),
    Case("None as values", lambda: slices(a=None), TypeError, '"a"', "None is no array"),
    Case("a generator", lambda: D.from_tensor_slices(i for i in [1]), TypeError, "a generator is no array", "from_generator"),
    Case("a tuple of four", lambda: D.from_tensor_slices((X, X, X, X)), TypeError, "(x, y)", "a dict"),
    Case("a label that is none", lambda: D.from_tensor_slices({"x": X}, label="y"), INVALID, '"y"'),
    Case("a label that is a number", lambda: D.from_tensor_slices({"x": X}, label=3), TypeError, '"label" is 3', "a str"),
    Case("a name twice", lambda: D.from_tensor_slices(({"y": X}, X)), INVALID, '"y"', "label="),
    Case("splits that descend", lambda: slices(a=cairn.Ragged(np.arange(3), np.array([0, 2, 1, 3]))), INVALID, '"a"', "row_splits ascend"),
    Case("splits that are floats", lambda: slices(a=cairn.Ragged(np.arange(3), np.array([0.0, 3.0]))), INVALID, '"a"', "int64", "float64"),
    Case("ragged rows", lambda: slices(a=cairn.Ragged(np.arange(3), np.array([0, 3])), b=X), INVALID, '"b" has 4 rows', '"a" has 1'),
    Case("ragged lists", lambda: slices(a=[[1], [1, 2]]), TypeError, '"a"', "row_splits"),
]

FUNCTIONS = [
    Case("a generator that is called", lambda: D.from_generator(iter([1]), {"x": "float32"}), TypeError, "from_generator()", "a function"),
    Case("no spec", lambda: D.from_generator(lambda: [1]), TypeError, "Dataset.from_generator()", '"element" is missing'),
    Case("a spec that is a text", lambda: D.from_generator(lambda: [1], "float32"), TypeError, "element", "dict"),
    Case("a spec of ints", lambda: D.from_generator(lambda: [1], [3]), TypeError, "Dataset.from_generator()", "has 3 at position 0", "a ColumnSpec"),
    Case("a dtype that is none", lambda: D.from_generator(lambda: [1], {"x": "float31"}), INVALID, "float31"),
    Case("a function that returns a number", lambda: list(D.from_generator(lambda: 3, {"x": "float32"})), TypeError, "from_generator()", "returned 3"),
    Case("an element without the column", lambda: given({"y": 1.0}), INVALID, "from_generator()", '"x"'),
    Case("an element of two", lambda: given((1.0, 2.0), spec={"x": "float32", "y": "float32", "z": "int64"}), INVALID, "a tuple of 3"),
    Case("an element of texts", lambda: given({"x": "a"}), INVALID, '"x"', "string", "float32"),
    Case("an element of another shape", lambda: given({"x": [1.0]}), INVALID, '"x"', "[1]"),
    Case("an element that is none", lambda: given(None), TypeError, "None"),
    Case("a fraction for an int", lambda: given({"x": 1.5}, spec={"x": "int64"}), INVALID, '"x"', "float32", "int64"),
    Case("an error of its own", lambda: list(D.from_generator(lambda: (1 / 0 for _ in [1]), {"x": "float32"})), ZeroDivisionError, "division"),
    Case("map of a number", lambda: slices().map(3), TypeError, "map() takes a function", "3"),
    Case("map to a text", lambda: slices().map(lambda x: "a"), TypeError, "map", "str"),
    Case("map to an array", lambda: slices().map(lambda x: x["x"]), INVALID, "map", "name"),
    Case("map to nothing", lambda: slices().map(lambda x: None), INVALID, "map", "nothing"),
    Case("map of three arguments", lambda: slices().map(lambda a, b, c: a), TypeError, "missing"),
    Case("map that misspells", lambda: slices().map(lambda f: {"y": f["xx"]}), INVALID, '"xx"', '"x"'),
    Case("map that branches", lambda: slices().map(lambda f: {"y": f["x"] if f["x"][0] > 1 else 0}), TypeError, "truth value", "cairn.where"),
    Case("map in a generator", lambda: slices().map(lambda f: (yield f)), TypeError, "generator"),
    Case("filter by numbers", lambda: slices().filter(lambda f: f["x"]), INVALID, "filter", "bool"),
    Case("filter by a text", lambda: slices().filter(lambda f: "yes"), (TypeError, INVALID), "str"),
    Case("filter by True", lambda: list(slices().filter(lambda f: None)), TypeError, "None"),
    Case("calls in parallel", lambda: slices().map(lambda f: {"y": f["x"]}, num_parallel_calls=-5), INVALID, "num_parallel_calls", "-5"),
]

CHAINS = [
    Case("a batch of 0", lambda: slices().batch(0), INVALID, "batch", "0"),
    Case("a batch of a text", lambda: slices().batch("2"), TypeError, "Dataset.batch()", "\"batch_size\" is '2'", "an int"),
    Case("a batch of a float", lambda: slices().batch(2.0), TypeError, "Dataset.batch()", '"batch_size" is 2.0', "an int"),
    Case("a batch of batches", lambda: slices().batch(2).shuffle(0), INVALID, "shuffle", "0"),
    Case("a seed", lambda: slices().shuffle(3, seed=-1), INVALID, '"seed" is -1', "at least 0"),
    Case("take", lambda: slices().take(-2), INVALID, "take", "-2"),
    Case("skip", lambda: slices().skip(-1), INVALID, "skip", "-1"),
    Case("repeat", lambda: slices().repeat("on"), TypeError, "Dataset.repeat()", "\"count\" is 'on'", "an int or None"),
    Case("shard", lambda: slices().shard(2, 2), INVALID, "shard", "2"),
    Case("shard by a text", lambda: slices().shard("a"), TypeError, "Dataset.shard()"),
    Case("prefetch", lambda: slices().prefetch(-7), INVALID, "prefetch", "-7"),
    Case("concatenate", lambda: slices().concatenate(D.range(3)), INVALID, "concatenate", "value"),
    Case("concatenate of an array", lambda: slices().concatenate(X), TypeError, "Dataset.concatenate()", '"other" is a NumPy array of float32[4, 2]', "a Dataset"),
    Case("zip", lambda: D.zip(slices(), X), TypeError, "Dataset.zip() takes 1 argument", "2"),
    Case("interleave of memory", lambda: slices().interleave(2), INVALID, "interleave", "file"),
    Case("features behind a batch", lambda: slices().batch(2).features([cairn.FeatureColumn.as_is("x")]), INVALID, "batch"),
    Case("features of a text", lambda: slices().features("x"), TypeError, "Dataset.features()", "'x'", "a FeatureColumn or a list"),
    Case("a feature of no column", lambda: slices().features(cairn.FeatureColumn.as_is("xx")), INVALID, '"xx"'),
    Case("boundaries", lambda: slices().features(cairn.FeatureColumn.bucketised("x", [2.0, 1.0])), INVALID, "boundaries"),
    Case("a bucket of texts", lambda: cairn.FeatureColumn.bucketised("x", ["a"]), TypeError, "FeatureColumn.bucketised()", "'a' at position 0", "a number"),
    Case("a vocabulary of ints", lambda: cairn.FeatureColumn.vocabulary("t", [1]), TypeError, "FeatureColumn.vocabulary()", "1 at position 0", "a str"),
    Case("a word twice", lambda: slices().features(cairn.FeatureColumn.vocabulary("t", ["a", "a"])), INVALID, '"a"'),
    Case("a word that is not known", lambda: next(iter(slices().features(cairn.FeatureColumn.vocabulary("t", ["a"], oov="error")))), INVALID, "oov", '"first", "last"'),
    Case("a number beyond its ids", lambda: csv_rows("x\n7\n", cairn.CsvColumn("x", "int64", ids=5)), INVALID, "people.csv", "7", "5"),
    Case("a cell that is no number", lambda: csv_rows("x\nseven\n", cairn.CsvColumn("x", "int64")), INVALID, "people.csv", '"x"', "seven"),
    Case("a cell that is empty", lambda: csv_rows("x,y\n,1\n", cairn.CsvColumn("x", "int64")), INVALID, "people.csv", '"x"', "default_value"),
    Case("a column that is not in the file", lambda: csv_rows("y\n1\n", cairn.CsvColumn("x", "int64")), INVALID, "people.csv", '"x"'),
    Case("hash buckets", lambda: slices().features(cairn.FeatureColumn.hashed("t", 0)), INVALID, "0"),
    Case("a part of a date", lambda: cairn.FeatureColumn.date_part("at", "century"), INVALID, '"month"', '"century"'),
    Case("hash_split", lambda: slices().hash_split("t", 0.5, 0.2), INVALID, "hash_split", "0.5"),
    Case("hash_split of no column", lambda: slices().hash_split("tt", 0.0, 0.5), INVALID, '"tt"'),
    Case("a state", lambda: slices().open(b"abc"), INVALID, "state"),
    Case("a state of text", lambda: slices().open("abc"), TypeError, "Dataset.open()", "'abc'", "bytes"),
    Case("skip_to", lambda: iter(slices()).skip_to(-1), INVALID, "-1"),
    Case("fit_vocabulary of no column", lambda: cairn.fit_vocabulary(slices(), "tt"), INVALID, '"tt"'),
    Case("fit_numeric of texts", lambda: cairn.fit_numeric(slices(), "t"), INVALID, '"t"', "string"),
    Case("fit_numeric of an array", lambda: cairn.fit_numeric(X, "t"), TypeError, "fit_numeric()", '"dataset"', "a Dataset"),
    Case("spill", lambda: slices().spill("/proc/none/here"), cairn.Error, "/proc/none"),
    Case("spill to no folder", lambda: slices().spill([]), TypeError, "one path", "not 0"),
    Case("spill to a number", lambda: slices().spill(3), TypeError, "path"),
]

FILES = [
    Case("no file", lambda: list(D.csv("/none.csv", {"x": "float32"})), cairn.NotFoundError, "/none.csv"),
    Case("a path that is a number", lambda: D.csv(3, {"x": "float32"}), TypeError, "path"),
    Case("no paths", lambda: list(D.csv([], {"x": "float32"})), INVALID, "file"),
    Case("columns that are a text", lambda: D.csv("a.csv", "x"), TypeError, "Dataset.csv()", "'x'", "a list of CsvColumns"),
    Case("columns of ints", lambda: D.csv("a.csv", [3]), TypeError, "Dataset.csv()", "has 3 at position 0", "a CsvColumn"),
    Case("a dtype", lambda: D.csv("a.csv", {"x": "float31"}), INVALID, "float31"),
    Case("a dtype that is no type", lambda: D.csv("a.csv", {"x": 3}), TypeError, "a dtype is a name", "3"),
    Case("names that are ints", lambda: D.csv("a.csv", {1: "float32"}), TypeError, "1"),
    Case("a label that is none", lambda: D.csv("a.csv", {"x": "float32"}, label="y"), INVALID, '"y"'),
    Case("a label that is a number", lambda: D.csv("a.csv", {"x": "float32"}, label=3), TypeError, "label", "3"),
    Case("on_error", lambda: D.csv("a.csv", {"x": "float32"}, on_error="ignore"), INVALID, '"error", "skip"', '"ignore"'),
    Case("a column twice", lambda: D.csv("a.csv", [cairn.CsvColumn("x"), cairn.CsvColumn("x")]), INVALID, '"x"'),
    Case("a separator", lambda: cairn.CsvColumn("x", separator="||"), INVALID, "separator is one character", '"||"'),
    Case("a delimiter", lambda: cairn.CsvSchema({"x": "float32"}, delimiter=",,"), INVALID, "delimiter", '",,"'),
    Case("ids that are a text", lambda: cairn.CsvColumn("x", "int64", ids="many"), TypeError, "ids", "'many'"),
    Case("a condition", lambda: D.csv("a.csv", cairn.CsvSchema({"x": "float32"}, where=["x >> 3"])), INVALID, "x >> 3"),
    Case("a record of no fields", lambda: D.records("a.bin", []), INVALID, "no columns"),
    Case("a field of no count", lambda: D.records("a.bin", [cairn.RecordField("x", count=0)]), INVALID, '"x"', "0"),
    Case("fields by name", lambda: D.records("a.bin", {"x": "float32"}), TypeError, "Dataset.records()", '"fields"', "RecordField"),
    Case("a record of text", lambda: cairn.TfRecordWriter("/tmp/cairn-none.tfrecord").write("text"), TypeError, "TfRecordWriter.write()", "'text'", "bytes"),
    Case("a folder that is not there", lambda: cairn.TfRecordWriter("/none/a.tfrecord"), cairn.NotFoundError, "/none"),
    Case("a dataset without a source", lambda: cairn.Dataset(), TypeError, "Dataset"),
    Case("a spec of no column", lambda: cairn.ElementSpec({"x": "float32"})["y"], INVALID, '"y"'),
    Case("a negative size", lambda: cairn.ColumnSpec("x", "float32", (-3,)), INVALID, "-3"),
]


def frame(**columns):
    return pd.DataFrame(columns)


TABLES = [
    Case("no table", lambda: D.from_table({"x": X}), TypeError, "dict", "from_tensor_slices"),
    Case("a number", lambda: D.from_table(3), TypeError, "int", "DataFrame"),
    Case("names twice", lambda: D.from_table(pd.DataFrame(np.ones((2, 2)), columns=["a", "a"])), INVALID, '"a"', "rename"),
    Case("dates", lambda: D.from_table(frame(a=pd.to_datetime(["2020-01-01"]))), INVALID, '"a"', "datetime64", "astype"),
    Case("time zones", lambda: D.from_table(frame(a=pd.to_datetime(["2020-01-01"]).tz_localize("UTC"))), INVALID, '"a"', "datetime64", "astype"),
    Case("time spans", lambda: D.from_table(frame(a=pd.to_timedelta([1], "s"))), INVALID, '"a"', "timedelta64", "astype"),
    Case("complex", lambda: D.from_table(frame(a=[1j])), INVALID, '"a"', "complex128", ".real"),
    Case("dicts", lambda: D.from_table(frame(a=[{"b": 1}])), INVALID, '"a"', "columns="),
    Case("mixed objects", lambda: D.from_table(frame(a=["x", 1])), INVALID, '"a"', "object"),
    Case("a NaN", lambda: D.from_table(frame(a=[1.0, None])), INVALID, '"a", row 1', 'defaults={"a"'),
    Case("a missing text", lambda: D.from_table(frame(a=["x", None])), INVALID, '"a", row 1', "missing"),
    Case("a missing category", lambda: D.from_table(frame(a=pd.Categorical.from_codes([0, -1], ["x"]))), INVALID, '"a", row 1', "missing"),
    Case("a category of dates", lambda: D.from_table(frame(a=pd.Categorical(pd.to_datetime(["2020-01-01"])))), INVALID, '"a"', "datetime64"),
    Case("intervals", lambda: D.from_table(frame(a=pd.interval_range(0, 2))), INVALID, '"a"', "interval"),
    Case("periods", lambda: D.from_table(frame(a=pd.period_range("2020-01", periods=2, freq="M"))), INVALID, '"a"', "period"),
    Case("a default of text", lambda: D.from_table(frame(a=[1.0, None]), defaults={"a": "x"}), INVALID, '"a"', "a text", "float64"),
    Case("a default of no column", lambda: D.from_table(frame(a=[1.0]), defaults={"b": 1.0}), INVALID, '"b"', "defaults"),
    Case("defaults that are a number", lambda: D.from_table(frame(a=[1.0]), defaults=0), TypeError, "defaults is a dict", "not 0"),
    Case("defaults by ints", lambda: D.from_table(frame(a=[1.0]), defaults={0: 1.0}), TypeError, "defaults", "0"),
    Case("a default that is an object", lambda: D.from_table(frame(a=[1.0]), defaults={"a": object()}), TypeError, '"a"', "object"),
    Case("columns that are none", lambda: D.from_table(frame(a=[1.0]), columns=["b"]), INVALID, '"b"', "columns"),
    Case("columns that are a text", lambda: D.from_table(frame(a=[1.0]), columns="a"), TypeError, "Dataset.from_table()", "\"columns\" is 'a'", "a list of strs"),
    Case("a column twice", lambda: D.from_table(frame(a=[1.0]), columns=["a", "a"]), INVALID, '"a" twice'),
    Case("a label that is none", lambda: D.from_table(frame(age=[1.0]), label="aeg"), INVALID, '"aeg"', '"age"'),
    Case("no rows", lambda: next(iter(D.from_table(frame(a=np.zeros(0))))), StopIteration),
    Case("uint64", lambda: D.from_table(frame(a=np.array([2**63], "uint64"))), INVALID, '"a"', "9223372036854775808", "int64"),
    Case("Table of a list", lambda: cairn.Table([1, 2]), TypeError, "a dict of arrays by name", "list"),
    Case("Table of other rows", lambda: cairn.Table({"a": X, "b": X[:3]}), INVALID, '"b" has 3 rows'),
    Case("a column of no table", lambda: cairn.Table({"a": X})["b"], (INVALID, KeyError), '"b"'),
]


@parametrized(SLICES)
def test_slices_say_what_they_are_made_of(case):
    case.check()


@parametrized(FUNCTIONS)
def test_functions_of_elements_say_what_they_return(case):
    case.check()


@parametrized(CHAINS)
def test_a_step_of_a_pipeline_says_what_it_takes(case):
    case.check()


@parametrized(FILES)
def test_a_file_says_what_it_has(case):
    case.check()


@parametrized(TABLES)
def test_a_table_says_which_column_is_wrong(case):
    case.check()
