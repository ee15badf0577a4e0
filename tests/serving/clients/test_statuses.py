"""Every status of docs/serving.md, with what it says and which header comes with it.

408 takes ten seconds, and is looked at in tests/serving/http/http_limits_test.cc.
"""

import json
import re
import socket

import pytest
import served

PREDICT = "/v1/models/half_plus_two:predict"
BODY = {"instances": [1.0, 2.0]}


@pytest.fixture(scope="module")
def server(models):
    with served.Server(models / "half_plus_two", "--max-body", 0.01) as server:
        yield server


def sent(server, text):
    """The status and the error that bytes are answered with on a connection of their own."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(text.encode())
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while more := connection.recv(65536):
            answer += more
    head, body = answer.decode().split("\r\n\r\n", 1)
    return int(head.split()[1]), head, json.loads(body)["error"]


# A body of ":predict", and what is said of it.
WRONG_BODIES = [
    ("", "the body is empty"),
    ("[1.0]", "a list, and an object is wanted"),
    ('{"instances": [1.0', "ends at byte 18 .line 1, column 19."),
    ('{"instances": [1.0, "two"]}', '"x"'),
    ('{"instances": [1.0, [2.0]]}', '"x"'),
    ('{"instances": [{"y": 1.0}]}', 'did you mean "x"|"x"'),
    ('{"instances": [{"x": 1.0}, {}]}', '"x"'),
    ('{"instances": [NaN]}', "NaN"),
    ('{"instances": [1e39]}', "1e39"),
    ('{"instances": []}', "no examples"),
    ('{"instances": [1.0], "inputs": [1.0]}', "inputs"),
    ('{"instances": [1.0]} {}', "column 22"),
    ('{"instance": [1.0]}', '"instances"'),
    ("{" * 2000, "column 2"),
    ('{"instances": ' + "[" * 4000, ""),
    ("\xff", ""),
]


@pytest.mark.parametrize(("body", "said"), WRONG_BODIES)
def test_400_a_body_that_is_not_of_the_form(server, body, said):
    answer = server.post(PREDICT, body.encode("latin-1"))
    assert answer.status == 400 and re.search(said, answer.error), answer.error
    assert server.post(PREDICT, BODY).json() == {"predictions": [2.5, 3.0]}


def test_400_a_request_that_is_not_http(server):
    assert sent(server, "hello\r\n\r\n")[0] == 400
    assert sent(server, "GET /metrics HTTP/1.1\r\n\r\n")[0] == 400  # no Host
    assert sent(server, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")[0] == 400


def test_401_a_token_that_lacks_or_is_another(models, serve, tmp_path):
    token = tmp_path / "token"
    token.write_text("a token that is long enough\n", encoding="utf-8")
    token.chmod(0o600)
    server = serve(models / "half_plus_two", "--token-file", token)
    for headers in ({}, {"Authorization": "Bearer a token that is long enougH"}, {"Authorization": "Basic YTpi"}):
        client = served.Client(server)
        answer = client.post(PREDICT, BODY, **headers)
        assert answer.status == 401 and answer.headers["WWW-Authenticate"] == "Bearer" and "token" in answer.error
        client.close()
    answer = server.post(PREDICT, BODY, Authorization="Bearer a token that is long enough")
    assert answer.json() == {"predictions": [2.5, 3.0]}
    said = served.run("serve", "status", "--address", server.address, "--token-file", token)
    assert said.split() == ["half_plus_two", "123", "READY"]
    served.run("serve", "status", "--address", server.address, status=1)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("/", ""),
        ("/v3/models/half_plus_two", '"v3" is not known'),
        ("/v1/models/half_plus_two/version/1", 'did you mean "versions"'),
        ("/v1/models/half_plus_tow", 'did you mean "half_plus_two"'),
        ("/v1/models/half_plus_two/versions/7", "version 7 .* does not serve; those that do: 123"),
        ("/v1/models/half_plus_two/labels/stable/metadata", 'no label "stable"'),
        ("/v2/models/nothing/ready", 'no model "nothing"'),
    ],
)
def test_404_what_is_not_there(server, target, said):
    answer = server.get(target)
    assert answer.status == 404 and re.search(said, answer.error), answer.error


def test_404_a_verb_that_is_not_there(server):
    answer = server.post("/v1/models/half_plus_two:predic", BODY)
    assert answer.status == 404 and 'did you mean "predict"' in answer.error


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [
        ("GET", PREDICT, "POST"),
        ("PUT", PREDICT, "POST"),
        ("DELETE", "/v1/models/half_plus_two", "GET, HEAD"),
        ("POST", "/metrics", "GET, HEAD"),
        ("POST", "/v2/health/ready", "GET, HEAD"),
        ("GET", "/v2/repository/index", "POST"),
        ("GET", "/v2/repository/reload", "POST"),
    ],
)
def test_405_a_method_that_a_path_does_not_take(server, method, target, allowed):
    answer = server.client.ask(method, target, "" if method == "PUT" else None)
    assert answer.status == 405 and answer.headers["Allow"] == allowed and method in answer.error


def test_411_a_body_without_a_length(server):
    status, _, error = sent(server, f"POST {PREDICT} HTTP/1.1\r\nHost: a\r\n\r\n")
    assert status == 411 and "Content-Length" in error


def test_400_raw_rows_for_a_model_without_examples(server):
    answer = server.post(PREDICT + "?raw", "1.0\n", Content_Type="text/csv")
    assert answer.status == 400 and "examples" in answer.error


def test_413_a_body_that_is_too_large_before_it_is_sent(server):
    status, head, error = sent(server, f"POST {PREDICT} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000\r\n\r\n")
    assert status == 413 and "1000000000000" in error and "Connection: close" in head


def test_415_a_body_that_is_compressed(server):
    answer = server.post(PREDICT, b"\x1f\x8b", Content_Encoding="gzip")
    assert answer.status == 415 and '"gzip"' in answer.error and answer.headers["Accept-Encoding"] == "identity"
    assert server.post(PREDICT, BODY, Content_Encoding="identity").status == 200


def test_417_an_expectation_that_is_unknown(server):
    text = f"POST {PREDICT} HTTP/1.1\r\nHost: a\r\nExpect: a miracle\r\nContent-Length: 2\r\n\r\n{{}}"
    assert sent(server, text)[0] == 417


def test_429_more_examples_than_may_wait(models, serve):
    server = serve(models / "half_plus_two", "--queue", 4, "--batch-wait", 1000)

    def asks(_):
        client = served.Client(server)
        answer = client.post(PREDICT, {"instances": [1.0, 2.0, 5.0]})
        client.close()
        return answer

    answers = served.at_once(8, asks)
    refused = [answer for answer in answers if answer.status != 200]
    assert len(refused) in range(1, 8)
    for answer in refused:
        assert answer.status == 429 and int(answer.headers["Retry-After"]) >= 1 and "wait" in answer.error
    assert all(answer.json() == {"predictions": [2.5, 3.0, 4.5]} for answer in answers if answer.status == 200)
    # They are counted, and the next one is answered.
    page = server.get("/metrics").body.decode()
    assert f'cairn_serve_requests_total{{model="half_plus_two",code="429"}} {len(refused)}\n' in page
    assert server.post(PREDICT, BODY).status == 200


def test_431_a_header_that_is_too_large(server):
    assert sent(server, f"GET /metrics HTTP/1.1\r\nHost: a\r\nX: {'x' * 20000}\r\n\r\n")[0] == 431


def test_501_what_this_server_does_not_do(server):
    text = f"POST {PREDICT} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
    assert sent(server, text)[0] == 501


def test_503_nothing_serves_yet(serve, tmp_path):
    (tmp_path / "half_plus_two").mkdir()
    server = serve(tmp_path / "half_plus_two")
    assert server.post(PREDICT, BODY).status == 503
    assert server.get("/v2/health/ready").status == 503
    assert server.get("/v2/models/half_plus_two/ready").status == 503


def test_504_a_request_that_took_longer_than_its_deadline(models, serve):
    server = serve(models / "half_plus_two", "--deadline", 0.01, "--batch-wait", 5000)
    answer = server.post(PREDICT, BODY)
    assert answer.status == 504 and "deadline" in answer.error


def test_each_error_is_json_and_is_logged_on_demand(models, serve, tmp_path):
    log = tmp_path / "access.log"
    server = serve(models / "half_plus_two", "--access-log", log)
    answer = server.get("/nowhere")
    assert answer.headers["Content-Type"] == "application/json" and list(answer.json()) == ["error"]
    server.post(PREDICT, BODY)
    assert server.end() == 0
    lines = log.read_text().splitlines()
    assert len(lines) == 2
    assert re.fullmatch(r'127\.0\.0\.1 "GET /nowhere" 404 0 \d+ \d+ us', lines[0])
    assert re.fullmatch(rf'127\.0\.0\.1 "POST {PREDICT}" 200 {len(json.dumps(BODY))} 27 \d+ us', lines[1])
