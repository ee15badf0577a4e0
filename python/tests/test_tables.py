"""Tables of pandas, polars, pyarrow and duckdb: equal batches, whatever library has them."""

import ctypes
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


# ---- damage ----


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
RELEASE_STREAM = ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))
GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))
GET_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))
GET_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Stream))
Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.POINTER(Schema)),
    ("release", RELEASE_SCHEMA), ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)), ("release", RELEASE_ARRAY), ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", GET_SCHEMA), ("get_next", GET_NEXT), ("get_last_error", GET_ERROR), ("release", RELEASE_STREAM),
    ("private_data", ctypes.c_void_p),
]


class Producer:
    """A table of one column whose structures a test can spoil. It counts what was released."""

    alive = []  # for as long as somebody may release what one of them gave

    def __init__(self, format=b"l", buffers=None, length=4, spoil=lambda producer: None, children=0, dictionary=None):
        Producer.alive.append(self)
        self.released = []
        self.kept = []
        self.batches = 1
        self.code = 0
        self.error = self.keep(ctypes.create_string_buffer(b"the disk is full"))
        self.column_schema, self.column = Schema(format=format, name=b"a"), Array(length=length, null_count=-1)
        self.table_schema, self.table = Schema(format=b"+s", name=b""), Array(length=length)
        if dictionary is not None:
            self.column_schema.dictionary = ctypes.pointer(dictionary[0])
            self.column.dictionary = ctypes.pointer(dictionary[1])
        self.column_schema.release, self.table_schema.release = self.keep(RELEASE_SCHEMA(self.release)), self.keep(RELEASE_SCHEMA(self.release))
        self.column.release, self.table.release = self.keep(RELEASE_ARRAY(self.release)), self.keep(RELEASE_ARRAY(self.release))
        self.set_buffers(self.column, [None, np.arange(1, 100, dtype="int64").tobytes()] if buffers is None else buffers)
        self.set_buffers(self.table, [None])
        self.set_children(self.table_schema, [self.column_schema])
        self.set_children(self.table, [self.column])
        self.stream = Stream()
        self.stream.get_schema = self.keep(GET_SCHEMA(self.get_schema))
        self.stream.get_next = self.keep(GET_NEXT(self.get_next))
        self.stream.get_last_error = self.keep(GET_ERROR(lambda stream: ctypes.addressof(self.error)))
        self.stream.release = self.keep(RELEASE_STREAM(self.release))
        spoil(self)

    def keep(self, held):
        self.kept.append(held)
        return held

    def set_buffers(self, array, buffers):
        pointers = (ctypes.c_void_p * max(1, len(buffers)))()
        for i, each in enumerate(buffers):
            if each is not None:
                held = self.keep(ctypes.create_string_buffer(each, len(each) + 64))
                pointers[i] = ctypes.cast(held, ctypes.c_void_p)
        array.n_buffers, array.buffers = len(buffers), ctypes.cast(self.keep(pointers), ctypes.POINTER(ctypes.c_void_p))

    def set_children(self, parent, children):
        kind = type(parent)
        pointers = (ctypes.POINTER(kind) * len(children))(*[ctypes.pointer(each) for each in children])
        parent.n_children, parent.children = len(children), ctypes.cast(self.keep(pointers), ctypes.POINTER(ctypes.POINTER(kind)))

    def release(self, pointer):
        kind = type(pointer.contents)
        self.released.append(kind.__name__)
        ctypes.memset(ctypes.addressof(pointer.contents) + kind.release.offset, 0, 8)

    def get_schema(self, stream, out):
        ctypes.memmove(out, ctypes.byref(self.table_schema), ctypes.sizeof(Schema))
        return self.code

    def get_next(self, stream, out):
        if self.batches == 0:
            ctypes.memset(out, 0, ctypes.sizeof(Array))
            return 0
        self.batches -= 1
        ctypes.memmove(out, ctypes.byref(self.table), ctypes.sizeof(Array))
        return 0

    def __arrow_c_stream__(self, requested_schema=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.stream), b"arrow_array_stream", None)


def numbers(*values, dtype="int32"):
    return np.array(values, dtype).tobytes()


def test_a_stream_made_by_hand_is_read_and_everything_released_once():
    producer = Producer()
    dataset = cairn.Dataset.from_table(producer)
    assert [int(each["a"]) for each in dataset] == [1, 2, 3, 4]
    del dataset
    cairn.Dataset.range(1).cardinality()
    assert sorted(producer.released) == ["Array", "Schema", "Stream"]


def spoiled(**fields):
    """Sets fields of the structures: table_schema__format=b"+s"."""

    def spoil(producer):
        for name, value in fields.items():
            structure, field = name.split("__")
            setattr(getattr(producer, structure), field, value)

    return spoil


def of_strings(*offsets, data=b"abcdefgh"):
    return {"format": b"u", "buffers": [None, numbers(*offsets), data], "length": len(offsets) - 1}


def null_view(index, offset, length):
    return {"format": b"vu", "buffers": [None, numbers(length, 0, index, offset), b"x" * 40, numbers(40, dtype="int64")], "length": 1}


def dictionary(codes, words=3):
    schema, array = Schema(format=b"u"), Array(length=words, n_buffers=3)
    buffers = [None, numbers(*range(words + 1)), b"abcdef"]
    held = [ctypes.create_string_buffer(each, len(each)) if each else None for each in buffers]
    pointers = (ctypes.c_void_p * 3)(*[ctypes.cast(each, ctypes.c_void_p) if each is not None else None for each in held])
    array.buffers = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_void_p))
    array.kept = (held, pointers)
    return {"format": b"i", "buffers": [None, numbers(*codes)], "length": len(codes), "dictionary": (schema, array)}


