"""Takes every command that README.md, CONTRIBUTING.md and docs/ print: commands.py ROOT BIN FOLDER

A command is a line of an indented block that begins with a program of ours, with cmake or with a variable of the
environment. HOW says of each what runs it: this script, in one of the scenes below; a test; or .ci/run. A command that
is printed and not listed, or listed and not printed any more, fails the check, and so does one that ends with an error.
ROOT: the sources. BIN: the programs. FOLDER: is emptied, and holds what the commands read and write.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

ROOT, BIN, FOLDER = (os.path.abspath(path) for path in sys.argv[1:4])
COMMAND = re.compile(r"(cairn|tools/|cmake |build/|\./|[A-Z_]+=|export |tar |ctest)")
PATIENCE_S = 100

# Scenes: here, with the files and runs that HERE makes; live, while a training runs; cluster, of processes by hand.
HOW = {
    "tools/quickstart": ".ci/run",
    "tools/quickstart --kill worker:1@40% --kill ps:0@60% --report report.json": ".ci/run",
    "tools/test": ".ci/run",
    "tools/test -R ShardPush": "tools/test, by which .ci/run runs the suite",
    "tools/test --long": "its parts by hand: more of what .ci/run runs, and ThreadSanitizer",
    "tools/simulate --matrix --cell ps-dies/catching-up": "by hand; a seed of each cell: Matrix.EveryCellKeepsItsPromiseAndFaultsMeetTheirPhases",
    "tools/simulate --matrix --cell ps-dies/catching-up/bounded --seed 7": "by hand, the same",
    "tools/bare-check": "by hand: it needs a bare Debian of its own",
    "tools/bare-check --user --minutes 40 -- tools/test": "by hand, the same",
    "cmake --build build/dev --target wide_deep cairn cairn-ps cairn-worker": ".ci/run",
    "build/dev/bin/cairn up --ps 2 --workers 2 -- build/dev/bin/wide_deep examples/data/adult":
        "MainJob.TheExampleProgramDoesTheSameUnderCairnUp",
    "cairn up --ps 2 --workers 2 -- python examples/wide_deep.py examples/data/adult":
        "python/tests/test_examples.py, synchronously",
    "cmake --preset release && cmake --build build/release && cmake --install build/release --prefix /opt/cairn":
        ".ci/run: tools/compile-alone compiles files with its flags; Install.IsWholeAfterItsFolderWasMoved",
    "tools/wheel --sdist": "python/tests/test_wheel.py packs that of the dev preset; of the release preset, and --sdist, by hand",
    "tools/bundle": "Install.ABundleHasItsOwnLibrariesAndRunsWhereItWasMovedTo",
    "tar -xf cairn-bundle.tar.xz && cairn-*/bin/cairn train cairn-*/share/examples/adult.toml":
        "Install.ABundleHasItsOwnLibrariesAndRunsWhereItWasMovedTo",
    "cairn ckpt watch RUN": "CkptTest.WatchPrintsWhatIsCommittedFromThenOnAndEndsWithOneIfTooFewCame",
    "./main mirrored": "Readme.TheSameLinesLearnTheSameUnderEveryStrategy",
    "./main central_storage": "Readme.TheSameLinesLearnTheSameUnderEveryStrategy",
    "cairn up --workers 2 -- ./main multi_worker_mirrored": "Readme.TheSameLinesLearnTheSameUnderEveryStrategy",
    "cairn up --ps 2 --workers 1 -- ./main parameter_server": "Readme.TheSameLinesLearnTheSameUnderEveryStrategy",
    "cairn up --ps 1 --workers 1 -- ./main": "Readme.TheProgramRunsAsPrinted",
    "cairn up --ps 2 --workers 2": "UpTest.WithoutAProgramItServesUntilItIsTold",
    "export AWS_ENDPOINT_URL=https://storage.example AWS_REGION=eu-central-1": "Moto.HoldsTheCheckpointsOfTrainings",
    "export AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=...": "Moto.HoldsTheCheckpointsOfTrainings",
    "cairn train JOB.toml --checkpoints s3://BUCKET/PREFIX": "Moto.HoldsTheCheckpointsOfTrainings",
    "cairn train JOB.toml --resume s3://BUCKET/PREFIX --epochs 10": "Moto.HoldsTheCheckpointsOfTrainings",
    "cairn ckpt ls s3://BUCKET/PREFIX": "Moto.HoldsTheCheckpointsOfTrainings",
    "cairn train job.toml --resume latest --restore-on-demand":
        "RestoreOnDemand.TenStepsAfterItEndInTheSameBitsAsAfterAWholeRestore; JobStrategy.FlagsAreNamedAsTheFlagsThatTheyWere",
    "cairn ckpt copy s3://BUCKET/PREFIX FOLDER": "CkptBucket.CopyThereAndBackKeepsTheRowsAndWhatDeltasShare",
    "cairn ckpt reshard s3://BUCKET/PREFIX --shards 4 --out s3://BUCKET/OTHER/ckpt-00000001":
        "CkptBucket.ReshardAndImportWriteThereAndExportReadsIt",
    "cairn ckpt import weights.safetensors --out s3://BUCKET/IMPORTED":
        "CkptBucket.ReshardAndImportWriteThereAndExportReadsIt",
    "cairn ckpt prune s3://BUCKET/PREFIX --keep-last 3":
        "CkptBucket.PruneRemovesRowsThatNoOtherNamesAndKeepsWhatARunMayNeed",
    "cairn model export RUN/model --out clicks.onnx": "Onnx.PredictsAsTheModelDoes",
    "cairn model candidates RUN/model --data films.csv --out films.npz": "Hnswlib.FindsTheCandidatesOfARetrieval",
    **dict.fromkeys([
        "cairn train examples/adult.toml --dir runs/adult",
        "cairn serve runs/adult",
        "cairn serve runs/visits",
        "cairn serve RUN",
        "cairn serve runs/adult --host 0.0.0.0 --token-file /etc/cairn/token",
        "cairn serve models/clicks --label stable=1 --label canary=3",
        "cairn serve runs/dlrm --memory-limit 8GB",
        "cairn serve --follow runs/adult",
        "cairn serve clicks=models/clicks --follow clicks=10.0.0.1:4000,10.0.0.2:4000 --cluster-id clicks",
        "cairn serve --follow runs/adult --from-ps",
        "cairn serve status",
        "cairn serve reload",
    ], "tests/serving/clients/test_page.py"),
    "TF_CONFIG='{\"cluster\": {...}, \"task\": {\"type\": \"ps\", \"index\": 0}}' cairn-ps": "the scene cluster below",
    "TF_CONFIG='{\"cluster\": {...}, \"task\": {\"type\": \"worker\", \"index\": 0}}' cairn-worker": "the scene cluster below",
    "TF_CONFIG='{\"cluster\": {...}, \"task\": {\"type\": \"chief\", \"index\": 0}}' cairn-coordinator JOB.toml":
        "the scene cluster below",
}
HERE = """
cairn ckpt ls RUN
cairn ckpt show RUN
cairn ckpt verify RUN
cairn ckpt get RUN VARIABLE 1 2
cairn ckpt stats RUN
cairn ckpt stats RUN --histogram
cairn ckpt diff RUN OTHER
cairn ckpt prune RUN --keep-last 3 --keep-every 10 --dry-run
cairn ckpt copy RUN FOLDER
cairn ckpt reshard RUN --shards 4 --out DIR4
cairn ckpt merge RUN --out DIR1
cairn ckpt consolidate FOLDER
cairn ckpt repair RUN --out SOUND
cairn ckpt export RUN weights.safetensors --untouched zeros
cairn ckpt export RUN weights.npz --untouched keys --no-slots
cairn ckpt import weights.safetensors --out IMPORTED
cairn train JOB.toml --resume RUN --epochs 10 --ps 3
cairn train JOB.toml --resume RUN --new-data --epochs 1
cairn train JOB.toml --warm-start RUN
cairn predict RUN/model --data new.csv --out predictions.csv
cairn predict RUN/model --data a.csv b.csv.gz --out - --batch 512
cairn evaluate RUN/model --data labelled.csv
cairn evaluate RUN/model --data labelled.csv --calibrate platt
cairn evaluate RUN --data labelled.csv --calibrate isotonic
cairn evaluate RUN --data labelled.csv --calibrate none
cairn model show RUN/model
cairn model verify RUN/model
cairn train JOB.toml
cairn train JOB.toml --data-workers 4
cairn up --ps 2 --workers 2 -- ./program args
cairn up --workers 4 -- ./program args
cairn up --ps 2 --workers 2 --data-workers 4 -- ./program
cairn devices
cairn plot runs/20261126-110902-26059 runs/20261126-111540-26311 --out plot.html
cairn train JOB.toml --resume DIR
cairn train JOB.toml --resume DIR --new-data
cairn train JOB.toml --resume DIR --partial --new-data
cairn train JOB.toml --checkpoints /home/me/clicks --local-checkpoints /data/cairn
cairn train JOB.toml --resume /home/me/clicks --epochs 10
cairn ckpt copy /home/me/clicks GATHERED --database-folder ps:0=/mnt/a --database-folder ps:1=/mnt/b
cairn train JOB.toml --resume GATHERED --ps 5
""".strip().split("\n")
LIVE = """
cairn status
cairn status runs/20261121-1109... --json
cairn ckpt save
cairn ckpt save runs/20261121-1109...
cairn ckpt save [RUN]
cairn stop [RUN]
""".strip().split("\n")
CLUSTER = """
cairn-data --role dispatcher --listen a:5050 --journal /var/lib/cairn/jobs --token-file /etc/cairn/token
cairn-data --role worker --index 0 --listen b:5051 --dispatcher a:5050 --token-file /etc/cairn/token --threads 4
cairn-ps --index 0 --listen b:4000 --token-file /etc/cairn/token --shards 4
cairn-worker --index 0 --listen d:4000 --token-file /etc/cairn/token --lanes 4
cairn-coordinator JOB.toml --token-file /etc/cairn/token --checkpoints /shared/run1
cairn status --address a:4000 --token-file /etc/cairn/token [--cluster-id ID]
cairn stop --address a:4000 --token-file /etc/cairn/token [--cluster-id ID]
cairn-coordinator JOB.toml --token-file /etc/cairn/token --checkpoints /shared/run3 --journal /shared/run3/journal
cairn-coordinator JOB.toml --token-file /etc/cairn/token --checkpoints /shared/run3 --journal /shared/run3/journal --standby
cairn-coordinator JOB.toml --checkpoints /shared/run2 --take-over
export CAIRN_TOKEN_FILE=/etc/cairn/token
CLUSTER='"cluster": {"chief": ["a:4000"], "ps": ["b:4000", "c:4000"], "worker": ["d:4000", "e:4000"]}'
TF_CONFIG="{$CLUSTER, \\"task\\": {\\"type\\": \\"ps\\", \\"index\\": 0}}" cairn-ps --shards 4
TF_CONFIG="{$CLUSTER, \\"task\\": {\\"type\\": \\"worker\\", \\"index\\": 0}}" cairn-worker --lanes 4
TF_CONFIG="{$CLUSTER, \\"task\\": {\\"type\\": \\"chief\\", \\"index\\": 0}}" cairn-coordinator JOB.toml --checkpoints /shared/run1
""".strip().split("\n")
# Three machines with replicas and a coordinator that stands by.
REPLICATED = """
cairn-ps --index 0 --listen a:4000 --token-file /etc/cairn/token --shards 4
cairn-worker --index 0 --listen a:4001 --token-file /etc/cairn/token --lanes 4
cairn-ps --index 1 --listen b:4000 --token-file /etc/cairn/token --shards 4
cairn-worker --index 1 --listen b:4001 --token-file /etc/cairn/token --lanes 4
cairn-ps --index 2 --listen c:4000 --token-file /etc/cairn/token --shards 4
cairn-worker --index 2 --listen c:4001 --token-file /etc/cairn/token --lanes 4
export TF_CONFIG='{"cluster": {"chief": ["a:4002"], "ps": ["a:4000", "b:4000", "c:4000"], "worker": ["a:4001", "b:4001", "c:4001"]}}'
cairn-coordinator JOB.toml --token-file /etc/cairn/token --checkpoints /shared/run4 --journal /shared/run4/journal --replicas 2
export TF_CONFIG='{"cluster": {"chief": ["b:4002"], "ps": ["a:4000", "b:4000", "c:4000"], "worker": ["a:4001", "b:4001", "c:4001"]}}'
cairn-coordinator JOB.toml --token-file /etc/cairn/token --checkpoints /shared/run4 --journal /shared/run4/journal --replicas 2 --standby
cairn status --address a:4002 --token-file /etc/cairn/token
""".strip().split("\n")

JOB = """
name = "commands"
[data]
train = "train.csv"
test = "train.csv"
batch = 100
epochs = EPOCHS
[data.csv]
columns = ["label:float32", "age:float32", "city"]
label = {column = "label"}
[features]
numeric = ["age"]
vocabulary = ["city"]
[model]
kind = "wide"
[cluster]
ps = 1
workers = 1
"""


def printed():
    """Each command that a page prints, with the first place of it."""
    found = {}
    for page in ["README.md", "CONTRIBUTING.md"] + sorted(glob.glob("docs/*.md", root_dir=ROOT)):
        fenced = False
        with open(os.path.join(ROOT, page), encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.startswith("```"):
                    fenced = not fenced
                if fenced or not line.startswith("    ") or not COMMAND.match(line[4:]):
                    continue
                # An explanation follows behind # or, in a table of commands, behind several spaces.
                command = re.split(r"\s+# |\s{3,}(?!\s|cairn-)", line[4:].rstrip())[0]
                found.setdefault(re.sub(r"\s+(?=cairn)", " ", command), f"{page}:{number}")
    return found


def place(name):
    return os.path.join(FOLDER, name)


def write(name, text):
    with open(place(name), "w", encoding="utf-8") as file:
        file.write(text)


def shell(command, **options):
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "CAIRN_TOKEN": "", **options.pop("environment", {})}
    if not environment["CAIRN_TOKEN"]:
        del environment["CAIRN_TOKEN"]
    return subprocess.Popen(["bash", "-c", command], cwd=FOLDER, env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def ends_well(command, as_printed, **options):
    process = shell(command, **options)
    output, _ = process.communicate(timeout=PATIENCE_S)
    if process.returncode != 0:
        sys.exit(f"{as_printed}\nran as\n{command}\nand ended with {process.returncode}:\n{output}")
    print(f"ok: {as_printed}", flush=True)


def filled_in(command):
    """The command with the names of this folder for those of the page."""
    for old, new in [("runs/20261126-110902-26059 runs/20261126-111540-26311", "runs/first runs/second"),
                     ("runs/20261121-1109...", "runs/third"), ("[RUN]", "runs/third"), ("[--cluster-id ID]", ""),
                     ("/etc/cairn/token", "token"), ("/var/lib/cairn/jobs", "jobs"), ("/shared/", "shared/"),
                     ("VARIABLE", "wide"), ("OTHER", "runs/first"), ("FOLDER", "copied"), ("SOUND", "sound"),
                     ("DIR4", "four"), ("DIR1", "one"), ("IMPORTED", "imported"),
                     ("RUN", "runs/first"), ("DIR", "runs/first"), ("GATHERED", "gathered"),
                     ("/home/me/clicks", "clicks"), ("/data/cairn", place("local")),
                     ("/mnt/a", place("local/ps-0")), ("/mnt/b", place("local/ps-1"))]:
        command = command.replace(old, new)
    # Tasks of this machine have sockets in the folder for ports of machines that are not there.
    return re.sub(r"\b([a-e]):([45]0\d\d)", lambda found: f"unix:{place(found[1] + found[2])}", command)


def make_files():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(place("shared"))
    rows = "".join(f"{i % 2},{20 + i % 7 + 10 * (i % 2)},{'abcd'[i % 4]}\n" for i in range(1000))
    for name in ["train.csv", "labelled.csv", "a.csv", "b.csv", "new.csv"]:
        write(name, rows)
    subprocess.run(["gzip", place("b.csv")], check=True)
    write("JOB.toml", JOB.replace("EPOCHS", "3"))
    write("LIVE.toml", JOB.replace("EPOCHS", "1000000"))
    write("token", "a token that is long enough\n")
    os.chmod(place("token"), 0o600)
    write("program", "#!/bin/sh\ntest -n \"$TF_CONFIG\"\n")
    os.chmod(place("program"), 0o755)
    for run in ["first", "second"]:
        ends_well(f"cairn train JOB.toml --dir runs/{run}", "(the runs that commands read)")


class Running:
    """A process that serves while a scene lasts. Its first line that holds `ready` is waited for."""

    def __init__(self, command, ready, **options):
        # Ends with this script, however that ends.
        self.process = shell("exec setpriv --pdeathsig TERM " + command, **options)
        self.command = command
        for line in self.process.stdout:
            if ready in line:
                return
        sys.exit(f"{command}\nended with {self.process.wait()} before it said {ready!r}")

    def end(self):
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)

    def ends_by_itself(self):
        output, _ = self.process.communicate(timeout=PATIENCE_S)
        if self.process.returncode != 0:
            sys.exit(f"{self.command}\nended with {self.process.returncode}:\n{output}")


def scene_here():
    for command in HERE:
        ends_well(filled_in(command), command)


def scene_live():
    training = Running("cairn train LIVE.toml --dir runs/third", "step ")
    for command in LIVE:
        ends_well(filled_in(command), command)
    training.ends_by_itself()


def scene_cluster():
    """The commands of docs/running.md; README's differ in how they name the task and its token."""
    addresses = {role: ["unix:" + place(name)] for role, name in [("chief", "a4000"), ("ps", "b4000"), ("worker", "d4000")]}
    config = json.dumps({"cluster": addresses, "task": {"type": "chief", "index": 0}})
    environment = {"TF_CONFIG": config, "CAIRN_TOKEN_FILE": place("token")}
    servers = [Running(filled_in(command), "listening", environment={"TF_CONFIG": ""}) for command in CLUSTER[:4]]
    coordinator = Running(filled_in(CLUSTER[4]).replace("JOB", "LIVE"), "step ", environment=environment)
    ends_well(filled_in(CLUSTER[5]), CLUSTER[5])
    ends_well(filled_in(CLUSTER[6]), CLUSTER[6])
    coordinator.ends_by_itself()
    ends_well(filled_in(CLUSTER[7]), CLUSTER[7], environment=environment)
    for server in servers:
        server.end()


