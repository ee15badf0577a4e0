"""Values that are no arrays of Cairn's, operations that do not fit, variables: each error names the cure."""

import datetime
import decimal

import numpy as np
import pytest

import cairn
from bad import Case, parametrized


class NoArray:
    def __repr__(self):
        return "NoArray()"


class Raises:
    def __getattr__(self, name):
        raise RuntimeError("on purpose")


class Lies:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("on purpose")


def ints(*shape):
    return np.zeros(shape, "int64")


def floats(*shape):
    return np.zeros(shape, "float32")


A = cairn.Array
INVALID = cairn.InvalidArgumentError

VALUES = [
    Case("object of numbers", lambda: A(np.array([1, 2], object)), TypeError, "element 0", "array of objects", "is 1", "astype"),
    Case("object with None", lambda: A(np.array(["a", None], object)), TypeError, "element 1", "None", "texts"),
    Case("object of lists", lambda: A(np.array([[1], [1, 2]], object)), TypeError, "element 0", "list"),
    Case("dates", lambda: A(np.array(["2020-01-01"], "datetime64[D]")), TypeError, "datetime64[D]", "no dates", "astype('int64')"),
    Case("time spans", lambda: A(np.array([1], "timedelta64[s]")), TypeError, "timedelta64[s]", "astype('int64')"),
    Case("one date", lambda: A(datetime.date(2020, 1, 1)), TypeError, "a date is no array"),
    Case("big-endian floats", lambda: A(np.ones(2, ">f4")), TypeError, "other order", "newbyteorder"),
    Case("big-endian ints", lambda: A(np.ones(2, ">i8")), TypeError, "other order", "newbyteorder"),
    Case("complex", lambda: A(np.ones(2, "complex64")), TypeError, "complex64", "x.real and x.imag"),
    Case("one complex", lambda: A(1 + 2j), TypeError, "complex", "is no array"),
    Case("a list of complex", lambda: A([1j]), TypeError, "complex", "x.real"),
    Case("int8", lambda: A(np.ones(2, "int8")), TypeError, "int8", "astype('int64')"),
    Case("uint32", lambda: A(np.ones(2, "uint32")), TypeError, "uint32", "astype"),
    Case("uint64", lambda: A(np.ones(2, "uint64")), TypeError, "uint64", "astype"),
    Case("long double", lambda: A(np.ones(2, "longdouble")), TypeError, "float128", "astype('float32')"),
    Case("records", lambda: A(np.zeros(2, [("a", "f4"), ("b", "i4")])), TypeError, "records", "fields as columns"),
    Case("void", lambda: A(np.zeros(2, "V8")), TypeError, "void", "Cairn does not have"),
    Case("rows of different lengths", lambda: A([[1.0], [1.0, 2.0]]), TypeError, "different lengths", "row_splits"),
    Case("numbers among texts", lambda: A([1, None]), TypeError, "no numbers and no texts", "cairn.stack"),
    Case("an int beyond int64", lambda: A(2**63), INVALID, "9223372036854775808", "beyond int64"),
    Case("a list beyond int64", lambda: A([2**63]), TypeError, "uint64", "astype"),
    Case("a dict", lambda: A({"a": 1}), TypeError, "dict", "is no array"),
    Case("a set", lambda: A({1}), TypeError, "set", "is no array"),
    Case("a generator", lambda: A(x for x in [1]), TypeError, "generator", "is no array"),
    Case("a function", lambda: A(len), TypeError, "is no array"),
    Case("an object", lambda: A(NoArray()), TypeError, "NoArray", "is no array"),
    Case("a decimal", lambda: A(decimal.Decimal(1)), TypeError, "Decimal", "is no array"),
    Case("None", lambda: A(None), TypeError, "Array()", '"value" is None', "an array"),
    Case("__array__ that raises", lambda: A(Lies()), RuntimeError, "on purpose"),
    Case("no such dtype", lambda: A([1.0], dtype="float31"), INVALID, "float31"),
    Case("a dtype of NumPy alone", lambda: A([1.0], dtype=np.complex64), INVALID, "complex64"),
    Case("a dtype that is a number", lambda: A([1.0], dtype=3), TypeError, "a dtype is a name", "3"),
    Case("no argument", lambda: A(), TypeError, "Array()", '"value"', "missing"),
    Case("another name", lambda: A(values=1), TypeError, "Array()", '"values"', 'did you mean "value"'),
    Case("too many", lambda: A(1, "float32", 3), TypeError, "Array() takes 2 arguments", '"value" and "dtype"', "3"),
    Case("twice", lambda: A(1, value=2), TypeError, '"value"', "twice"),
]

