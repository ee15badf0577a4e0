"""The examples of TensorFlow Serving's page on its REST API, by curl as they are printed there.

https://www.tensorflow.org/tfx/serving/api_rest, and for half_plus_two its page on Docker. The port alone is another.
"""

import json
import subprocess

import pytest
import served

# An example and its answer.
PRINTED = [
    (
        "curl http://localhost:8501/v1/models/half_plus_three",
        """{
 "model_version_status": [
  {
   "version": "123",
   "state": "AVAILABLE",
   "status": {
    "error_code": "OK",
    "error_message": ""
   }
  }
 ]
}""",
    ),
    (
        """curl -d '{"instances": [1.0,2.0,5.0]}' -X POST http://localhost:8501/v1/models/half_plus_three:predict""",
        """{
    "predictions": [3.5, 4.0, 5.5]
}""",
    ),
    (
        """curl -d '{"signature_name": "tensorflow/serving/regress", "examples": [{"x": 1.0}, {"x": 2.0}]}' \\
  -X POST http://localhost:8501/v1/models/half_plus_three:regress""",
        """{
    "results": [3.5, 4.0]
}""",
    ),
    (
        """curl -d '{"instances": [1.0, 2.0, 5.0]}' \\
    -X POST http://localhost:8501/v1/models/half_plus_two:predict""",
        """{ "predictions": [2.5, 3.0, 4.5] }""",
    ),
]


@pytest.fixture(scope="module")
def server(models):
    with served.Server(models / "half_plus_two", models / "half_plus_three") as server:
        yield server


def curl(server, command):
    command = command.replace("http://localhost:8501", server.url).replace("curl", "curl --silent --show-error --max-time 60")
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=90).stdout


@pytest.mark.parametrize(("command", "answer"), PRINTED, ids=["status", "predict", "regress", "half_plus_two"])
def test_an_example_of_the_page_answers_as_it_says(server, command, answer):
    assert json.loads(curl(server, command)) == json.loads(answer)


def test_the_page_s_wrong_request_is_not_found(server):
    said = curl(server, """curl -i -d '{"instances": [1.0,5.0]}' -X POST http://localhost:8501/v1/models/half:predict""")
    head, body = said.split("\n\n")
    assert head.startswith("HTTP/1.1 404 Not Found")
    assert "content-type: application/json" in head.lower() and f"content-length: {len(body)}" in head.lower()
    assert json.loads(body)["error"].startswith('there is no model "half"')


def test_a_version_and_its_metadata_have_the_page_s_addresses(server):
    status = json.loads(curl(server, "curl http://localhost:8501/v1/models/half_plus_two/versions/123"))
    assert [each["state"] for each in status["model_version_status"]] == ["AVAILABLE"]
    about = json.loads(curl(server, "curl http://localhost:8501/v1/models/half_plus_two/versions/123/metadata"))
    assert about["model_spec"] == {"name": "half_plus_two", "signature_name": "", "version": "123"}
    signature = about["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["inputs"]["x"]["dtype"] == "DT_FLOAT"
    assert signature["inputs"]["x"]["tensor_shape"]["dim"] == [{"size": "-1", "name": ""}]
    command = """curl -d '{"inputs": {"x": [1.0, 2.0]}}' http://localhost:8501/v1/models/half_plus_two/versions/123:predict"""
    assert json.loads(curl(server, command)) == {"outputs": [2.5, 3.0]}


def test_classify_answers_with_labels_and_scores(server):
    command = """curl -d '{"examples": [{"x": -3.0}]}' http://localhost:8501/v1/models/half_plus_two:classify"""
    assert json.loads(curl(server, command)) == {"results": [[["0", 0.5], ["1", 0.5]]]}
