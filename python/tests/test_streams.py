"""Arrow streams that are made by hand, whole and damaged."""

import ctypes

import numpy as np
import pytest

import cairn


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
