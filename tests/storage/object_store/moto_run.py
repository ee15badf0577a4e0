"""Trainings that save into a bucket of moto_server, a real process on a free port: go on from there on another number of
ps, and two at once under one prefix. Usage: moto_run.py CAIRN JOB_FOLDER"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

CAIRN = sys.argv[1]
EXAMPLES = pathlib.Path(sys.argv[2])
PROGRAM_SECONDS = 100

JOB = """[data]
train = "%s/data/adult/adult.data.gz"
batch = 256
epochs = %d
[data.csv]
columns = ["age:int32", "workclass", "-fnlwgt", "education", "education-num:int32", "marital-status", "occupation",
           "relationship", "race", "sex", "capital-gain:int32", "capital-loss:int32", "hours-per-week:int32",
           "native-country", "income"]
label = {column = "income", positive = [">50K"], negative = ["<=50K"]}
[features]
numeric = ["age"]
vocabulary = ["workclass", "education", "occupation"]
[strategy]
kind = "%s"
[checkpoint]
every = %d
keep_last = 2
compression = "zstd"
"""


def server(log):
    """The process, and its address once it says it."""
    process = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"], stdout=log, stderr=log)
    while process.poll() is None:
        found = re.search(r"http://127\.0\.0\.1:[1-9]\d*", pathlib.Path(log.name).read_text())
        if found:
            return process, found.group()
    raise SystemExit("moto_server ended: " + pathlib.Path(log.name).read_text())


def cairn(*arguments, expect=0):
    done = subprocess.run([CAIRN, *arguments], capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == expect, f"{arguments} ended with {done.returncode}:\n{said}"
    return said


def keys(address):
    with urllib.request.urlopen(address + "/bucket?list-type=2&max-keys=1000") as answer:
        return re.findall("<Key>([^<]*)", answer.read().decode())


def verify_all(prefix):
    said = cairn("ckpt", "verify", prefix)
    assert ": clean (" in said and "DAMAGED" not in said, said


def go_on(folder, address):
    """Saved by two ps as deltas, gone on from by three; what no checkpoint needs any more is gone."""
    job = folder / "servers.toml"
    job.write_text(JOB % (EXAMPLES, 1, "parameter_server", 25) + "full_every = 3\n[cluster]\nps = 2\nworkers = 1\n")
    cairn("train", str(job), "--dir", str(folder / "one"), "--checkpoints", "s3://bucket/servers")
    listed = cairn("ckpt", "ls", "s3://bucket/servers")
    assert "step 128" in listed, listed
    verify_all("s3://bucket/servers")
    cairn("train", str(job), "--dir", str(folder / "two"), "--checkpoints", "s3://bucket/servers",
          "--resume", "s3://bucket/servers", "--ps", "3", "--epochs", "2")
    listed = cairn("ckpt", "ls", "s3://bucket/servers")
    assert "step 255" in listed and "step 128" not in listed, listed
    verify_all("s3://bucket/servers")
    shown = [cairn("ckpt", "show", "--json", path) for path in re.findall(r"s3://\S+", listed)]
    named = set(re.findall("rows-[0-9a-f]{16}-[0-9]+", "".join(shown)))
    there = set(re.findall("rows-[0-9a-f]{16}-[0-9]+", "".join(keys(address))))
    assert named == there, f"named {named}, there {there}"


def two_at_once(folder):
    """Each saves every few steps; of every number one run's checkpoint is there, whole."""
    job = folder / "local.toml"
    job.write_text(JOB % (EXAMPLES, 4, "one_device", 5))
    both = [subprocess.Popen([CAIRN, "train", str(job), "--overwrite", "--dir", str(folder / name), "--checkpoints", "s3://bucket/both"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for name in "ab"]
    said = [each.communicate(timeout=PROGRAM_SECONDS)[0] for each in both]
    verify_all("s3://bucket/both")
    refused = [text.count("another run has saved s3://bucket/both/ckpt-") for text in said]
    assert sum(refused) > 0, "they never met:\n" + "\n".join(said)
    print("refused:", refused)


def main():
    os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="us-east-1")
    with tempfile.TemporaryDirectory() as place, open(place + "/moto.log", "w") as log:
        process, address = server(log)
        os.environ["AWS_ENDPOINT_URL"] = address
        try:
            urllib.request.urlopen(urllib.request.Request(address + "/bucket", method="PUT")).read()
            go_on(pathlib.Path(place), address)
            two_at_once(pathlib.Path(place))
        finally:
            process.terminate()
            process.wait()


main()