DAMAGED = {
    "no format": {"spoil": spoiled(column_schema__format=None)},
    "another type at the top": {"spoil": spoiled(table_schema__format=b"l")},
    "an unknown type": {"spoil": spoiled(column_schema__format=b"?")},
    "an empty type": {"spoil": spoiled(column_schema__format=b"")},
    "no children": {"spoil": lambda p: setattr(p.table_schema, "children", ctypes.POINTER(ctypes.POINTER(Schema))())},
    "children below 0": {"spoil": spoiled(table_schema__n_children=-1)},
    "fewer children in the batch": {"spoil": spoiled(table__n_children=0)},
    "no arrays of children": {"spoil": lambda p: setattr(p.table, "children", ctypes.POINTER(ctypes.POINTER(Array))())},
    "a negative length": {"spoil": spoiled(column__length=-4)},
    "a negative offset": {"spoil": spoiled(column__offset=-1)},
    "a length beyond memory": {"spoil": spoiled(table__length=2**62)},
    "a column shorter than the table": {"spoil": spoiled(column__length=2)},
    "no buffers": {"spoil": spoiled(column__n_buffers=0)},
    "a null pointer for buffers": {"spoil": lambda p: setattr(p.column, "buffers", ctypes.POINTER(ctypes.c_void_p)())},
    "a missing buffer of values": {"buffers": [None, None]},
    "texts that go back": of_strings(0, 4, 2),
    "texts before the beginning": of_strings(-3, 1, 2),
    "texts without bytes": {"format": b"u", "buffers": [None, numbers(0, 3), None], "length": 1},
    "texts without the third buffer": {"format": b"u", "buffers": [None, numbers(0, 3)], "length": 1},
    "a view of a buffer that is not there": null_view(7, 0, 20),
    "a view behind its buffer": null_view(0, 30, 20),
    "a view with a negative place": null_view(0, -4, 20),
    "a view with a negative length": null_view(0, 0, -1),
    "a code beyond the dictionary": dictionary([0, 3]),
    "a negative code": dictionary([0, -1]),
    "lists without their child": {"format": b"+l", "buffers": [None, numbers(0, 1)], "length": 1},
    "lists of a negative size": {"format": b"+w:-3", "buffers": [None], "length": 1},
    "the schema fails": {"spoil": lambda p: setattr(p, "code", 5)},
    "the stream was released": {"spoil": lambda p: setattr(p.stream, "release", RELEASE_STREAM())},
    "no get_next": {"spoil": lambda p: setattr(p.stream, "get_next", GET_NEXT())},
    "the schema was released": {"spoil": lambda p: setattr(p.table_schema, "release", RELEASE_SCHEMA())},
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_stream_is_an_error(what):
    producer = Producer(**DAMAGED[what])
    with pytest.raises(ValueError) as caught:
        cairn.Dataset.from_table(producer)
    assert len(set(producer.released)) == len(producer.released)  # nothing twice
    assert "Cairn" in str(caught.value) or "damaged" in str(caught.value) or "table" in str(caught.value), caught.value


def test_an_error_of_the_producer_is_told():
    with pytest.raises(ValueError, match="the disk is full"):
        cairn.Dataset.from_table(Producer(spoil=lambda p: setattr(p, "code", 28)))


def test_a_stream_can_be_read_once():
    import pyarrow as pa

    class Once:
        def __init__(self, table):
            self.capsule = table.__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule

    once = Once(pa.table({"a": [1]}))
    assert cairn.Dataset.from_table(once).cardinality() == 1
    with pytest.raises(ValueError, match="read or released before"):
        cairn.Dataset.from_table(once)
    assert pa.table(Once(cairn.Table({"a": np.arange(2)})))["a"].to_pylist() == [0, 1]


def test_a_capsule_of_another_kind_is_refused():
    class Wrong:
        def __arrow_c_stream__(self, requested_schema=None):
            return 3

    with pytest.raises(TypeError, match="arrow_array_stream"):
        cairn.Dataset.from_table(Wrong())


def test_structures_with_random_fields_do_not_crash():
    """Fields that tell no size of a buffer: those cannot be checked."""
    random = np.random.default_rng(7)
    formats = [b"l", b"i", b"b", b"u", b"vu", b"n", b"+l", b"+s", b"+w:2", b"d:1", b"", b"C", b"tdD"]

    def spoil(producer):
        for structure in [producer.column_schema, producer.table_schema]:
            if random.random() < 0.3:
                structure.format = formats[random.integers(len(formats))]
            if random.random() < 0.2:
                structure.n_children = int(random.integers(-2, 2)) if structure is producer.table_schema else int(random.integers(-2, 1))
        for array in [producer.column, producer.table]:
            if random.random() < 0.3:
                array.length = int(random.integers(-2, 5))
            if random.random() < 0.3:
                array.offset = int(random.integers(-2, 5))
            if random.random() < 0.3:
                array.null_count = int(random.integers(-1, 5))
            if random.random() < 0.2:
                array.n_buffers = int(random.integers(0, 3))
            if random.random() < 0.1:
                array.n_children = int(random.integers(0, 2)) if array is producer.table else 0

    outcomes = set()
    for _ in range(500):
        try:
            list(cairn.Dataset.from_table(Producer(spoil=spoil, buffers=[None, bytes(512), bytes(512)])))
            outcomes.add("read")
        except (ValueError, TypeError) as error:
            outcomes.add(type(error).__name__)
    assert {"read", "InvalidArgumentError"} <= outcomes
