"""Tables made from a seed, as each library has them, and what Cairn is to read of them."""

import numpy as np

NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
KINDS = NUMBERS + ["bool", "text", "large_text", "view_text", "dictionary", "list", "large_list", "text_list"]
READ_AS = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}
DEFAULTS = {"bool": True, "text": "none", "large_text": "none", "view_text": "", "dictionary": "none"}


class Column:
    """Values, some of which are missing, and what stands for those."""

    def __init__(self, kind, values, null):
        self.kind, self.values, self.null = kind, values, null
        self.default = DEFAULTS.get(kind, [] if "list" in kind else 7)

    def expected(self):
        if "list" in self.kind:
            lists = [[] if gone else list(each) for each, gone in zip(self.values, self.null)]
            flat = [value for each in lists for value in each]
            splits = np.cumsum([0] + [len(each) for each in lists], dtype="int64")
            dtype = object if self.kind == "text_list" else "float32" if self.kind == "list" else "int64"
            return np.array(flat, dtype), splits
        values = np.array(self.values, self.values.dtype)
        values[self.null] = self.default
        return values.astype(READ_AS.get(self.kind, values.dtype)), None


def made(seed):
    """A table of 2 to 7 columns, by name."""
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 90))
    kinds = random.choice(KINDS, int(random.integers(2, 8)))
    return {f"c{i}": column(random, str(kind), rows) for i, kind in enumerate(kinds)}


def text(random):
    return "".join(random.choice(list("abcdäö€ "), int(random.integers(0, 20))))


def column(random, kind, rows):
    null = random.random(rows) < random.choice([0, 0, 0.2])
    if kind in NUMBERS:
        if kind.startswith("float"):
            return Column(kind, random.normal(size=rows).astype(kind), null)
        most = min(np.iinfo(kind).max, 2**63 - 1)
        return Column(kind, random.integers(np.iinfo(kind).min, most, rows, dtype=kind, endpoint=True), null)
    if kind == "bool":
        return Column(kind, random.random(rows) < 0.5, null)
    if kind == "dictionary":
        words = np.array([text(random) + str(i) for i in range(5)], object)
        return Column(kind, words[random.integers(0, 5, rows)], null)
    if "list" in kind:
        lengths = random.integers(0, 5, rows)
        if kind == "text_list":
            lists = [[text(random) for _ in range(n)] for n in lengths]
        else:
            lists = [random.normal(size=n).astype("float32") if kind == "list" else random.integers(0, 99, n) for n in lengths]
        return Column(kind, lists, null)
    return Column(kind, np.array([text(random) for _ in range(rows)], object), null)


def pieces(random, rows):
    """Where a table is cut into batches."""
    cuts = np.sort(random.integers(0, rows + 1, int(random.integers(0, 4))))
    return [0, *cuts.tolist(), rows]


def pyarrow_table(columns, seed):
    import pyarrow as pa

    types = {
        "text": pa.string(), "large_text": pa.large_string(), "view_text": pa.string_view(), "bool": pa.bool_(),
        "list": pa.list_(pa.float32()), "large_list": pa.large_list(pa.int64()), "text_list": pa.list_(pa.string()),
    }
    random = np.random.default_rng(seed)
    arrays = {}
    for name, column in columns.items():
        cut = pieces(random, len(column.null))
        values = [None if gone else value for value, gone in zip(column.values, column.null)]
        chunks = []
        for begin, end in zip(cut, cut[1:]):
            around = [values[-1], *values[begin:end], values[0]]  # so that chunks begin at an offset
            if column.kind == "dictionary":
                chunk = pa.array(around, pa.string()).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
            elif column.kind in types:
                chunk = pa.array(around, types[column.kind])
            else:
                filled = np.array([values[-1] or 0, *[v or 0 for v in values[begin:end]], values[0] or 0], column.kind)
                chunk = pa.array(filled, mask=np.array([v is None for v in around]))
            chunks.append(chunk.slice(1, end - begin))
        arrays[name] = pa.chunked_array(chunks)
    return pa.table(arrays)


def polars_frame(columns, seed):
    import polars as pl

    types = {
        "text": pl.String, "large_text": pl.String, "view_text": pl.String, "bool": pl.Boolean,
        "dictionary": pl.Categorical, "list": pl.List(pl.Float32), "large_list": pl.List(pl.Int64), "text_list": pl.List(pl.String),
    }
    series = []
    for name, column in columns.items():
        values = [None if gone else value for value, gone in zip(column.values, column.null)]
        if column.kind in types:
            if "list" in column.kind:
                values = [None if value is None else list(value) for value in values]
            series.append(pl.Series(name, values, types[column.kind]))
        else:
            mask = pl.Series(column.null)
            series.append(pl.Series(name, column.values).set(mask, None) if mask.any() else pl.Series(name, column.values))
    frame = pl.DataFrame(series)
    cut = pieces(np.random.default_rng(seed), len(frame))
    return pl.concat([frame[begin:end] for begin, end in zip(cut, cut[1:])], rechunk=False)


def pandas_frame(columns, seed):
    import pandas as pd

    random = np.random.default_rng(seed)
    series = {}
    for name, column in columns.items():
        values = np.array([None if gone else value for value, gone in zip(column.values, column.null)] + [None], object)[:-1]
        if column.kind == "dictionary":
            series[name] = pd.Series(values).astype("category")
        elif "list" in column.kind:
            series[name] = pd.Series(values, dtype=object)
        elif "text" in column.kind:
            series[name] = pd.Series(values, dtype=random.choice([object, "str", "string"]))
        elif column.null.any() and not column.kind.startswith("float"):
            series[name] = pd.Series(values).astype("boolean" if column.kind == "bool" else column.kind.replace("i", "I").replace("u", "U"))
        else:
            numbers = column.values.copy()
            if column.null.any():
                numbers[column.null] = np.nan
            series[name] = pd.Series(numbers)
    return pd.DataFrame(series)


def batches(columns, dataset):
    """What differs between a dataset in batches and what is expected; empty: nothing."""
    wrong = []
    parts = list(dataset.batch(7))
    for name, column in columns.items():
        values, splits = column.expected()
        found = [batch[name] for batch in parts]
        if splits is not None:
            lengths = np.concatenate([np.diff(each.row_splits) for each in found])
            if not np.array_equal(lengths, np.diff(splits)):
                wrong.append(f"{name} {column.kind}: lists of other lengths")
            found = [each.values for each in found]
        found = np.concatenate(found)
        if found.dtype != values.dtype and len(values):
            wrong.append(f"{name} {column.kind}: {found.dtype}, not {values.dtype}")
        elif found.tolist() != values.tolist() if values.dtype == object else found.tobytes() != values.tobytes():
            wrong.append(f"{name} {column.kind}: other values")
    return wrong
