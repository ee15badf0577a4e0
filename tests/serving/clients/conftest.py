import numpy as np
import pytest
import served

np.set_printoptions(floatmode="unique")


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A folder with half_plus_two and half_plus_three, each as version 123."""
    folder = tmp_path_factory.mktemp("models")
    for number, name in ((2, "half_plus_two"), (3, "half_plus_three")):
        served.save_half_plus(number, folder / name / "123")
    return folder


@pytest.fixture(scope="session")
def adult(tmp_path_factory):
    return served.Adult(tmp_path_factory.mktemp("adult"))


@pytest.fixture(scope="session")
def visits(tmp_path_factory):
    return served.Visits(tmp_path_factory.mktemp("visits"))


@pytest.fixture
def serve():
    """Starts servers that end with the test; that they end in order is part of it."""
    servers = []

    def start(*arguments):
        servers.append(served.Server(*arguments))
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__(None)


@pytest.fixture
def training(tmp_path):
    return served.Training(tmp_path / "line")
