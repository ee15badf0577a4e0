"""Triton's client for HTTP, of the Open Inference Protocol, asks a server of ours."""

import re

import numpy as np
import pytest
import served
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype


@pytest.fixture(scope="module")
def server(adult, models):
    with served.Server(adult.run, models / "half_plus_two") as server:
        yield server


@pytest.fixture
def client(server):
    client = triton.InferenceServerClient(server.address, connection_timeout=60, network_timeout=60)
    yield client
    client.close()


def tensor(name, values, binary=True, datatype=None):
    made = triton.InferInput(name, list(values.shape), datatype or np_to_triton_dtype(values.dtype))
    return made.set_data_from_numpy(values, binary_data=binary)


def tensors(adult, rows, binary=True):
    return [tensor(name, adult.columns[name][rows], binary) for name in adult.names]


def test_health_and_metadata_of_the_server(client):
    assert client.is_server_live() and client.is_server_ready()
    about = client.get_server_metadata()
    assert about["name"] == "cairn" and about["extensions"] == ["binary_tensor_data"]
    assert served.run("--version").split()[-1] == about["version"]
    assert {each["name"]: each["state"] for each in client.get_model_repository_index()} == {
        "adult": "READY",
        "half_plus_two": "READY",
    }


def test_health_and_metadata_of_a_model(client, adult):
    assert client.is_model_ready("adult") and client.is_model_ready("half_plus_two", "123")
    assert not client.is_model_ready("half_plus_two", "124") and not client.is_model_ready("adul")
    about = client.get_model_metadata("half_plus_two")
    assert about == {
        "name": "half_plus_two",
        "versions": ["123"],
        "platform": "cairn",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1]}],
        "outputs": [{"name": "output", "datatype": "FP32", "shape": [-1]}],
    }
    about = client.get_model_metadata("adult")
    assert [each["name"] for each in about["inputs"]] == adult.names
    for each in about["inputs"]:
        column = adult.columns[each["name"]]
        assert each["datatype"] == np_to_triton_dtype(column.dtype) and each["shape"][1:] == list(column.shape[1:])


@pytest.mark.parametrize("asked", [True, False], ids=["binary in", "JSON in"])
@pytest.mark.parametrize("given", [True, False, None], ids=["binary out", "JSON out", "no outputs named"])
def test_infer_gives_the_bits_of_cairn_predict(client, adult, asked, given):
    wanted = None if given is None else [triton.InferRequestedOutput("probability", binary_data=given)]
    result = client.infer("adult", tensors(adult, slice(0, 50), asked), outputs=wanted, request_id="fifty")
    served.same_bits(result.as_numpy("probability"), adult.expected[:50])
    answer = result.get_response()
    assert answer["id"] == "fifty" and answer["model_name"] == "adult" and answer["model_version"].isdigit()
    said = result.get_output("probability")
    assert said["datatype"] == "FP32" and said["shape"] == [50]
    # Without outputs the client asks for all of them as binary tensors.
    assert ("data" not in said) == (given is not False)


def test_binary_and_json_tensors_may_stand_in_one_request(client, adult):
    mixed = [tensor(name, adult.columns[name][:9], binary=i % 2 == 0) for i, name in enumerate(adult.names)]
    served.same_bits(client.infer("adult", mixed).as_numpy("probability"), adult.expected[:9])


def test_the_order_of_inputs_is_free(client, adult):
    found = client.infer("adult", tensors(adult, slice(0, 9))[::-1])
    served.same_bits(found.as_numpy("probability"), adult.expected[:9])


def test_compressed_bodies_are_refused_by_name(client, adult):
    with pytest.raises(InferenceServerException, match='content encoding "gzip"'):
        client.infer("adult", tensors(adult, slice(0, 9)), request_compression_algorithm="gzip")


