"""Arrays: from NumPy and back, operators, errors that say what to write."""

import numpy as np
import pytest

import cairn


def test_numbers_come_back_as_they_went():
    for dtype in ["float32", "float64", "int32", "int64", "uint8", "bool", "float16"]:
        given = np.arange(6).reshape(2, 3).astype(dtype)
        array = cairn.Array(given)
        assert array.dtype == dtype
        assert array.shape == (2, 3)
        np.testing.assert_array_equal(array.numpy(), given)


def test_texts_come_back_as_they_went():
    given = np.array([["a", "ü"], ["", "long text"]])
    back = cairn.Array(given).numpy()
    assert back.tolist() == given.tolist()


def test_memory_that_is_read_only_is_shared_and_other_memory_copied():
    fixed = np.arange(1000, dtype="float32")
    fixed.flags.writeable = False
    shared = cairn.Array(fixed).numpy()
    assert shared.__array_interface__["data"][0] == fixed.__array_interface__["data"][0]
    changing = np.zeros(3, "float32")
    array = cairn.Array(changing)
    changing[:] = 7
    assert array.numpy().tolist() == [0, 0, 0]


def test_results_are_read_only():
    with pytest.raises(ValueError):
        cairn.Array([1.0]).numpy()[0] = 2.0


def test_strides_and_other_orders_are_brought_into_ours():
    matrix = np.arange(12, dtype="int64").reshape(3, 4)
    np.testing.assert_array_equal(cairn.Array(matrix.T).numpy(), matrix.T)
    np.testing.assert_array_equal(cairn.Array(matrix[::2, 1:]).numpy(), matrix[::2, 1:])
    np.testing.assert_array_equal(cairn.Array(np.asfortranarray(matrix)).numpy(), matrix)


def test_operators_are_those_of_numpy():
    a, b = np.array([[1.0, 2.0], [3.0, 4.0]], "float32"), np.array([2.0, 5.0], "float32")
    x, y = cairn.Array(a), cairn.Array(b)
    pairs = [
        (x + y, a + b), (x - b, a - b), (a * y, a * b), (x / y, a / b), (2 - x, 2 - a), (x @ x, a @ a),
        (x**2, a**2), (-x, -a), (x > 2, a > 2), (x == y, a == b), (x[1:, None], a[1:, None]), (x[..., 0], a[..., 0]),
    ]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)


def test_an_int_takes_the_type_of_what_it_meets():
    assert (cairn.Array(np.arange(3)) + 1).dtype == "int64"
    assert (cairn.Array([1.0]) * 2).dtype == "float32"


def test_a_variable_is_its_value_in_every_operator():
    v = cairn.Variable([1.0, 2.0], name="v")
    np.testing.assert_array_equal((v == 1.0).numpy(), [True, False])
    np.testing.assert_array_equal((v != 1.0).numpy(), [False, True])
    for ours, theirs in [(-v, [-1, -2]), (abs(-v), [1, 2]), (v % 2.0, [1, 0]), (2.0**v, [2, 4]), (v[1:], [2])]:
        np.testing.assert_allclose(ours.numpy(), theirs)
    assert len(v) == 2 and list(v) == [1, 2] and 2.0 in v and 3.0 not in v
    one = cairn.Variable(3.0, name="one")
    assert float(one) == 3 and int(one) == 3 and bool(one) and {one: "one"}[one] == "one"
    strategy = cairn.OneDeviceStrategy()
    with strategy.scope():
        w = cairn.Variable(0.0, name="w")
    for act in (bool, float, lambda of: 1.0 if of > 0 else 0.0):
        with pytest.raises(TypeError, match="cairn.where|return it"):
            strategy.run(strategy.function(lambda: act(w)))
    strategy.close()


def test_a_recorded_array_has_no_value():
    strategy = cairn.OneDeviceStrategy()
    asked = {
        "bool": lambda x: bool(x),
        "float": lambda x: float(x),
        "in": lambda x: 1.0 in x,
        "loop": lambda x: list(x),
        "numpy.exp": lambda x: np.exp(x),
        "asarray": lambda x: np.asarray(x),
    }
    for what, act in asked.items():
        @strategy.function
        def step(x):
            act(x)
            return x

        with pytest.raises(TypeError) as caught:
            strategy.run(step, np.ones(2, "float32"))
        assert "cairn." in str(caught.value) or "return it" in str(caught.value) or "elements at once" in str(caught.value), what


def test_what_is_no_array_says_what_to_pass():
    wrong = [
        (np.array([1 + 2j]), "x.real"),
        (np.array(["2020-01-01"], "datetime64[D]"), "int64"),
        (np.array([1.0], ">f4"), "newbyteorder"),
        (np.array([1], "int16"), "astype"),
        (np.array([None, "a"], object), "None"),
        ([[1], [1, 2]], "ragged"),
        (object(), "NumPy array"),
        ({"a": 1}, "dict"),
    ]
    for value, word in wrong:
        with pytest.raises(TypeError, match=word):
            cairn.Array(value)
    with pytest.raises(ValueError, match="int64"):
        cairn.Array(2**70)


def test_errors_are_python_s_own_too():
    with pytest.raises(ValueError) as caught:
        cairn.Array(np.ones((2, 3), "float32")) @ np.ones((2, 3), "float32")
    assert isinstance(caught.value, cairn.InvalidArgumentError)
    assert caught.value.code == "InvalidArgument"
    assert "matmul(float32[2, 3], float32[2, 3])" in str(caught.value)


def test_arrays_pass_by_dlpack_both_ways():
    array = cairn.Array(np.arange(4.0))
    assert array.__dlpack_device__() == (1, 0)
    theirs = np.from_dlpack(array)
    assert theirs.tolist() == [0, 1, 2, 3]
    assert theirs.__array_interface__["data"][0] == array.numpy().__array_interface__["data"][0]
    capsule = array.__dlpack__()  # a version before 1.0: memory of its own
    assert "dltensor" in repr(capsule)
    mine = np.arange(3)
    copied, shared = cairn.from_dlpack(mine), cairn.from_dlpack(mine, copy=False)
    mine[:] = 5
    assert copied.numpy().tolist() == [0, 1, 2] and shared.numpy().tolist() == [5, 5, 5]
    with pytest.raises(TypeError):
        cairn.from_dlpack(3)
