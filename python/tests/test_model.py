"""Model: data of every kind, several inputs and outputs, weights, saving, under every strategy."""

import gc
import weakref

import numpy as np
import pytest

import cairn
from cairn import nn

X = np.random.default_rng(0).normal(size=(80, 4)).astype("float32")
Y = X @ np.array([1.0, -2.0, 3.0, 0.5], "float32") + 1.0


def close(a, b, rtol=1e-4):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-5)


@pytest.fixture
def strategy():
    made = cairn.OneDeviceStrategy()
    with made.scope():
        yield made
    made.close()


@pytest.fixture(scope="module")
def cluster():
    with cairn.LocalCluster(ps=1, workers=2) as made:
        yield made


def linear(name="d", **options):
    model = cairn.Model(nn.Dense(1, name=name, kernel_initializer="zeros"))
    model.compile(cairn.optimizers.SGD(0.1), "mse", **options)
    return model


# ---- fit, evaluate, predict ----


def test_fit_of_arrays_learns_and_tells_its_history(strategy):
    model = linear(metrics=["mae"])
    history = model.fit(X, Y, epochs=30, batch_size=16, validation_split=0.2, verbose=0)
    assert history.epoch == list(range(30)) and len(history) == 30
    assert sorted(history.history) == ["loss", "mae", "val_loss", "val_mae"]
    assert history["val_loss"][-1] < 1e-3
    close(model.get_weights()[0][:, 0], [1, -2, 3, 0.5], rtol=0.05)
    close(model.predict(X)[:, 0], Y, rtol=0.2)
    assert model.evaluate(X, Y)["loss"] == pytest.approx(np.mean((model.predict(X)[:, 0] - Y) ** 2), rel=1e-3)


def test_a_step_is_that_of_numpy(strategy):
    model = linear()
    model.fit(X, Y, batch_size=80, shuffle=False, verbose=0)
    kernel, bias = model.get_weights()
    close(kernel[:, 0], 0.1 * 2 * (X * Y[:, None]).mean(0))
    close(bias, [0.1 * 2 * Y.mean()])


def test_arrays_and_datasets_train_alike(strategy):
    arrays, data = linear("a"), linear("b")
    arrays.fit(X, Y, batch_size=16, shuffle=False, epochs=2, verbose=0)
    batches = cairn.Dataset.from_tensor_slices({"x": X, "y": Y}, label="y").batch(16)
    data.fit(batches, epochs=2, verbose=0, validation_data=(X, Y))
    np.testing.assert_array_equal(arrays.get_weights()[0], data.get_weights()[0])
    np.testing.assert_array_equal(arrays.predict(X), data.predict(batches))
    made = linear("c")
    made.fit(lambda context: batches.repeat(), steps_per_epoch=5, epochs=2, verbose=0)
    assert made.evaluate(batches)["loss"] < 10


def test_features_come_as_a_mapping_from_a_dict_of_arrays(strategy):
    seen = []
    tower = nn.Dense(1, kernel_initializer="zeros", name="t")

    def network(features):
        seen.append(features.keys())
        return tower(cairn.concat([features["a"], features["b"]], 1))

    model = cairn.Model(network)
    model.compile("sgd", "mse")
    x = {"a": X[:, :2], "b": X[:, 2:]}
    model.fit(x, Y, batch_size=20, epochs=3, verbose=0, validation_data=(x, Y))
    close(model.predict(x), model.predict({"b": x["b"], "a": x["a"]}))
    assert all(keys == ["a", "b"] for keys in seen[:1])
    assert model.evaluate(x, Y)["loss"] == pytest.approx(np.mean((model.predict(x)[:, 0] - Y) ** 2), rel=1e-4)


def test_one_column_is_given_as_an_array_unless_the_network_asks_for_features(strategy):
    kinds = []

    def plain(x):
        kinds.append(type(x).__name__)
        return x

    def mapping(features):
        kinds.append(type(features).__name__)
        return features["a"]

    for network in (plain, mapping):
        assert cairn.Model(network).predict({"a": X}).shape == (80, 4)
    assert set(kinds[:1]) == {"Array"} and kinds[-1] == "Features"


