"""/metrics by Prometheus's own readers; its counts are those of the requests that were made."""

import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import served
from prometheus_client.parser import text_string_to_metric_families


def families(server):
    answer = server.get("/metrics")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = answer.body.decode()
    return text, {family.name: family for family in text_string_to_metric_families(text)}


def value(families, family, name=None, **labels):
    found = [each.value for each in families[family].samples if each.name == (name or family) and each.labels == labels]
    assert len(found) == 1, (family, name, labels, families[family].samples)
    return found[0]


@pytest.fixture
def server(models, adult, serve):
    return serve(models / "half_plus_two", adult.run)


def ask_for_some(server, adult):
    for count in (1, 3, 7):
        assert server.post("/v1/models/half_plus_two:predict", {"instances": [1.0] * count}).status == 200
    assert server.post("/v1/models/half_plus_two:predict", {"instances": ["one"]}).status == 400
    assert server.post("/v1/models/half_plus_two/versions/9:predict", {"instances": [1.0]}).status == 404
    assert server.post("/v1/models/adult:predict?raw", adult.csv(range(20))).status == 200


def test_counts_are_those_of_the_requests(server, adult):
    _, before = families(server)
    assert value(before, "cairn_serve_requests", "cairn_serve_requests_total", model="adult", code="200") == 0
    ask_for_some(server, adult)
    _, now = families(server)
    total = "cairn_serve_requests_total"
    assert value(now, "cairn_serve_requests", total, model="half_plus_two", code="200") == 3
    assert value(now, "cairn_serve_requests", total, model="half_plus_two", code="400") == 1
    assert value(now, "cairn_serve_requests", total, model="half_plus_two", code="404") == 1
    assert value(now, "cairn_serve_requests", total, model="adult", code="200") == 1
    assert value(now, "cairn_serve_examples", "cairn_serve_examples_total", model="half_plus_two") == 11
    assert value(now, "cairn_serve_examples", "cairn_serve_examples_total", model="adult") == 20
    # One request after another, so that each is a batch of its own.
    batch = "cairn_serve_batch_examples"
    assert value(now, batch, f"{batch}_count", model="half_plus_two") == 3
    assert value(now, batch, f"{batch}_sum", model="half_plus_two") == 11
    assert value(now, batch, f"{batch}_sum", model="adult") == 20
    took = "cairn_serve_request_duration_seconds"
    assert value(now, took, f"{took}_count", model="half_plus_two") == 5
    assert 0 < value(now, took, f"{took}_sum", model="half_plus_two") < 60


def test_gauges_say_what_serves(server, adult):
    _, now = families(server)
    assert value(now, "cairn_serve_ready") == 1
    assert value(now, "cairn_serve_queue_examples") == 0
    assert value(now, "cairn_serve_connections") == 1
    assert value(now, "cairn_serve_model_version", model="half_plus_two") == 123
    assert value(now, "cairn_serve_refused_versions", model="adult") == 0
    step = server.post("/v1/models/adult:predict?raw", adult.csv([0])).step
    assert value(now, "cairn_serve_model_step", model="adult") == step > 0
    assert value(now, "cairn_serve_model_bytes", model="adult", version=str(step)) >= 4 * 10_000
    assert value(now, "process_resident_memory_bytes") > 1 << 20


def test_buckets_ascend_to_the_count(server, adult):
    ask_for_some(server, adult)
    _, now = families(server)
    for family in ("cairn_serve_batch_examples", "cairn_serve_request_duration_seconds"):
        assert now[family].type == "histogram"
        for model in ("adult", "half_plus_two"):
            buckets = [s for s in now[family].samples if s.name == f"{family}_bucket" and s.labels["model"] == model]
            assert np.all(np.diff([float(each.labels["le"]) for each in buckets]) > 0)
            assert np.all(np.diff([each.value for each in buckets]) >= 0)
            assert buckets[-1].labels["le"] == "+Inf"
            assert buckets[-1].value == value(now, family, f"{family}_count", model=model)


def test_each_family_has_a_type_and_a_help_text(server):
    _, now = families(server)
    assert len(now) >= 12
    for name, family in now.items():
        assert family.type in ("counter", "gauge", "histogram"), name
        assert family.documentation.endswith("."), name


def test_requests_that_reach_no_model_are_counted_apart(server):
    client = served.Client(server)
    assert client.ask("POST", "/v1/models/half_plus_two:predict", "{}", Content_Length=str(1 << 40)).status == 413
    client.close()
    _, now = families(server)
    assert value(now, "cairn_serve_unread_requests", "cairn_serve_unread_requests_total") == 1


def test_names_of_models_are_escaped_in_labels(models, serve):
    server = serve(f'a "b" \\c={models / "half_plus_two"}')
    _, now = families(server)
    assert value(now, "cairn_serve_model_version", model='a "b" \\c') == 123


def promtool():
    """Of Debian's package prometheus: where tools/test put it, or on the path."""
    kept = pathlib.Path(served.ROOT / "build/promtool/promtool")
    return str(kept) if kept.exists() else shutil.which("promtool")


@pytest.mark.skipif(promtool() is None, reason="there is no promtool: tools/test fetches it from Debian's package prometheus")
def test_promtool_finds_nothing_to_say(server, adult):
    ask_for_some(server, adult)
    text, _ = families(server)
    done = subprocess.run(
        [promtool(), "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
