"""Tables as estimators read them: missing values stay, and categories are told apart."""

import numpy as np
import pytest

import cairn
import tables


def expected(column):
    """The values, with NaN, "" and [] for what is missing."""
    column.default = [] if "list" in column.kind else "" if "text" in column.kind or column.kind == "dictionary" else 0
    values, splits = column.expected()
    if splits is not None or values.dtype == object or not column.null.any():
        return values, splits
    values = values.astype(values.dtype if values.dtype.kind == "f" else "float64")
    values[column.null] = np.nan
    return values, None


def differences(build, without=()):
    wrong = []
    for seed in range(60):
        columns = {name: column for name, column in tables.made(seed).items() if column.kind not in without}
        if not columns:
            continue
        table, names, categories = cairn._cairn._read_table(build(columns, seed), "", [])
        kinds = {name for name, column in columns.items() if column.kind == "dictionary"}
        if not set(categories) <= kinds or table.columns != list(columns) or names != list(columns):
            wrong.append(f"seed {seed}: categories {categories}, columns {table.columns}")
        for name, column in columns.items():
            values, splits = expected(column)
            found = table[name]
            if splits is not None:
                same = np.array_equal(found.row_splits, splits) and found.values.tolist() == values.tolist()
            else:
                same = found.dtype.kind == values.dtype.kind and np.array_equal(found, values, equal_nan=values.dtype.kind == "f")
            if not same:
                wrong.append(f"seed {seed}: {name} {column.kind}: {found!r}, not {values!r}")
    return wrong


@pytest.mark.parametrize("library", ["pyarrow", "polars", "pandas"])
def test_missing_values_are_read_as_such(library):
    pytest.importorskip(library)
    build = getattr(tables, "pyarrow_table" if library == "pyarrow" else f"{library}_frame")
    assert differences(build) == []


def test_columns_of_categories_are_named():
    polars, pyarrow, pandas = pytest.importorskip("polars"), pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    words = ["a", "b", "a"]
    for table in [
        polars.DataFrame({"c": polars.Series(words, dtype=polars.Categorical), "t": words}),
        pyarrow.table({"c": pyarrow.array(words).dictionary_encode(), "t": words}),
        pandas.DataFrame({"c": pandas.Series(words).astype("category"), "t": words}),
        pandas.DataFrame({"c": pandas.Series([1, 2, 1]).astype("category"), "t": words}),
    ]:
        read, names, categories = cairn._cairn._read_table(table, "", [])
        assert categories == ["c"] and read.columns == ["c", "t"]
        read, names, categories = cairn._cairn._read_table(table, "", ["c"])
        assert categories == [] and read.columns == ["t"] and names == ["c", "t"]


def test_a_table_tells_its_types_and_is_read_as_it_is():
    columns = {
        "x": np.arange(4.0), "id": np.arange(4), "name": np.array(list("abcd"), object), "both": np.ones((4, 2), "float32"),
        "tags": cairn.Ragged(np.arange(3), np.array([0, 1, 1, 3, 3])),
    }
    table = cairn.Table(columns)
    assert table.dtypes == {"x": "float64", "id": "int64", "name": "string", "both": "float32[2]", "tags": "list of int64"}
    data = cairn.Dataset.from_table(table, columns=["tags", "x"])
    assert [each["tags"].values.tolist() for each in data] == [[0], [], [1, 2], []]
    assert cairn.Dataset.from_table(table, label="id").element_spec.label == "id"
    with pytest.raises(ValueError, match='no column "nam", which columns names; did you mean "name"'):
        cairn.Dataset.from_table(table, columns=["nam"])
