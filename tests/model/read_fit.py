"""The real TensorBoard reads what a fit() told it: the history's own figures.

    read_fit.py FIT_EVENTS

The program kills its fit() in the middle of an epoch and goes on: nothing is missing, and nothing is there twice.
"""

import subprocess
import sys
import tempfile

import numpy
from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.util import tensor_util


def read(folder):
    return plugin_event_accumulator.EventAccumulator(folder).Reload()


def curve(run, tag):
    return [(event.step, float(tensor_util.make_ndarray(event.tensor_proto))) for event in run.Tensors(tag)]


def expected(values):
    return [(epoch, float(numpy.float32(value))) for epoch, value in enumerate(values)]


def main():
    with tempfile.TemporaryDirectory() as folder:
        printed = subprocess.run([sys.argv[1], folder], check=True, stdout=subprocess.PIPE, text=True).stdout
        history = {line.split()[0]: [float(value) for value in line.split()[1:]] for line in printed.splitlines()}
        train, validation = read(f"{folder}/board/train"), read(f"{folder}/board/validation")
        for name, values in history.items():
            run, tag = (validation, name[4:]) if name.startswith("val_") else (train, name)
            assert curve(run, f"epoch_{tag}") == expected(values), (name, curve(run, f"epoch_{tag}"), values)
        assert [step for step, _ in curve(train, "batch_loss")] == [1, 3, 5, 7, 9, 11], curve(train, "batch_loss")
        assert [event.step for event in train.Tensors("dense/kernel")] == [0, 2]
        assert any(node.op == "matmul" for node in train.Graph().node)
        text = [tensor_util.make_ndarray(event.tensor_proto) for event in train.Tensors("model")][-1]
        assert b"dense/kernel" in text.item(), text


if __name__ == "__main__":
    main()
