"""docs/serving.md: its commands run as they are printed, and its tables are whole. The port alone is another."""

import json
import os
import pathlib
import re
import shlex
import subprocess

import numpy
import pytest
import served
import test_metrics

PAGE = (served.ROOT / "docs/serving.md").read_text(encoding="utf-8")
COMMANDS = [re.split(r"\s{3,}# ", line[4:])[0] for line in PAGE.splitlines() if re.match("    (cairn|curl) ", line)]


def table(header):
    """The cells of the table that begins so, by row."""
    rows = PAGE[PAGE.index(f"| {header} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "examples").symlink_to(served.ROOT / "examples")
    return folder


@pytest.fixture(scope="module")
def server(folder, models, visits):
    """What the page's first two commands leave: the run is trained and served, and half_plus_two and visits beside it."""
    train, serve, *_ = COMMANDS
    assert train.startswith("cairn train ") and serve.startswith("cairn serve ")
    programs = {**os.environ, "PATH": f"{os.environ['CAIRN_PROGRAMS']}:{os.environ['PATH']}"}
    subprocess.run(shlex.split(train), cwd=folder, env=programs, check=True, capture_output=True, timeout=120)
    paths = [folder / path for path in shlex.split(serve)[2:]]
    with served.Server(*paths, models / "half_plus_two", visits.model) as server:
        yield server


def curl(server, command):
    command = command.replace("http://127.0.0.1:8501", server.url).replace("curl", "curl --silent --show-error --fail --max-time 60", 1)
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=90).stdout


def test_the_third_command_is_answered(server):
    (prediction,) = json.loads(curl(server, COMMANDS[2]))["predictions"]
    assert 0 < prediction < 0.05


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("curl ")])
def test_a_request_of_the_page_is_answered(server, command):
    answer = curl(server, command)
    if "/v2/health" not in command:
        assert json.loads(answer)
    # The page shows the answers of half_plus_two, in this form or another.
    if ":predict" in command and "half" in command or ":regress" in command or ":classify" in command:
        assert answer in re.sub(r"\s+", " ", PAGE), answer


def test_the_program_of_the_page_prints_what_the_model_gives(server, capsys):
    (program,) = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
    exec(program.replace("127.0.0.1:8501", server.address), {"numpy": numpy})
    assert capsys.readouterr().out == "[2.5 3.  4.5]\n"


@pytest.mark.parametrize("command", ["cairn serve status", "cairn serve reload"])
def test_a_command_about_a_server_lists_its_versions(server, command):
    assert command in COMMANDS
    said = served.run(*shlex.split(command)[1:], "--address", server.address)
    assert re.fullmatch(r"adult +\d+ +READY *\nhalf_plus_two +123 +READY *\nvisits +\d+ +READY *\n", said), said


def test_labels_are_served_as_the_page_says(serve, tmp_path):
    (command,) = [command for command in COMMANDS if "--label" in command]
    _, _, path, *labels = shlex.split(command)
    (tmp_path / "models").mkdir()
    training = served.Training(tmp_path / path)
    for _ in range(4):
        training.save()
    server = serve(training.folder, *labels)
    about = "/v1/models/clicks/labels/{}/metadata"
    assert [server.get(about.format(label)).json()["model_spec"]["version"] for label in ("stable", "canary")] == ["1", "3"]


def test_another_address_is_served_with_a_token(server, serve, folder, tmp_path):
    (command,) = [command for command in COMMANDS if "--host" in command]
    token = tmp_path / "token"
    token.write_text("a token that is long enough\n", encoding="utf-8")
    token.chmod(0o600)
    _, _, run, *options = shlex.split(command.replace("/etc/cairn/token", str(token)))
    beyond = serve(folder / run, *options)
    assert beyond.get("/v2").status == 401
    assert served.Client(beyond).get("/v2", Authorization="Bearer a token that is long enough").status == 200


def test_a_memory_limit_is_taken_as_the_page_writes_it(serve, server, folder):
    (command,) = [command for command in COMMANDS if "--memory-limit" in command]
    _, _, _, *options = shlex.split(command)
    limited = serve(folder / "runs/adult", *options)
    assert "\ncairn_serve_memory_limit_bytes 8e+09\n" in limited.get("/metrics").body.decode()


@pytest.mark.parametrize("command", [command for command in COMMANDS if "--follow" in command])
def test_a_run_is_followed_as_the_page_writes_it(serve, server, folder, tmp_path, command):
    """The run has ended, and nobody listens at the addresses: what there is serves, and the run is waited for."""
    _, _, *options = shlex.split(command.replace("runs/adult", str(folder / "runs/adult")))
    if options[0].startswith("clicks="):
        training = served.Training(tmp_path / "clicks")
        training.save()
        options[0] = f"clicks={training.folder}"
    assert serve(*options).get("/v2/health/ready").status == 200


def test_each_status_of_the_page_is_tested_and_each_tested_one_is_on_it():
    told = [int(row[0]) for row in table("status")]
    assert told == sorted(set(told))
    tests = pathlib.Path(__file__).with_name("test_statuses.py").read_text(encoding="utf-8")
    tested = {int(status) for status in re.findall(r"def test_(\d+)_", tests)}
    assert set(told) == tested | {408, 500}  # the first in tests/serving/http; the other one is a bug


def test_each_metric_of_the_page_is_there_and_each_that_is_there_is_on_it(server):
    _, families = test_metrics.families(server)
    told = {name.strip("`").removesuffix("_total"): kind for name, kind, *_ in table("family")}
    assert told == {name: family.type for name, family in families.items()}


def test_the_options_that_the_page_names_are_those_of_the_command():
    options = set(re.findall(r"(?<![\w-])--[a-z-]+", served.run("serve", "--help")))
    named = set(re.findall(r"`(--[a-z-]+)", PAGE))
    assert named - options <= {"--data-binary"} and len(named) > 10, named - options
    assert options - named <= {"--help", "--port"}, options - named
