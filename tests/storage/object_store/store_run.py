"""Checkpoints in a store that is not ours, as a real process on a free port: trainings that save there and go on from there on
another number of ps, and two at once under one prefix.
Usage: store_run.py CAIRN JOB_FOLDER [moto|swift] [--long]
--long adds `cairn ckpt` there and back, large files, copies that are killed, and all of it through a proxy that cuts
connections."""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

import boto3
import stores

CAIRN = sys.argv[1]
EXAMPLES = pathlib.Path(sys.argv[2])
PROGRAM_SECONDS = 300 if "--long" in sys.argv else 100
LARGE_ROWS = 600_000  # of 64 bytes

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


class Suite:
    def __init__(self, store, folder, prefix=""):
        self.folder = pathlib.Path(folder, prefix or "plain")
        self.folder.mkdir()
        self.prefix = prefix
        self.single = [] if store.conditional else ["--store-single-writer"]
        self.client = boto3.client("s3", endpoint_url=store.address, region_name="us-east-1", aws_access_key_id=store.access_key,
                                   aws_secret_access_key=store.secret_key)

    def place(self, name):
        return f"s3://bucket/{self.prefix}{name}"

    def keys(self):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix=self.prefix)
        return [each["Key"] for page in pages for each in page.get("Contents", [])]

    def cairn(self, *arguments, expect=0):
        done = subprocess.run([CAIRN, *arguments], capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == expect, f"{arguments} ended with {done.returncode}:\n{said}"
        return said

    def verify_all(self, place):
        said = self.cairn("ckpt", "verify", place)
        assert ": clean (" in said and "DAMAGED" not in said, said

    def rows_named(self, place):
        shown = [self.cairn("ckpt", "show", "--json", path) for path in re.findall(r"s3://\S+", self.cairn("ckpt", "ls", place))]
        return set(re.findall("rows-[0-9a-f]{16}-[0-9]+", "".join(shown)))

    def rows_there(self, name):
        return set(re.findall(rf"{self.prefix}{name}/(rows-[0-9a-f]{{16}}-[0-9]+)", "\n".join(self.keys())))

    # ---- trainings ----

    def go_on(self):
        """Saved by two ps as deltas, gone on from by three; what no checkpoint needs any more is gone."""
        job = self.folder / "servers.toml"
        job.write_text(JOB % (EXAMPLES, 1, "parameter_server", 25) + "full_every = 3\n[cluster]\nps = 2\nworkers = 1\n")
        place = self.place("servers")
        self.cairn("train", str(job), "--dir", str(self.folder / "one"), "--checkpoints", place, *self.single)
        assert "step 128" in self.cairn("ckpt", "ls", place)
        self.verify_all(place)
        self.cairn("train", str(job), "--dir", str(self.folder / "two"), "--checkpoints", place, "--resume", place, "--ps", "3",
                   "--epochs", "2", *self.single)
        listed = self.cairn("ckpt", "ls", place)
        assert "step 255" in listed and "step 128" not in listed, listed
        self.verify_all(place)
        named, there = self.rows_named(place), self.rows_there("servers")
        assert named == there, f"named {named}, there {there}"

    def two_at_once(self):
        """Each saves every few steps; of every number one run's checkpoint is there, whole."""
        job = self.folder / "local.toml"
        job.write_text(JOB % (EXAMPLES, 4, "one_device", 40 if self.prefix else 5))  # a cut costs time
        both = [subprocess.Popen([CAIRN, "train", str(job), "--overwrite", "--dir", str(self.folder / name), "--checkpoints",
                                  self.place("both")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for name in "ab"]
        try:
            said = [each.communicate(timeout=PROGRAM_SECONDS)[0] for each in both]
        finally:
            for each in both:
                each.kill()
        self.verify_all(self.place("both"))
        refused = [text.count(f"another run has saved {self.place('both')}/ckpt-") for text in said]
        assert sum(refused) > 0, "they never met:\n" + "\n".join(said)
        print("refused:", refused)

    def is_refused_unless_it_is_the_only_writer(self):
        job = self.folder / "local.toml"
        job.write_text(JOB % (EXAMPLES, 1, "one_device", 1000))
        said = self.cairn("train", str(job), "--dir", str(self.folder / "refused"), "--checkpoints", self.place("refused"), expect=1)
        assert "501" in said and "--store-single-writer" in said, said
        assert not any("MANIFEST" in key for key in self.keys() if "refused" in key), self.keys()

    # ---- cairn ckpt ----

    def copies_there_and_back(self):
        """A chain of deltas to a folder and back to another prefix: the same rows, and what deltas share is there once."""
        source, back = self.place("servers"), self.place("back")
        self.cairn("ckpt", "copy", source, str(self.folder / "copied"))
        self.verify_all(str(self.folder / "copied"))
        self.cairn("ckpt", "copy", str(self.folder / "copied"), back, *self.single)
        self.verify_all(back)
        self.cairn("ckpt", "diff", source, back)
        again = json.loads(self.cairn("ckpt", "copy", "--json", str(self.folder / "copied"), back, *self.single))
        assert all(each["files_copied"] == 0 for each in again), again
        self.cairn("ckpt", "copy", back, self.place("third"), *self.single)
        self.cairn("ckpt", "diff", source, self.place("third"))
        assert len(self.rows_there("back")) == len(self.rows_there("third"))
        self.cairn("ckpt", "reshard", source, "--shards", "3", "--out", self.place("cut/ckpt-00000001"), *self.single)
        self.cairn("ckpt", "diff", source, self.place("cut"))
        self.cairn("ckpt", "export", self.place("cut"), str(self.folder / "arrays.npz"), "--untouched", "keys")
        self.cairn("ckpt", "prune", back, "--keep-last", "1")
        self.verify_all(back)
        assert self.rows_named(back) == self.rows_there("back")
        said = self.cairn("ckpt", "consolidate", back, expect=2)
        assert "reshard" in said, said

    def large(self):
        """Files of several parts: imported, copied with the copy killed on the way, and exported to the same bytes."""
        file = self.folder / "large.safetensors"
        values = clean_floats(os.urandom(LARGE_ROWS * 64))
        header = json.dumps({"weights": {"dtype": "F32", "shape": [LARGE_ROWS, 16], "data_offsets": [0, len(values)]}}).encode()
        file.write_bytes(struct.pack("<Q", len(header)) + header + values)
        self.cairn("ckpt", "import", str(file), "--out", self.place("large/ckpt-00000001"), *self.single)
        self.cairn("ckpt", "copy", self.place("large"), str(self.folder / "large"))
        self.verify_all(str(self.folder / "large"))
        arguments = ["ckpt", "copy", str(self.folder / "large"), self.place("larger"), *self.single]
        for seconds in (0.05, 0.1, 0.2):
            self.killed(arguments, seconds)
        self.cairn(*arguments)
        self.cairn("ckpt", "diff", self.place("larger"), self.place("large"))
        out = self.folder / "out.safetensors"
        self.cairn("ckpt", "export", self.place("larger"), str(out))
        length, = struct.unpack("<Q", out.read_bytes()[:8])
        assert out.read_bytes()[8 + length:] == values, "other bytes came back"

    def killed(self, arguments, seconds):
        process = subprocess.Popen([CAIRN, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def leaves_nothing_unfinished(self):
        """What killed programs have left is there, and gone once the user says that nothing saves there."""
        key = f"{self.prefix}servers/rows-00000000000000aa-00000001/ps-0-shard-0/000001.sst"
        self.client.put_object(Bucket="bucket", Key=key, Body=b"of a run that was killed")
        upload = self.client.create_multipart_upload(Bucket="bucket", Key=key + ".more")["UploadId"]
        self.client.upload_part(Bucket="bucket", Key=key + ".more", UploadId=upload, PartNumber=1, Body=b"x" * 100)
        self.cairn("ckpt", "prune", self.place("servers"), "--keep-last", "1")
        assert key in self.keys(), "others might be writing it"
        said = json.loads(self.cairn("ckpt", "prune", self.place("servers"), "--unfinished", "--json"))
        assert said["uploads"] == 1 and len(said["leftovers"]) == 1 and not said["removed"], said
        assert key not in self.keys()
        assert not self.client.list_multipart_uploads(Bucket="bucket", Prefix=self.prefix + "servers").get("Uploads")
        self.verify_all(self.place("servers"))

    def run(self, conditional, is_long):
        self.go_on()
        if conditional:
            self.two_at_once()
        else:
            self.is_refused_unless_it_is_the_only_writer()
        if is_long:
            self.copies_there_and_back()
            self.leaves_nothing_unfinished()
            self.large()


def clean_floats(values):
    """No NaN and Inf: the second highest byte of each float keeps its exponent's low bit clear."""
    made = bytearray(values)
    for at in range(2, len(made), 4):
        made[at] &= 0x7f
    return bytes(made)


def main():
    wanted = [each for each in sys.argv[3:] if not each.startswith("--")] or ["moto"]
    is_long = "--long" in sys.argv
    with tempfile.TemporaryDirectory() as place, getattr(stores, wanted[0])(place) as store:
        os.environ.update(store.environment())
        suite = Suite(store, place)
        suite.client.create_bucket(Bucket="bucket")
        suite.run(store.conditional, is_long)
        print(f"{store.name}: good")
        if not is_long:
            return
        proxy = stores.CuttingProxy(store)
        os.environ["AWS_ENDPOINT_URL"] = proxy.address
        Suite(store, place, "cut/").run(store.conditional, is_long)
        proxy.close()
        cuts = ", ".join(f"{count} x after {limit} bytes {way}" for (way, limit), count in sorted(proxy.done.items()))
        print(f"{store.name} with cut connections: good; {cuts}")


main()
