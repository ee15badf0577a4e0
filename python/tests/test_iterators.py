"""Reading a dataset in Python, element by element."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import cairn

Dataset = cairn.Dataset


def values(dataset, column="value"):
    return [each[column].tolist() for each in dataset]


def slices(n=6):
    return Dataset.from_tensor_slices({"x": np.arange(float(n)), "t": np.array([str(i) for i in range(n)]), "y": np.arange(n) % 2}, label="y")


def test_an_element_is_a_dict_of_read_only_arrays():
    element = next(iter(slices().batch(2)))
    assert list(element) == ["x", "t", "y"] and element["t"].tolist() == ["0", "1"]
    with pytest.raises(ValueError):
        element["x"][0] = 1


def test_an_iterator_goes_on_where_another_one_stood():
    data = Dataset.range(100).shuffle(10, 5).repeat(2)
    iterator = iter(data)
    for _ in range(37):
        next(iterator)
    rest = values(data.open(iterator.state))
    assert rest == values(iterator) and len(rest) == 163
    with pytest.raises(ValueError, match="state"):
        Dataset.range(5).open(iterator.state)
    iterator.skip_to(3)
    assert iterator.ordinal == 3
    with pytest.raises(StopIteration):
        next(iter(Dataset.range(0)))


def test_the_spec_of_elements_reads_by_column():
    spec = slices().batch(3).element_spec
    assert [(column.name, column.dtype, column.shape) for column in spec] == [("x", "float64", (None,)), ("t", "string", (None,)), ("y", "int64", (None,))]
    assert spec.label == "y" and len(spec) == 3 and spec == slices(9).batch(3).element_spec
    with pytest.raises(ValueError, match='"z"'):
        spec["z"]


def test_notebooks_see_a_table_of_columns():
    html = Dataset.from_tensor_slices({"<x>": np.zeros(2)})._repr_html_()
    assert html.startswith("<table>") and "&lt;x&gt;" in html and "float64" in html


def test_several_threads_take_turns_at_one_iterator():
    iterator = iter(Dataset.range(3000))
    taken = []
    threads = [threading.Thread(target=lambda: taken.extend(each["value"].item() for each in iterator)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(3000))


def test_a_program_ends_while_iterators_read_ahead():
    program = (
        "import cairn, itertools\n"
        "def numbers():\n"
        "    for i in itertools.count(): yield {'x': i}\n"
        "its = [iter(cairn.Dataset.from_generator(numbers, {'x': 'int64'}).batch(2).prefetch(8)) for _ in range(4)]\n"
        "print(sum(next(it)['x'].sum() for it in its))\n"
    )
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "4\n", "")
