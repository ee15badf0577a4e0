"""Tables of pandas, polars, pyarrow and duckdb: equal batches, whatever library has them."""

import os
import subprocess
import sys

import numpy as np
import pytest

import cairn
import tables

SEEDS = range(200)


def differences(build, seeds=SEEDS, without=()):
    wrong = []
    for seed in seeds:
        columns = {name: column for name, column in tables.made(seed).items() if column.kind not in without}
        if not columns:
            continue
        defaults = {name: column.default for name, column in columns.items() if column.null.any()}
        dataset = cairn.Dataset.from_table(build(columns, seed), defaults=defaults)
        wrong += [f"seed {seed}: {each}" for each in tables.batches(columns, dataset)]
    return wrong


def test_pyarrow_tables_are_read_bit_for_bit():
    assert differences(tables.pyarrow_table) == []


def test_polars_frames_are_read_bit_for_bit():
    import polars as pl

    without = () if hasattr(pl, "Float16") else ("float16",)
    assert differences(tables.polars_frame, without=without) == []


def test_duckdb_relations_are_read_bit_for_bit():
    import duckdb

    connection = duckdb.connect()

    def relation(columns, seed):
        return connection.from_arrow(tables.pyarrow_table(columns, seed))

    assert differences(relation, without=("float16",)) == []


def test_pandas_frames_are_read_bit_for_bit():
    assert differences(tables.pandas_frame) == []


def test_pandas_frames_are_read_bit_for_bit_without_pyarrow():
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import pandas, tables, test_tables\n"
        "wrong = test_tables.differences(tables.pandas_frame)\n"
        "print(wrong); sys.exit(len(wrong) > 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=os.path.dirname(__file__))
    assert done.returncode == 0, done.stdout + done.stderr


# ---- nulls, names, types ----


def test_a_null_without_a_default_names_column_and_row():
    import pandas as pd
    import polars as pl

    for frame in [pl.DataFrame({"a": [1, 2], "b": [1, None]}), pd.DataFrame({"a": [1, 2], "b": [1.0, None]})]:
        with pytest.raises(ValueError, match='column "b", row 1.*defaults='):
            cairn.Dataset.from_table(frame)
    with pytest.raises(ValueError, match='column "t", row 2'):
        cairn.Dataset.from_table(pl.DataFrame({"t": [["a"], [], ["b", None]]}))
    with pytest.raises(ValueError, match='column "t", row 1'):
        cairn.Dataset.from_table(pl.DataFrame({"t": [["a"], None]}))


def test_a_default_that_does_not_fit_its_column_is_an_error():
    import polars as pl

    frame = pl.DataFrame({"a": [1, None]})
    for default, word in [("x", "a text"), (0.5, "whole number"), (True, "a bool")]:
        with pytest.raises(ValueError, match=f'default of column "a".*{word}'):
            cairn.Dataset.from_table(frame, defaults={"a": default})
    with pytest.raises(TypeError, match="default of column"):
        cairn.Dataset.from_table(frame, defaults={"a": {}})
    with pytest.raises(ValueError, match='no column "b".*defaults'):
        cairn.Dataset.from_table(frame, defaults={"b": 1})


def test_a_nan_of_pandas_is_a_missing_value_and_one_of_polars_a_number():
    import pandas as pd
    import polars as pl

    nan = float("nan")
    filled = cairn.Dataset.from_table(pd.DataFrame({"a": [1.0, nan]}), defaults={"a": 9.0})
    assert [float(each["a"]) for each in filled] == [1.0, 9.0]
    kept = cairn.Dataset.from_table(pl.DataFrame({"a": [1.0, nan]}))
    assert np.isnan([each["a"] for each in kept]).tolist() == [False, True]


def test_columns_can_be_chosen_and_come_in_that_order():
    import polars as pl

    frame = pl.DataFrame({"a": [1], "b": [2], "when": ["x"]})
    chosen = cairn.Dataset.from_table(frame, label="a", columns=["b"])
    assert [column.name for column in chosen.element_spec] == ["b", "a"]
    with pytest.raises(ValueError, match='did you mean "when"'):
        cairn.Dataset.from_table(frame, columns=["wen"])
    with pytest.raises(ValueError, match="twice"):
        cairn.Dataset.from_table(frame, columns=["a", "a"])


def test_two_columns_of_one_name_are_an_error():
    import pandas as pd
    import pyarrow as pa

    double = [pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), pd.DataFrame([[1, 2]], columns=["a", "a"])]
    for table in double:
        with pytest.raises(ValueError, match='several columns of the name "a"'):
            cairn.Dataset.from_table(table)


def test_a_type_that_is_none_of_cairn_s_is_named_with_its_cure():
    import datetime
    import decimal

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    day = datetime.datetime(2024, 2, 29)
    wrong = [
        (pl.DataFrame({"a": [day]}), "timestamp.*int64"),
        (pl.DataFrame({"a": [day.date()]}), "date"),
        (pl.DataFrame({"a": [{"b": 1}]}), "struct.*columns of their own"),
        (pl.DataFrame({"a": [decimal.Decimal("1.5")]}), "decimal.*float64"),
        (pl.DataFrame({"a": [[[1]]]}), "list of lists"),
        (pa.table({"a": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))}), "map"),
        (pd.DataFrame({"a": [day]}), "datetime64.*int64"),
        (pd.DataFrame({"a": [1j]}), "complex.*real"),
        (pd.DataFrame({"a": pd.period_range("2024", periods=1)}), "period"),
        (pd.DataFrame({"a": [1, "b"]}), "mixed"),
    ]
    for table, words in wrong:
        with pytest.raises(ValueError, match=f'column "a" is of .*{words}'):
            cairn.Dataset.from_table(table)


