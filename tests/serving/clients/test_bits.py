"""Predictions have the bits of `cairn predict`, in every form and in whatever batches."""

import json

import numpy as np
import pytest
import served

ROWS = served.Adult.ROWS


@pytest.fixture(scope="module")
def server(adult):
    with served.Server(adult.run, "--threads", 2) as server:
        yield server


def listed(column):
    """Floats by the digits that read back as the same."""
    return json.loads("[" + ",".join(map(str, column.ravel())) + "]") if column.ndim == 1 else [listed(row) for row in column]


def instances(adult, rows):
    columns = {name: listed(adult.columns[name][rows]) for name in adult.names}
    return [{name: columns[name][i] for name in adult.names} for i in range(len(rows))]


def in_rows(client, adult, rows):
    answer = client.post("/v1/models/adult:predict", {"instances": instances(adult, rows)})
    return answer.json()["predictions"]


def in_columns(client, adult, rows):
    columns = {name: listed(adult.columns[name][rows]) for name in adult.names}
    return client.post("/v1/models/adult:predict", {"inputs": columns}).json()["outputs"]


def raw_csv(client, adult, rows):
    answer = client.post("/v1/models/adult:predict?raw", adult.csv(rows), Content_Type="text/csv")
    return answer.json()["predictions"]


def raw_objects(client, adult, rows):
    answer = client.post("/v1/models/adult:predict?raw", adult.objects(rows), Content_Type="application/json")
    return answer.json()["predictions"]


def raw_json_lines(client, adult, rows):
    lines = "".join(json.dumps(each) + "\n" for each in adult.objects(rows))
    answer = client.post("/v1/models/adult:predict?raw", lines, Content_Type="application/x-ndjson")
    return answer.json()["predictions"]


DATATYPES = {"float32": "FP32", "int64": "INT64"}


def oip_json(client, adult, rows):
    inputs = []
    for name in adult.names:
        column = adult.columns[name][rows]
        datatype = DATATYPES[column.dtype.name]
        inputs.append({"name": name, "shape": column.shape, "datatype": datatype, "data": listed(column.ravel())})
    (output,) = client.post("/v2/models/adult/infer", {"inputs": inputs}).json()["outputs"]
    assert output["shape"] == [len(rows)]
    return output["data"]


def oip_binary(client, adult, rows):
    inputs, data = [], b""
    for name in adult.names:
        column = adult.columns[name][rows]
        size = {"binary_data_size": column.nbytes}
        inputs.append({"name": name, "shape": column.shape, "datatype": DATATYPES[column.dtype.name], "parameters": size})
        data += column.tobytes()
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    answer = client.post("/v2/models/adult/infer", head + data, Inference_Header_Content_Length=str(len(head)))
    length = int(answer.headers["Inference-Header-Content-Length"])
    (output,) = json.loads(answer.body[:length])["outputs"]
    assert output["parameters"]["binary_data_size"] == 4 * len(rows) == len(answer.body) - length
    return np.frombuffer(answer.body[length:], "<f4")


FORMS = [in_rows, in_columns, raw_csv, raw_objects, raw_json_lines, oip_json, oip_binary]


@pytest.mark.parametrize("size", [1, 7, ROWS], ids=["one at a time", "batches of 7", "all at once"])
@pytest.mark.parametrize("form", FORMS)
def test_a_form_gives_the_bits_of_cairn_predict(server, adult, form, size):
    found = [form(server, adult, np.arange(first, first + size)) for first in range(0, ROWS, size)]
    served.same_bits(np.concatenate([np.asarray(each, "float32") for each in found]), adult.expected)


def test_eight_clients_at_once_get_them_too(server, adult):
    def asks(number):
        client, random = served.Client(server), np.random.default_rng(number)
        for _ in range(40):
            rows = random.integers(0, ROWS, random.integers(1, 20))
            form = FORMS[random.integers(len(FORMS))]
            served.same_bits(form(client, adult, rows), adult.expected[rows])
        client.close()
        return number

    assert served.at_once(8, asks) == list(range(8))


def test_they_get_them_while_requests_wait_to_be_computed_together(adult, serve):
    server = serve(adult.run, "--batch-wait", 5, "--batch-max", 64)

    def asks(number):
        client = served.Client(server)
        rows = np.arange(number, ROWS, 8)
        found = [oip_binary(client, adult, rows[first : first + 1])[0] for first in range(len(rows))]
        client.close()
        served.same_bits(found, adult.expected[rows])

    served.at_once(8, asks)
    # That they were is part of the test.
    page = server.get("/metrics").body.decode()
    alone = next(line for line in page.splitlines() if line.startswith("cairn_serve_batch_examples_bucket") and 'le="1"' in line)
    assert int(alone.split()[-1]) < ROWS, alone


def test_a_checkpoint_of_the_run_has_those_of_its_model(adult, serve):
    newest = sorted((adult.run / "checkpoints").glob("ckpt-*"))[-1]
    server = serve(newest)
    served.same_bits(raw_csv(server, adult, range(ROWS)), adult.expected)