def two_outputs():
    shared, one, two = nn.Dense(4, name="s"), nn.Dense(1, name="one"), nn.Dense(1, name="two")

    def network(x):
        y = shared(x)
        return {"first": one(y), "second": cairn.sigmoid(two(y))}

    return cairn.Model(network)


def test_several_outputs_have_their_own_labels_losses_and_metrics(strategy):
    model = two_outputs()
    model.compile(
        "adam",
        loss={"first": "mse", "second": cairn.losses.BinaryCrossentropy()},
        metrics={"second": ["auc", cairn.metrics.Accuracy(name="acc")]},
        loss_weights={"first": 0.5},
    )
    labels = {"first": Y, "second": (Y > 0).astype("float32")}
    history = model.fit(X, labels, epochs=2, verbose=0, validation_data=(X, labels))
    assert {"loss", "first_loss", "second_loss", "second_auc", "second_acc", "val_second_auc"} <= set(history.history)
    made = model.predict(X)
    assert list(made) == ["first", "second"] and made["second"].shape == (80, 1)
    logs = model.evaluate(X, labels)
    assert logs["loss"] == pytest.approx(0.5 * logs["first_loss"] + logs["second_loss"], rel=1e-5)
    close(logs["first_loss"], np.mean((made["first"][:, 0] - Y) ** 2))


def test_several_outputs_of_a_dataset_take_columns_as_labels(strategy, tmp_path):
    model = two_outputs()
    model.compile("sgd", loss={"first": "mse", "second": "bce"}, labels={"second": "clicked"})
    columns = {"x": X, "first": Y, "clicked": (Y > 0).astype("float32")}
    model.fit(cairn.Dataset.from_tensor_slices(columns).batch(16), verbose=0)
    loaded = cairn.load_model(model.save(str(tmp_path / "m")))
    assert list(loaded.inputs) == ["x"] and list(loaded.outputs) == ["first", "second"]
    close(loaded.predict(X)["second"], model.predict(X)["second"])


def test_refused_outputs_and_data_say_what_to_do(strategy):
    model = two_outputs()
    with pytest.raises(ValueError, match="third"):
        model.compile(loss={"first": "mse"}, metrics={"third": ["mae"]})
    with pytest.raises(TypeError, match="dict by output"):
        model.compile(loss={"first": "mse"}, metrics=["mae"])
    with pytest.raises(TypeError, match="a list of metrics"):
        model.compile(loss="mse", metrics="mae")
    with pytest.raises(TypeError, match="generator"):
        linear().fit((row for row in X), Y)
    with pytest.raises(ValueError, match="79"):
        linear().fit(X, Y[:79])
    with pytest.raises(TypeError, match="leave y out"):
        linear().fit(cairn.Dataset.range(4).batch(2), Y)
    with pytest.raises(cairn.FailedPreconditionError, match="compile"):
        cairn.Model(nn.Dense(1)).fit(X, Y)
    with pytest.raises(TypeError, match="returned no array|returned a"):
        cairn.Model(lambda x: "text").predict(X)
    with pytest.raises(ValueError, match="validation_split"):
        linear().fit(X, Y, validation_split=0.5, validation_data=(X, Y))
    with pytest.raises(TypeError, match="network"):
        cairn.Model(3)


# ---- weights of examples and classes ----


def test_examples_and_classes_are_weighted(strategy):
    weights = np.linspace(0, 2, 80, dtype="float32")
    plain = linear("p")
    assert plain.evaluate(X, Y, sample_weight=weights)["loss"] == pytest.approx(np.mean(weights * Y**2), rel=1e-4)
    assert plain.evaluate(X, Y)["loss"] == pytest.approx(np.mean(Y**2), rel=1e-4)
    model = linear("w")
    model.fit({"x": X}, Y, sample_weight=weights, batch_size=80, verbose=0, validation_data=(X, Y))
    close(model.get_weights()[1], [0.2 * np.mean(weights * Y)])
    classes = (Y > 0).astype("int64")
    binary = cairn.Model(nn.Dense(1, name="c", kernel_initializer="zeros"))
    binary.compile(cairn.optimizers.SGD(1.0), cairn.losses.BinaryCrossentropy(from_logits=True))
    binary.fit(X, classes, class_weight={0: 0.0, 1: 2.0}, batch_size=80, verbose=0)
    close(binary.get_weights()[1], [np.mean(classes * 2 * 0.5)])


