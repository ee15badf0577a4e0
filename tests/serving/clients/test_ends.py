"""SIGTERM: readiness goes first, requests under way end, then the process, with status 0."""

import http.client
import signal
import socket
import subprocess
import time
import urllib.request

import numpy as np
import pytest
import served

PREDICT = "/v1/models/half_plus_two:predict"
BODY = {"instances": [1.0, 2.0]}


def waits_for_others(server):
    """A request that the server has read, and that waits for others to be computed with."""
    client = served.Client(server)
    client.connection.request("POST", PREDICT, '{"instances": [1.0, 2.0]}')
    probe, ends = served.Client(server), time.monotonic() + served.PATIENCE_S
    while "cairn_serve_queue_examples 2\n" not in probe.get("/metrics").body.decode():
        assert time.monotonic() < ends, "it did not come to wait"
    return client, probe


def test_requests_under_way_end_and_readiness_goes_first(models, serve):
    server = serve(models / "half_plus_two", "--batch-wait", 4000, "--drain", 30)
    # Begun before the signal: what is written of it after that is answered still.
    begun = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    begun.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: a\r\n")
    client, probe = waits_for_others(server)
    assert probe.get("/v2/health/ready").status == 200

    server.process.send_signal(signal.SIGTERM)

    # No further connection is accepted from the moment at which it ends.
    ends = time.monotonic() + served.PATIENCE_S
    while True:
        assert time.monotonic() < ends, "it accepts connections still"
        try:
            socket.create_connection(("127.0.0.1", server.port), timeout=60).close()
        except ConnectionRefusedError:
            break
    begun.sendall(b"\r\n")
    answer = http.client.HTTPResponse(begun)
    answer.begin()
    assert answer.status == 503 and b"false" in answer.read()
    assert answer.getheader("Connection") == "close"
    answer = served.Answer(client.connection.getresponse())
    assert answer.status == 200 and answer.json() == {"predictions": [2.5, 3.0]}
    assert answer.headers["Connection"] == "close"
    assert server.ended() == 0


def test_requests_that_take_longer_than_the_drain_are_given_up(models, serve):
    server = serve(models / "half_plus_two", "--batch-wait", 50_000, "--deadline", 50, "--drain", 0.1)
    client, _ = waits_for_others(server)
    began = time.monotonic()
    assert server.end() == 0
    assert time.monotonic() - began < 40
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        client.connection.getresponse()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_an_idle_server_ends_at_once(models, serve, name):
    server = serve(models / "half_plus_two", "--drain", 50)
    assert server.post(PREDICT, BODY).status == 200  # and keeps its connection open
    began = time.monotonic()
    server.process.send_signal(getattr(signal, name))
    assert server.ended() == 0
    assert time.monotonic() - began < 25
    assert "requests under way have" in server.log


def test_a_port_that_is_taken_is_named(models, serve):
    server = serve(models / "half_plus_two")
    said = served.run("serve", models / "half_plus_two", "--port", server.port, status=1)
    assert str(server.port) in said and "in use" in said


def listens_at_v6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not listens_at_v6(), reason="this machine has no loopback of IPv6")
def test_the_address_that_is_printed_can_be_asked(models, serve):
    server = serve(models / "half_plus_two", "--host", "::1")
    with urllib.request.urlopen(f"{server.url}/v2/health/ready", timeout=60) as answer:
        assert answer.status == 200


def test_a_signal_while_models_are_loaded_is_not_kept_waiting(tmp_path):
    served.save_films(tmp_path / "films", 1)
    films = np.random.default_rng(1).normal(size=(200_000, served.FILM_WIDTH)).astype("float32")
    np.savez(tmp_path / "films/candidates.npz", ids=np.arange(len(films)), film=films)
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", served.CAIRN, "serve", tmp_path / "films", "--index", "hnsw", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert any("loading version" in line for line in process.stdout)
    began = time.monotonic()
    process.terminate()
    said = process.stdout.read()
    assert process.wait(served.PATIENCE_S) == 0
    # The index would take minutes.
    assert "still being loaded" in said and time.monotonic() - began < 30, said


def test_a_full_disk_costs_lines_of_the_access_log_and_no_answer(models, serve):
    server = serve(models / "half_plus_two", "--access-log", "/dev/full")
    for _ in range(5):
        assert server.post(PREDICT, BODY).json() == {"predictions": [2.5, 3.0]}
    assert server.end() == 0
    assert server.log.count("the access log /dev/full cannot be written: No space left on device") == 1
