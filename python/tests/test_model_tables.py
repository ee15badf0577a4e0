"""Models that are fitted to tables of pandas, polars and pyarrow."""

import numpy as np
import pytest

import cairn
from cairn import nn

X = np.random.default_rng(0).normal(size=(80, 4)).astype("float32")
Y = X @ np.array([1.0, -2.0, 3.0, 0.5], "float32") + 1.0


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


@pytest.fixture
def strategy():
    made = cairn.OneDeviceStrategy()
    with made.scope():
        yield made
    made.close()


def table_model():
    table, tower = nn.Embedding(rows=10, dim=2, name="e"), nn.Dense(1, name="t")

    def network(features):
        return tower(cairn.concat([cairn.reshape(features["a"], (-1, 1)), table(features["id"])], 1))

    model = cairn.Model(network)
    model.compile("sgd", "mse")
    return model


TABLE = {"a": X[:, 0].copy(), "id": np.arange(80) % 10, "y": Y, "w": np.linspace(0, 2, 80, dtype="float32")}


def test_a_table_brings_features_label_and_weights(strategy):
    model = table_model()
    features = {"a": TABLE["a"], "id": TABLE["id"]}
    model.fit(cairn.Table(TABLE | {}), "y", sample_weight="w", epochs=2, verbose=0)
    assert list(model.evaluate(cairn.Table(features), Y)) == ["loss"]
    made = model.predict(cairn.Table(features), as_table=True)
    assert made.columns == ["output"] and len(made) == 80
    np.testing.assert_array_equal(made["output"], model.predict(features)[:, 0])
    by_dict = table_model()
    by_dict.fit(features, Y, sample_weight=TABLE["w"], epochs=2, verbose=0)
    np.testing.assert_array_equal(by_dict.get_weights()[0].shape, model.get_weights()[0].shape)
    with pytest.raises(ValueError, match='no column "yy"'):
        model.fit(cairn.Table(TABLE), "yy", verbose=0)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_of_other_libraries_train_and_predict(strategy, library, tmp_path):
    made = pytest.importorskip(library)
    frame = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    columns = {name: TABLE[name] for name in ("a", "id", "y")}
    table = getattr(made, frame)(columns)
    model, plain = table_model(), table_model()
    model.fit(table, "y", verbose=0)
    model.build(table)
    inputs = getattr(made, frame)({name: TABLE[name] for name in ("a", "id")})
    loaded = cairn.load_model(model.save(str(tmp_path / "m")))
    assert list(loaded.inputs) == ["a", "id"]
    close(loaded.predict(inputs), model.predict(inputs))
    assert loaded.predict(inputs, as_table=True).columns == ["output"]
    if library != "pyarrow":
        plain.fit(inputs, table["y"], verbose=0)