def test_many_requests_under_way_at_once(server, adult):
    client = triton.InferenceServerClient(server.address, concurrency=8)
    sent = [client.async_infer("adult", tensors(adult, slice(i, i + 3)), request_id=str(i)) for i in range(100)]
    for i, each in enumerate(sent):
        result = each.get_result(timeout=60)
        assert result.get_response()["id"] == str(i)
        served.same_bits(result.as_numpy("probability"), adult.expected[i : i + 3])
    client.close()


X = np.array([1, 2, 5], "float32")

# What is asked for, and the status and the text of the client's exception.
REFUSED = [
    ("half_plus_tow", "", [tensor("x", X)], "output", 404, 'no model "half_plus_tow"; did you mean "half_plus_two"'),
    ("half_plus_two", "7", [tensor("x", X)], "output", 404, "version 7 .* does not serve; those that do: 123"),
    ("half_plus_two", "", [tensor("x", X.reshape(1, 3))], "output", 400, r'"x".*\[1, 3\]'),
    ("half_plus_two", "", [tensor("x", X.reshape(1, 3), binary=False)], "output", 400, r'"x".*\[1, 3\]'),
    ("half_plus_two", "", [tensor("x", X.astype("int64"))], "output", 400, '"x".*INT64.*FP32'),
    ("half_plus_two", "", [tensor("x", X.astype("float64"), binary=False)], "output", 400, '"x".*FP64.*FP32'),
    ("half_plus_two", "", [tensor("y", X)], "output", 400, '"y".*"x"'),
    ("half_plus_two", "", [tensor("x", X), tensor("x", X)], "output", 400, '"x": there are more inputs'),
    ("half_plus_two", "", [tensor("x", X)], "outptu", 400, '"outptu".*"output"'),
    ("half_plus_two", "", [tensor("x", np.array([np.nan, 1], "float32"))], "output", 400, '"x".*[Nn]a[Nn]'),
    ("half_plus_two", "", [tensor("x", X[:0])], "output", 400, "example"),
]


@pytest.mark.parametrize(("model", "version", "inputs", "output", "status", "said"), REFUSED)
def test_what_does_not_fit_is_the_client_s_exception(client, model, version, inputs, output, status, said):
    with pytest.raises(InferenceServerException, match=said) as caught:
        client.infer(model, inputs, version, outputs=[triton.InferRequestedOutput(output)])
    assert caught.value.status() == str(status)
    # The connection and the server serve on.
    served.same_bits(client.infer("half_plus_two", [tensor("x", X)]).as_numpy("output"), [2.5, 3.0, 4.5])


def test_an_input_that_is_missing_is_named(client, adult):
    with pytest.raises(InferenceServerException, match=f'missing: "{adult.names[3]}"') as caught:
        client.infer("adult", [each for each in tensors(adult, slice(0, 2)) if each.name() != adult.names[3]])
    assert caught.value.status() == "400"


def test_a_length_of_the_header_that_does_not_fit_is_refused(server):
    body = b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "parameters": {"binary_data_size": 4}}]}'
    for length in ["-1", "0", "1000000", "99999999999999999999", "ten", str(len(body) - 1)]:
        answer = server.post(
            "/v2/models/half_plus_two/infer", body + bytes(4), Inference_Header_Content_Length=length
        )
        assert answer.status == 400 and answer.error, length
    for size in [b"5", b"3", b"0", b"-4", b"18446744073709551615"]:
        wrong = body.replace(b": 4}", b": " + size + b"}")
        answer = server.post(
            "/v2/models/half_plus_two/infer", wrong + bytes(4), Inference_Header_Content_Length=str(len(wrong))
        )
        assert answer.status == 400 and re.search('"x"|"binary_data_size"', answer.error), answer.error
    answer = server.post(
        "/v2/models/half_plus_two/infer", body + bytes(4), Inference_Header_Content_Length=str(len(body))
    )
    assert answer.status == 200 and answer.json()["outputs"][0]["data"] == [2.0]