X = A(floats(2, 3))
OPERATIONS = [
    Case("matmul", lambda: X @ floats(2, 3), INVALID, "matmul(float32[2, 3], float32[2, 3])"),
    Case("broadcast", lambda: X + floats(2), INVALID, "add(float32[2, 3], float32[2])"),
    Case("dtypes", lambda: X + A(ints(2, 3)), INVALID, "float32", "int64", "cast"),
    Case("a text and a number", lambda: A("a") + 1, INVALID, "string"),
    Case("an operand that is no array", lambda: X + {"a": 1}, TypeError, "dict", "is no array"),
    Case("exp of ints", lambda: cairn.exp(ints(2)), INVALID, "exp(int64[2])"),
    Case("reshape", lambda: cairn.reshape(X, (4, 2)), INVALID, "reshape", "[4, 2]"),
    Case("a shape of texts", lambda: cairn.reshape(X, ("a",)), TypeError, "size of a shape", "'a'"),
    Case("a shape that is a text", lambda: cairn.reshape(X, "6"), TypeError, "a shape is a tuple", "'6'"),
    Case("an axis beyond", lambda: cairn.reduce_sum(X, axis=2), INVALID, "reduce_sum", "2"),
    Case("an axis that is a text", lambda: cairn.reduce_sum(X, axis="x"), TypeError, "reduce_sum()", '"axis" is \'x\'', "an int"),
    Case("axes with a text", lambda: cairn.reduce_sum(X, axis=[0, "x"]), TypeError, "reduce_sum()", '"axis"', "'x' at position 1", "an int"),
    Case("concat of one", lambda: cairn.concat(X, 0), TypeError, "a list of arrays", "Array"),
    Case("concat of other shapes", lambda: cairn.concat([X, floats(2, 2)], 0), INVALID, "concat"),
    Case("stack of nothing", lambda: cairn.stack([]), INVALID, "stack"),
    Case("split", lambda: cairn.split(X, 2, axis=1), INVALID, "split", "3"),
    Case("split by floats", lambda: cairn.split(X, 1.5), TypeError, "split()", '"pieces" is 1.5', "an int or a list of ints"),
    Case("ids that are floats", lambda: cairn.gather(X, [0.5]), INVALID, "gather", "float32"),
    Case("an id beyond", lambda: cairn.gather(X, [5]).numpy(), INVALID, "test_bad_arrays.py", "gather", "id 5"),
    Case("one_hot", lambda: cairn.one_hot([1], -1), INVALID, "one_hot", "-1"),
    Case("one_hot without depth", lambda: cairn.one_hot([1]), TypeError, "one_hot()", '"depth" is missing'),
    Case("a keyword of NumPy", lambda: cairn.reduce_sum(X, dim=1), TypeError, "reduce_sum() has no argument \"dim\"", '"axis"'),
    Case("padding", lambda: cairn.pad(X, [1, 2]), TypeError, "pad()", '"paddings" has 1 at position 0', "a tuple of 2"),
    Case("a seed below 0", lambda: cairn.random_normal((2,), seed=-1), INVALID, '"seed" is -1', "at least 0"),
    Case("a seed beyond", lambda: cairn.random_normal((2,), seed=2**64), INVALID, '"seed" is 18446744073709551616', "beyond"),
    Case("a size beyond", lambda: cairn.range(2**63), INVALID, '"n" is 9223372036854775808', "beyond"),
    Case("conv2d strides", lambda: cairn.conv2d(floats(1, 3, 3, 1), floats(3, 3, 1, 1), strides=2), TypeError, "conv2d()", '"strides" is 2', "a list of ints"),
    Case("the padding of conv2d", lambda: cairn.conv2d(floats(1, 3, 3, 1), floats(3, 3, 1, 1), padding="full"), INVALID, '"valid" or "same"', '"full"'),
    Case("a combiner", lambda: cairn.combine_rows(floats(2, 2), [0, 2], "median"), INVALID, '"sum", "mean" or "sqrtn"', '"median"'),
    Case("a gradient of no scalar", lambda: cairn.grad(X, [X]), INVALID, "scalar"),
    Case("a gradient by a number", lambda: cairn.grad(cairn.sum(X), 3), TypeError, "a list of arrays", "not 3"),
    Case("dropout", lambda: cairn.dropout(X, 1.5), INVALID, "dropout", "1.5"),
    Case("a subscript that is an Array", lambda: X[A(1)], TypeError, "no subscript", "cairn.gather"),
    Case("a subscript that is a text", lambda: X["a"], TypeError, "a subscript is an int, a slice"),
    Case("a subscript beyond", lambda: X[2], INVALID, "2"),
    Case("too many subscripts", lambda: X[0, 0, 0], INVALID, "3"),
    Case("a bound that is an Array", lambda: X[A(0) :], TypeError, "bound of a slice", "cairn.slice"),
    Case("a step of 0", lambda: X[::0], INVALID, "0"),
    Case("rows by an array", lambda: X[np.arange(2)], TypeError, "cairn.gather"),
    Case("a bound of several", lambda: X[np.arange(2) :], TypeError, "a bound of a slice", "a single int"),
    Case("a size of several", lambda: cairn.reshape(X, (np.arange(2),)), TypeError, "a size of a shape", "NumPy array"),
    Case("an axis of several", lambda: cairn.expand_dims(X, np.arange(2)), TypeError, "expand_dims()", '"axis" is a NumPy array of int64[2]', "an int"),
    Case("an object that raises", lambda: cairn.expand_dims(X, Raises()), TypeError, "expand_dims()", '"axis" is a Raises', "an int"),
    Case("rows by a list", lambda: X[[0, 1]], TypeError, "cairn.gather"),
    Case("item of several", lambda: X.item(), ValueError, "size 1"),
    Case("float of several", lambda: float(X), TypeError, "Array of shape [2, 3]", "no single number"),
    Case("bool of several", lambda: bool(X), TypeError, "no single number"),
    Case("len of a scalar", lambda: len(A(1.0)), TypeError, "without axes"),
    Case("DLPack of a number", lambda: cairn.from_dlpack(3), TypeError, "from_dlpack()", "__dlpack__"),
    Case("a stream of DLPack", lambda: X.__dlpack__(stream=1), BufferError, "host memory"),
    Case("a log level", lambda: cairn.set_log_level("loud"), INVALID, '"info", "warning"', '"loud"'),
    Case("a level that is a number", lambda: cairn.set_log_level(3), TypeError, "set_log_level()", '"least" is 3', "a str"),
]


