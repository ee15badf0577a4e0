"""ONNX's checker and its runtime read models that Cairn has exported:
  read_onnx.py CAIRN WRITE_ONNX ROOT
The predictions must be those of LoadedModel, within 1e-6 (of the larger of the number and 1)."""
import json
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime


def rows_of(folder, described, ids):
    """The rows of a hashed table for these ids, which are all among its keys."""
    beside = numpy.load(os.path.join(folder, described["file"]))
    keys, values = beside[described["keys"]], beside[described["values"]]
    assert (numpy.diff(keys) > 0).all(), "keys do not ascend"
    places = numpy.searchsorted(keys, ids)
    assert (keys[places] == ids).all(), "rows are missing"
    return values[places]


def compare(folder, name):
    path = os.path.join(folder, name + ".onnx")
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path, load_external_data=False)
    told = {entry.key: entry.value for entry in model.metadata_props}
    batch = numpy.load(os.path.join(folder, name + ".batch.npz"))
    session = onnxruntime.InferenceSession(path)
    wanted = {value.name for value in session.get_inputs()}
    feed = {key[3:]: batch[key] for key in batch.files if key.startswith("in/") and key[3:] in wanted}
    for described in json.loads(told["cairn.rows"]):
        feed[described["input"]] = rows_of(folder, described, batch["in/" + described["ids"]])
    names = [value.name for value in session.get_outputs()]
    assert set(names) == {key[4:] for key in batch.files if key.startswith("out/")}, names
    worst = 0.0
    for output, got in zip(names, session.run(names, feed)):
        own = batch["out/" + output]
        assert got.shape == own.shape and got.dtype == own.dtype, (output, got.shape, own.shape)
        assert (numpy.isnan(got) == numpy.isnan(own)).all() if own.dtype.kind == "f" else True, output
        error = numpy.abs(got.astype("f8") - own.astype("f8")) / numpy.maximum(1, numpy.abs(own.astype("f8")))
        largest = float(error.max()) if error.size else 0.0
        assert largest <= 1e-6, (name, output, largest)
        worst = max(worst, largest)
    print(f"{name}: {len(names)} outputs, largest difference {worst:.1e}")
    return told


def main():
    cairn, write_onnx, root = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        subprocess.run([cairn, "train", root + "/examples/adult.toml", "--strategy", "one_device",
                        "--steps", "100", "--dir", run], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([write_onnx, folder, os.path.join(run, "model")], check=True, cwd=root)
        compare(folder, "adult")
        compare(folder, "small")
        compare(folder, "operations")
        assert os.path.getsize(os.path.join(folder, "operations.onnx.data")) == 20_000 * 32 * 4
        # What the command says is there, and what cannot be said is refused before it is written.
        out = os.path.join(folder, "again.onnx")
        told = json.loads(subprocess.run([cairn, "model", "export", run, "--out", out, "--json"],
                                         check=True, capture_output=True).stdout)
        assert told["files"] == [out] and told["outputs"] == ["probability"], told
        again = subprocess.run([cairn, "model", "export", run, "--out", out], capture_output=True)
        assert again.returncode != 0 and b"exists already" in again.stderr, again


main()