def test_what_is_no_table_says_what_is_one():
    import polars as pl

    for thing, words in [(3, "pandas or polars"), (pl.DataFrame({"a": [1]}).lazy(), "collect"), ({"a": [1]}, "from_tensor_slices")]:
        with pytest.raises(TypeError, match=words):
            cairn.Dataset.from_table(thing)


def test_numbers_beyond_int64_are_an_error():
    import pandas as pd
    import polars as pl

    big = np.array([1, 2**63], "uint64")
    for frame in [pd.DataFrame({"a": big}), pl.DataFrame({"a": big})]:
        with pytest.raises(ValueError, match="9223372036854775808 is beyond int64"):
            cairn.Dataset.from_table(frame)


def test_lists_of_a_fixed_size_are_vectors():
    import pyarrow as pa

    values = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6, dtype="float32")), 2)
    batch = next(iter(cairn.Dataset.from_table(pa.table({"v": values.slice(1)})).batch(2)))
    assert batch["v"].tolist() == [[2, 3], [4, 5]]


def test_an_index_of_pandas_is_no_column():
    import pandas as pd

    frame = pd.DataFrame({"a": range(6)})
    part = frame[frame["a"] > 3]
    assert [int(each["a"]) for each in cairn.Dataset.from_table(part)] == [4, 5]


def test_a_frame_that_changes_later_leaves_the_dataset_as_it_was():
    import pandas as pd

    frame = pd.DataFrame({"a": np.zeros(3)})
    data = cairn.Dataset.from_table(frame)
    frame.loc[:, "a"] = 7.0
    assert [float(each["a"]) for each in data] == [0, 0, 0]


def test_numbers_in_one_piece_keep_the_memory_of_their_owner():
    import pyarrow as pa

    before = pa.total_allocated_bytes()
    buffer = pa.allocate_buffer(80_000)
    table = pa.table({"a": pa.Array.from_buffers(pa.float64(), 10_000, [None, buffer])})
    dataset = cairn.Dataset.from_table(table)
    batch = next(iter(dataset.batch(10_000)))["a"]
    address = batch.__array_interface__["data"][0]
    assert buffer.address <= address < buffer.address + buffer.size
    del table, buffer
    assert pa.total_allocated_bytes() - before >= 80_000
    del batch, dataset
    cairn.Dataset.range(1).cardinality()  # what was dropped is let go of by a later call
    assert pa.total_allocated_bytes() == before


def test_many_texts_are_read_in_one_process():
    """More than a description could hold the sizes of."""
    import pyarrow as pa

    rows = 9_000_000
    table = pa.table({"t": pa.DictionaryArray.from_arrays(np.zeros(rows, "int8"), ["a"]), "x": np.arange(rows, dtype="int32")})
    data = cairn.Dataset.from_table(table).skip(rows - 2).batch(2)
    assert next(iter(data))["x"].tolist() == [rows - 2, rows - 1]


# ---- tables of results ----


def test_results_become_tables_of_each_library():
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    columns = {
        "id": np.arange(3), "score": np.array([0.5, 0.25, 1], "float32"), "yes": np.array([True, False, True]),
        "name": np.array(["a", "", "üß"]), "vector": np.arange(6.0).reshape(3, 2), "half": np.ones(3, "float16"),
        "words": cairn.Ragged(np.array([7, 8, 9]), np.array([0, 2, 2, 3])),
    }
    result = cairn.Table(columns)
    table = pa.table(result)
    table.validate(full=True)
    assert table.to_pydict() == {
        "id": [0, 1, 2], "score": [0.5, 0.25, 1], "yes": [True, False, True], "name": ["a", "", "üß"],
        "vector": [[0, 1], [2, 3], [4, 5]], "half": [1, 1, 1], "words": [[7, 8], [], [9]],
    }
    assert pl.DataFrame(result)["words"].to_list() == [[7, 8], [], [9]]
    assert pd.DataFrame.from_arrow(result)["score"].tolist() == [0.5, 0.25, 1]
    named = cairn.Table({"id": columns["id"], "name": columns["name"]})
    assert duckdb.sql("select sum(id), max(name) from named").fetchall() == [(3, "üß")]
    again = cairn.Dataset.from_table(result).batch(3)
    batch = next(iter(again))
    assert batch["vector"].tolist() == columns["vector"].tolist()
    assert batch["words"].to_list() == [[7, 8], [], [9]]


def test_columns_of_results_have_as_many_rows():
    with pytest.raises(ValueError, match='"b" has 2 rows, and "a" has 3'):
        cairn.Table({"a": np.zeros(3), "b": np.zeros(2)})
    with pytest.raises(ValueError, match="single value"):
        cairn.Table({"a": np.float32(1)})
    with pytest.raises(ValueError, match='did you mean "score"'):
        cairn.Table({"score": np.zeros(1)})["scor"]


def test_a_table_outlives_the_arrays_it_was_made_of():
    import pyarrow as pa

    table = pa.table(cairn.Table({"a": np.arange(100_000)}))
    assert table["a"].to_numpy().sum() == 4999950000