def variable():
    return cairn.Variable(floats(4, 2), name="v")


VARIABLES = [
    Case("a value that is none", lambda: cairn.Variable(NoArray()), TypeError, "NoArray", "is no array"),
    Case("a name that is a number", lambda: cairn.Variable(1.0, name=3), TypeError, "Variable()", '"name" is 3', "a str"),
    Case("an aggregation", lambda: cairn.Variable(1.0, aggregation="max"), INVALID, '"sum", "mean"', '"max"'),
    Case("a synchronization", lambda: cairn.Variable(1.0, synchronization="always"), INVALID, '"on_write"', '"always"'),
    Case("trainable", lambda: cairn.Variable(1.0, trainable="yes"), TypeError, '"trainable" is \'yes\'', "True or False"),
    Case("assign of another shape", lambda: variable().assign(floats(3, 2)), INVALID, '"v"', "[4, 2]", "[3, 2]"),
    Case("assign of another dtype", lambda: variable().assign(ints(4, 2)), INVALID, '"v"', "float32", "int64"),
    Case("assign of nothing", lambda: variable().assign(), TypeError, "Variable.assign()", '"value" is missing'),
    Case("a row that is not there", lambda: variable().gather([4]).numpy(), INVALID, '"v"', "4"),
    Case("ids that are texts", lambda: variable().gather(["a"]), INVALID, "string"),
    Case("rows of another width", lambda: variable().scatter_add([0], floats(1, 3)), INVALID, '"v"', "[1, 3]"),
    Case("more rows than ids", lambda: variable().scatter_add([0], floats(2, 2)), INVALID, '"v"', "[2, 2]"),
    Case("an attribute that is none", lambda: variable().value, AttributeError, "value"),
    Case("a name that is set", lambda: setattr(variable(), "name", "w"), AttributeError),
    Case("evict of a plain one", lambda: variable().evict([0]), INVALID, '"v"', "evict", "RowPolicy"),
]


@parametrized(VALUES)
def test_what_is_no_array_says_what_to_pass(case):
    case.check()


@parametrized(OPERATIONS)
def test_an_operation_that_does_not_fit_names_its_operands(case):
    case.check()


@parametrized(VARIABLES)
def test_a_variable_says_what_it_takes(case):
    strategy = cairn.OneDeviceStrategy()
    with strategy.scope():
        case.check()
    strategy.close()


def test_every_case_of_strides_is_taken():
    whole = np.arange(24, dtype="float32").reshape(2, 3, 4)
    for given in (whole[::-1], whole[:, ::2], whole.T, whole[..., None][:, :, 1], np.broadcast_to(whole[0], (5, 3, 4)), whole[:0]):
        np.testing.assert_array_equal(A(given).numpy(), given)
    unaligned = np.frombuffer(b"\0" + whole.tobytes(), "float32", offset=1)
    np.testing.assert_array_equal((A(unaligned) + 0.0).numpy(), whole.ravel())
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    with pytest.raises(TypeError, match="mask"):
        A(masked)
