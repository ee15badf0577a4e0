"""The real TensorBoard reads event files of ours: what write_events wrote comes back.

    read_events.py WRITE_EVENTS
"""

import subprocess
import sys
import tempfile

import numpy
from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.util import tensor_util


def tensors(run, tag, plugin):
    metadata = run.SummaryMetadata(tag)
    assert metadata.plugin_data.plugin_name == plugin, f"{tag} is of the plugin {metadata}"
    return [(event.step, tensor_util.make_ndarray(event.tensor_proto)) for event in run.Tensors(tag)]


def check(run):
    tags = set(run.Tags()["tensors"])
    assert tags == {"__run_graph__", "notes", "same", "train/loss", "weights"}, tags

    loss = tensors(run, "train/loss", "scalars")
    expected = [numpy.float32(1 / (step + 1)) for step in range(4)] + [numpy.float32(-4)]
    assert [step for step, _ in loss] == [0, 1, 2, 3, 4], loss
    assert [float(value) for _, value in loss] == [float(value) for value in expected], loss
    assert all(value.dtype == numpy.float32 and value.shape == () for _, value in loss), loss

    values = numpy.array([0.25 * i * i - 3 for i in range(100)])
    counts, ends = numpy.histogram(values, bins=30)
    ((step, buckets),) = tensors(run, "weights", "histograms")
    assert step == 2 and buckets.shape == (30, 3) and buckets.dtype == numpy.float64, buckets
    numpy.testing.assert_allclose(buckets[:, 0], ends[:-1])
    numpy.testing.assert_allclose(buckets[:, 1], ends[1:])
    numpy.testing.assert_array_equal(buckets[:, 2], counts)
    ((_, buckets),) = tensors(run, "same", "histograms")
    numpy.testing.assert_array_equal(buckets, [[1, 2, 7]])

    ((step, text),) = tensors(run, "notes", "text")
    assert step == 1 and text.item().decode() == "*learning rate* 0.1 — constant", text

    nodes = {node.name: node for node in run.Graph().node}
    sums = [node for node in nodes.values() if node.op == "add"]
    assert len(sums) == 1 and len(sums[0].input) == 2, nodes
    assert all(name.split(":")[0] in nodes for node in nodes.values() for name in node.input), nodes
    dims = sums[0].attr["_output_shapes"].list.shape[0].dim
    assert [dim.size for dim in dims] == [-1, 4], dims
    assert list(nodes["outputs/twice"].input) == [sums[0].name], nodes


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        check(plugin_event_accumulator.EventAccumulator(folder).Reload())


if __name__ == "__main__":
    main()