def test_a_dataset_names_its_column_of_weights(strategy):
    weights = np.linspace(0, 2, 80, dtype="float32")
    model = linear(sample_weight="w")
    data = cairn.Dataset.from_tensor_slices({"x": X, "y": Y, "w": weights}, label="y").batch(80)
    model.fit(data, verbose=0)
    close(model.get_weights()[1], [0.2 * np.mean(weights * Y)])
    assert model.predict(X).shape == (80, 1)


# ---- written in Python ----


def test_losses_and_metrics_are_functions(strategy):
    def squared(prediction, label):
        return nn.per_example(prediction - nn.per_example(label)[:, None]) ** 2

    def within(prediction, label):
        return cairn.cast(cairn.abs(nn.per_example(prediction) - nn.per_example(label)) < 1.0, "float32")

    model = cairn.Model(nn.Dense(1, name="d", kernel_initializer="zeros"))
    model.compile(cairn.optimizers.SGD(0.1), squared, metrics=[within, "mae"])
    logs = model.evaluate(X, Y)
    close(logs["loss"], np.mean(Y**2))
    close(logs["within"], np.mean(np.abs(Y) < 1))
    by_batch = cairn.Model(nn.Dense(1, name="b", kernel_initializer="zeros"))
    by_batch.compile("sgd", batch_loss=lambda output, batch: cairn.square(nn.per_example(output) - batch.label))
    close(by_batch.evaluate(X, Y)["loss"], np.mean(Y**2))


def test_an_error_in_the_network_is_the_users_own(strategy):
    def network(x):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        cairn.Model(network).predict(X)


# ---- building, weights, saving ----


def test_weights_are_set_and_given(strategy):
    model = linear()
    with pytest.raises(cairn.FailedPreconditionError, match="build"):
        model.get_weights()
    model.build(X)
    assert [v.name for v in model.variables] == ["d/kernel", "d/bias"]
    model.set_weights([np.ones((4, 1)), [2.0]])
    close(model.predict(X)[:, 0], X.sum(1) + 2)
    model.variables[1].assign([0.0])
    close(model.predict(X)[:, 0], X.sum(1))
    with pytest.raises(ValueError, match="2 variables"):
        model.set_weights([np.ones((4, 1))])
    assert "d/kernel" in model.summary() and model.name == "model"


def test_a_saved_model_predicts_from_arrays_dicts_and_datasets(strategy, tmp_path):
    table, tower = nn.Embedding(rows=10, dim=2, name="e"), nn.Dense(1, name="t")

    def network(features):
        return {"score": tower(cairn.concat([features["x"], table(features["id"])], 1))}

    model = cairn.Model(network, name="clicks")
    x = {"x": X, "id": np.arange(80) % 10}
    expected = model.predict(x)["score"]
    folder = model.save(str(tmp_path / "m"), metadata={"by": "test"}, label="y")
    loaded = cairn.load_model(folder)
    assert loaded.name == "clicks" and loaded.metadata == {"by": "test"} and loaded.label == "y"
    assert loaded.inputs == {"x": ("float32", (None, 4)), "id": ("int64", (None,))}
    assert "score" in loaded.signature and loaded.parameters == 20 + 6 + 1
    close(loaded.predict(x)["score"], expected)
    close(loaded.predict({"x": X.astype("float64"), "id": list(range(10)) * 8})["score"], expected)
    data = cairn.Dataset.from_tensor_slices(x).batch(32)
    close(loaded.predict(data)["score"], expected)
    with pytest.raises(ValueError, match='"id" is missing'):
        loaded.predict({"x": X, "ids": x["id"]})
    with pytest.raises(TypeError, match="2 columns"):
        loaded.predict(X)
    with pytest.raises(cairn.NotFoundError):
        cairn.load_model(str(tmp_path / "none"))


def test_a_network_without_variables_is_built_saved_and_fits_any_columns(strategy, tmp_path):
    model = cairn.Model(lambda features: {name: features[name] * 2.0 for name in features})
    with pytest.raises(cairn.FailedPreconditionError, match="not built"):
        model.save(str(tmp_path / "none"))
    model.build({"a": X})
    assert model.get_weights() == []
    close(cairn.load_model(model.save(str(tmp_path / "m"))).predict({"a": X})["a"], X * 2)
    assert list(model.predict({"a": X, "b": X})) == ["a", "b"]
    close(model.predict({"b": X})["b"], X * 2)