def scene_replicated():
    """Three machines: the coordinator that stands by has nothing left to train, as the first one has ended."""
    config, coordinator, other, standby, status = REPLICATED[6:]
    servers = [Running(filled_in(command), "listening", environment={"TF_CONFIG": ""}) for command in REPLICATED[:6]]
    at = [{"TF_CONFIG": filled_in(line).split("'")[1]} for line in (config, other)]
    ends_well(filled_in(coordinator), coordinator, environment=at[0])
    ends_well(filled_in(standby), standby, environment=at[1])
    live = Running(filled_in(coordinator).replace("JOB", "LIVE").replace("run4", "run5"), "step ", environment=at[0])
    ends_well(filled_in(status), status)
    ends_well(filled_in(CLUSTER[6]).replace("a4000", "a4002"), "(the run is stopped)")
    live.ends_by_itself()
    for server in servers:
        server.end()


def main():
    commands, listed = printed(), {*HOW, *HERE, *LIVE, *CLUSTER, *REPLICATED}
    wrong = [f"{commands[c]}: nothing runs this command: {c}" for c in commands if c not in listed]
    wrong += [f"no page prints this command any more: {c}" for c in listed if c not in commands]
    if wrong:
        sys.exit("\n".join(wrong) + "\ntests/readme/commands.py lists what runs each command")
    make_files()
    scene_here()
    scene_live()
    scene_cluster()
    scene_replicated()


main()