def test_a_model_is_part_of_a_step_of_ones_own(strategy):
    model = linear()
    model.build(X)

    @strategy.function
    def step(x, y):
        model.optimizer.minimize(cairn.mean(nn.mean_squared_error(model(x), y)))

    strategy.run(step, X, Y)
    close(model.get_weights()[1], [0.2 * Y.mean()])
    assert model.optimizer.iterations.numpy() == 1


def test_predictions_are_written_to_a_file(strategy, tmp_path):
    model = linear()
    assert model.predict_to(X, str(tmp_path / "p.csv")) == 80
    assert len(open(tmp_path / "p.csv").read().splitlines()) == 81


def test_notebooks_show_models_and_histories(strategy):
    model = cairn.Model(nn.Sequential([nn.Dense(3), "relu", nn.Dense(1)]), name="a<b")
    assert "when it is built" in model._repr_html_()
    model.compile("sgd", "mse")
    history = model.fit(X, Y, epochs=2, verbose=0)
    html = model._repr_html_()
    assert "a&lt;b" in html and "dense_1/kernel" in html and "<td>relu</td>" in html and "[4, 3]" in html
    assert history._repr_html_().count("<tr>") == 3
    assert repr(history) == "<cairn.History of 2 epochs: loss>"


def test_a_model_that_its_network_refers_to_is_collected():
    def make():
        models = []
        dense = nn.Dense(1)

        def network(x):
            return dense(x) if models else x

        models.append(cairn.Model(network))
        models[0].compile("sgd", lambda p, y: nn.per_example(p) * len(models), metrics=[lambda p, y: p * len(models)])
        models[0].fit(X, Y, verbose=0)
        return weakref.ref(network)

    known = make()
    gc.collect()
    gc.collect()
    assert known() is None


# ---- strategies ----


def test_replicas_train_as_one_device_does():
    device = cairn.OneDeviceStrategy()
    with device.scope():
        one = linear()
        one.fit(X, Y, batch_size=16, epochs=2, verbose=0)
    mirrored = cairn.MirroredStrategy(["cpu:0", "cpu:1"])
    with mirrored.scope():
        two = linear()
        two.fit(X, Y, batch_size=16, epochs=2, verbose=0)
    close(two.get_weights()[0], one.get_weights()[0])
    close(two.predict(X), one.predict(X))
    assert two.evaluate(X, Y)["loss"] == pytest.approx(one.evaluate(X, Y)["loss"], rel=1e-4)
    mirrored.close()
    device.close()


def test_a_cluster_trains_judges_and_saves(cluster, tmp_path):
    strategy = cluster.strategy()
    with strategy.scope():
        model = linear(metrics=[cairn.metrics.RootMeanSquaredError(name="rmse")])
        calls = cairn.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: epochs.append(epoch))
        epochs = []
        history = model.fit({"x": X}, Y, batch_size=8, epochs=15, verbose=0, callbacks=[calls], validation_data=(X, Y))
        assert epochs == list(range(15)) and history["val_rmse"][-1] < 0.2
        loaded = cairn.load_model(model.save(str(tmp_path / "m")))
        close(loaded.predict(X), model.predict(X))
        close(model.variables[1].numpy(), model.get_weights()[1])
    strategy.close()
    with pytest.raises(cairn.FailedPreconditionError, match="closed"):
        model.predict(X)


def test_a_layer_in_python_learns_on_a_cluster(cluster):
    class Shift(cairn.Layer):
        def build(self, x):
            self.shift = self.add_weight("shift", (1,), "zeros")

        def call(self, x):
            return x + self.shift

    strategy = cluster.strategy()
    with strategy.scope():
        layer = Shift()
        model = cairn.Model(nn.Sequential([nn.Embedding(rows=4, dim=1, hashed=True), layer]))
        model.compile(cairn.optimizers.SGD(0.1), "mse")
        model.fit(np.arange(64) % 4, np.full(64, 3.0, "float32"), batch_size=16, epochs=20, verbose=0)
        assert model.evaluate(np.arange(4), np.full(4, 3.0, "float32"))["loss"] < 0.01
        assert layer.shift.numpy()[0] > 1
    strategy.close()
