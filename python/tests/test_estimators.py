"""Classifier and Regressor: tables of every kind, what their columns become, training, scores, saving."""

import copy
import gzip
import pathlib
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import cairn

ADULT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "data" / "adult"
COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
).split()
CITIES = np.array(["Bern", "Basel", "Ulm", "Bonn"], object)


def people(rows=400, seed=0):
    random = np.random.default_rng(seed)
    table = {"age": random.integers(18, 90, rows), "city": CITIES[random.integers(0, 4, rows)], "height": random.normal(170, 10, rows)}
    score = (table["age"] > 50) * 2.0 + np.isin(table["city"], ["Ulm", "Bonn"]) * 1.5 - 1.7
    return table, score


def classes(score):
    return np.where(score > 0, "yes", "no")


def auc(truth, score):
    """The area under the curve, by ranks; ties count half."""
    order = np.argsort(score, kind="stable")
    ranks = np.empty(len(score))
    _, first, counts = np.unique(score[order], return_index=True, return_counts=True)
    ranks[order] = np.repeat(first + (counts + 1) / 2, counts)
    positive = np.asarray(truth, bool)
    return (ranks[positive].sum() - positive.sum() * (positive.sum() + 1) / 2) / positive.sum() / (~positive).sum()


def frames():
    table, score = people()
    pandas, polars, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    yield "dict", table
    yield "pandas", pandas.DataFrame(table)
    yield "categories", pandas.DataFrame(table).astype({"city": "category"})
    yield "polars", polars.DataFrame(table)
    yield "pyarrow", pyarrow.table(table)
    yield "duckdb", pytest.importorskip("duckdb").from_arrow(pyarrow.table(table))
    yield "cairn", cairn.Table(table)


# ---- data ----


def test_tables_of_every_library_give_the_same_model():
    _, score = people()
    made = {}
    for name, frame in frames():
        model = cairn.Classifier(random_state=1, epochs=20).fit(frame, classes(score))
        assert model.feature_names_in_.tolist() == ["age", "city", "height"] and model.n_features_in_ == 3
        assert model.classes_.tolist() == ["no", "yes"]
        made[name] = model.predict_proba(frame)
        assert model.score(frame, classes(score)) > 0.95
    for each in made.values():
        np.testing.assert_array_equal(each, made["dict"])


def test_the_target_may_be_a_column_and_a_series():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table, score = people()
    frame = pandas.DataFrame({**table, "label": classes(score)})
    model = cairn.Classifier(random_state=1, epochs=20).fit(frame, "label")
    assert model.feature_names_in_.tolist() == ["age", "city", "height"]
    expected = model.predict_proba(frame)
    assert model.score(frame, "label") == model.score(frame.drop(columns="label"), frame["label"]) > 0.95
    for features, target in [(frame.drop(columns="label"), frame["label"]), (polars.DataFrame(table), polars.Series(classes(score)))]:
        again = cairn.Classifier(random_state=1, epochs=20).fit(features, target)
        np.testing.assert_array_equal(again.predict_proba(features), expected)
    with pytest.raises(ValueError, match='no column "labl"; did you mean "label"'):
        model.fit(frame, "labl")
    gaps = frame.astype({"label": object})
    gaps.loc[3, "label"] = None
    for each in (gaps, polars.from_pandas(gaps)):
        with pytest.raises(ValueError, match='column "label", row 3: the value is missing'):
            model.fit(each, "label")


def test_arrays_are_features_by_place():
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 4)) * [1, 100, 0.01, 1] + [0, 1e6, 0, 0]
    y = 1000 + 50 * x[:, 0] + (x[:, 1] - 1e6)
    model = cairn.Regressor(random_state=0).fit(x, y)
    assert model.score(x, y) > 0.9 and model.n_features_in_ == 4 and not hasattr(model, "feature_names_in_")
    mixed = np.array([[1.5, "a"], [2.5, "b"], [None, "a"], [0.5, None]] * 20, object)
    named = cairn.Classifier(random_state=0).fit(mixed, mixed[:, 1] == "a")
    assert named.predict(mixed).tolist() == (mixed[:, 1] == "a").tolist()
    with pytest.raises(ValueError, match="X has 3 features, but Regressor is expecting 4 features as input"):
        model.predict(x[:, :3])


def test_columns_are_found_by_name_or_else_by_place():
    pandas = pytest.importorskip("pandas")
    table, score = people()
    frame = pandas.DataFrame(table)
    model = cairn.Classifier(random_state=0, epochs=5).fit(frame, classes(score))
    expected = model.predict_proba(frame)
    np.testing.assert_array_equal(model.predict_proba(frame[["height", "city", "age"]].assign(more=1)), expected)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Classifier was fitted with feature names"):
        np.testing.assert_array_equal(model.predict_proba(frame.to_numpy()), expected)
    with pytest.raises(ValueError, match='it lacks "city"'):
        model.predict(frame.drop(columns="city"))
    numbers = cairn.Regressor(random_state=0, epochs=5).fit(frame[["age", "height"]].to_numpy(), score)
    with pytest.warns(UserWarning, match="X has feature names, but Regressor was fitted without feature names"):
        numbers.predict(frame[["age", "height"]])


def test_missing_values_and_unseen_categories_are_predicted():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table, score = people()
    frame = pandas.DataFrame(table).astype({"age": "Int64"})
    frame.loc[::7, "age"] = pandas.NA
    frame.loc[::5, "city"] = None
    frame.loc[::3, "height"] = np.nan
    model = cairn.Classifier(random_state=0, epochs=20).fit(frame, classes(score))
    assert model.score(frame, classes(score)) > 0.7
    other = frame.copy()
    other.loc[:, "city"] = "Wien"
    assert np.isfinite(model.predict_proba(other)).all()
    nulls = polars.DataFrame({name: [None if each is pandas.NA or each != each else each for each in frame[name]] for name in frame})
    same = nulls.with_columns(polars.col("height").fill_null(float("nan")))
    for each in (nulls, same):
        np.testing.assert_array_equal(model.predict_proba(each), model.predict_proba(frame))


def test_flags_categories_of_numbers_lists_and_vectors_are_features():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    random = np.random.default_rng(0)
    kind = random.integers(0, 5, 300)
    y = np.isin(kind, [1, 3])
    for values in (kind, kind.astype("float64"), kind / 2):
        frame = pandas.DataFrame({"kind": pandas.Series(values).astype("category"), "flag": random.random(300) < 0.5})
        assert cairn.Classifier(random_state=0).fit(frame, y).score(frame, y) == 1.0
    lists = polars.DataFrame({"tags": [[f"t{k}", "x"] if k else [] for k in kind], "ids": [[k, 7] for k in kind]})
    assert cairn.Classifier(random_state=0).fit(lists, y).score(lists, y) == 1.0
    vectors = {"both": np.stack([kind, -kind], 1).astype("float64")}
    assert cairn.Regressor(random_state=0).fit(vectors, kind * 3.0).score(vectors, kind * 3.0) > 0.98


# ---- features ----


def test_features_say_what_becomes_of_columns():
    table, score = people()
    y = classes(score)
    model = cairn.Classifier(random_state=0, features={"height": None}).fit(table, y)
    other = {**table, "height": table["height"] * 1e3}
    np.testing.assert_array_equal(model.predict_proba(table), model.predict_proba(other))
    pandas = pytest.importorskip("pandas")
    dated = pandas.DataFrame(table).assign(at=pandas.Timestamp("2026-01-01"))
    with pytest.raises(ValueError, match=r'column "at" is of pandas\' type datetime64.*leave it out by features=\{...: None\}'):
        cairn.Classifier().fit(dated, y)
    left = cairn.Classifier(random_state=0, features={"at": None}).fit(dated, y)
    assert left.n_features_in_ == 4 and left.score(dated, y) == left.score(dated.drop(columns="at"), y) > 0.95
    ages = cairn.FeatureColumn.bucketised("age", [30, 50.5, 70])
    cross = cairn.FeatureColumn.crossed(["age_bucket", "city"], 50)
    model = cairn.Classifier(random_state=0, features={"age": ages, "height": None, "cross": cross}).fit(table, y)
    assert model.score(table, y) > 0.99
    years = cairn.Classifier(random_state=0, features={"age": ["numeric", "category"]}).fit(table, y)
    assert years.score(table, y) > 0.95
    called = {"sample_weight": table["city"], "numeric": table["age"], "label": table["city"]}
    assert cairn.Classifier(random_state=0).fit(called, y, np.ones(len(y))).score(called, y) > 0.95
    titles = {"title": np.array(["a red car", "blue bike", "red bike", "the blue car"] * 50, object)}
    red = np.array([1, 0, 1, 0] * 50)
    words = cairn.Classifier(random_state=0, features={"title": "words"}).fit(titles, red)
    assert words.predict({"title": np.array(["one red boat"], object)}).tolist() == [1]


def test_features_that_do_not_fit_are_refused():
    table, score = people(20)
    for features, message in [
        ({"ages": "numeric"}, 'no column "ages"; did you mean "age"'),
        ({"age": "number"}, 'one of "numeric", "category", "words" or None, not \'number\''),
        ({"city": "numeric"}, '"city" is of texts'), ({"height": ["category", "numeric"]}, '"height" is both numeric and a category'),
        (dict.fromkeys(table), "no column to learn from"),
    ]:
        with pytest.raises(ValueError, match=message):
            cairn.Regressor(features=features).fit(table, score)
    with pytest.raises(TypeError, match="features is a dict"):
        cairn.Regressor(features=["age"]).fit(table, score)


def test_feature_columns_are_copied_and_pickled():
    of = cairn.FeatureColumn
    for feature in [
        of.numeric(["a", cairn.NumericInput("b", mean=2, stddev=3, log1p=True)]), of.vocabulary("a", ["x", "y"], oov="last", name="v"),
        of.hashed("a", 10), of.bucketised("a", [1, 2.5]), of.crossed(["a", "b"], 10), of.as_is("a", 5, padding=-1),
        of.words("a", 100, words_max=2, characters_min=2, characters_max=4, keep_case=True), of.date_part("a", "hour"),
    ]:
        assert copy.deepcopy(feature) == feature == pickle.loads(pickle.dumps(feature))


# ---- training ----


def test_several_classes_have_probabilities_that_sum_to_1():
    random = np.random.default_rng(1)
    centres = np.array([[0, 4], [4, 0], [-4, -4]])
    y = random.integers(0, 3, 300)
    x = centres[y] + random.normal(size=(300, 2))
    labels = np.array(["red", "green", "blue"])[y]
    model = cairn.Classifier(random_state=0).fit(x, labels)
    assert model.classes_.tolist() == ["blue", "green", "red"] and model.score(x, labels) > 0.95
    np.testing.assert_allclose(model.predict_proba(x).sum(1), 1, rtol=1e-12)
    assert (model.classes_[model.predict_proba(x).argmax(1)] == model.predict(x)).all()


def test_a_seed_gives_the_same_model_again():
    table, score = people(100)
    one, two, three = (cairn.Regressor(random_state=seed, epochs=3).fit(table, score).predict(table) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one, two)
    assert (one != three).any()
    np.random.seed(3)
    four = cairn.Regressor(epochs=3).fit(table, score).predict(table)
    np.random.seed(3)
    np.testing.assert_array_equal(cairn.Regressor(epochs=3).fit(table, score).predict(table), four)


def test_eval_set_and_early_stopping_end_training():
    table, score = people()
    held, truth = people(100, seed=1)
    model = cairn.Regressor(random_state=0, epochs=50, early_stopping=True, patience=1, learning_rate=0.02)
    model.fit(table, score, eval_set=(held, truth))
    losses = model.history_["val_loss"]
    assert len(losses) < 50 and len(model.history_["loss"]) == len(losses)
    assert np.mean(((model.predict(held) - truth) / score.std()) ** 2) == pytest.approx(min(losses), rel=1e-3)
    alone = cairn.Classifier(random_state=0, epochs=4, early_stopping=True).fit(table, classes(score))
    assert sorted(alone.history_) == ["loss", "val_accuracy", "val_auc", "val_loss"]
    frame = {**held, "y": classes(truth)}
    judged = cairn.Classifier(random_state=0, epochs=2).fit({**table, "y": classes(score)}, "y", eval_set=[(frame, "y")])
    assert len(judged.history_["val_accuracy"]) == 2
    with pytest.raises(ValueError, match="class 'maybe', which y has not"):
        model = cairn.Classifier(epochs=1).fit(table, classes(score), eval_set=(held, np.full(100, "maybe")))
    with pytest.raises(TypeError, match="eval_set is"):
        model.fit(table, score, eval_set=held)


def test_weights_of_examples_and_classes_count():
    x = np.zeros((200, 1))
    y = np.array([0] * 100 + [1] * 100)
    weights = np.where(y == 1, 3.0, 1.0)
    options = {"random_state": 0, "epochs": 60, "learning_rate": 0.01}
    for model in [
        cairn.Classifier(**options).fit(x, y, weights),
        cairn.Classifier(**options, class_weight={1: 3.0}).fit(x, y),
        cairn.Classifier(**options, class_weight="balanced").fit(x[75:], y[75:], np.where(y[75:] == 1, 3.0, 1.0)),
    ]:
        np.testing.assert_allclose(model.predict_proba(x[:1])[0], [0.25, 0.75], atol=0.03)
    heavy = cairn.Regressor(**options).fit(x, y, sample_weight=weights, eval_set=(x, y))
    assert heavy.predict(x[:1])[0] == pytest.approx(0.75, abs=0.03)
    assert cairn.Regressor(**options, loss="mae").fit(x, y * 100.0, np.where(y == 1, 9.0, 1.0)).predict(x[:1])[0] > 90


def test_optimizers_layers_and_strategies_are_parameters():
    table, score = people(100)
    strategy = cairn.OneDeviceStrategy()
    with strategy.scope():
        cairn.Regressor(random_state=0, epochs=1).fit(table, score)
    for options in [
        {"layers": ()}, {"layers": [8], "activation": "tanh", "dropout": 0.2, "bins": 0, "embedding_dim": 2},
        {"optimizer": "adagrad", "learning_rate": 0.1}, {"optimizer": cairn.optimizers.RMSprop}, {"strategy": "mirrored"},
        {"strategy": strategy}, {"strategy": strategy, "batch_size": 7},
    ]:
        model = cairn.Regressor(random_state=0, epochs=30, **options).fit(table, score)
        assert model.history_["loss"][-1] < model.history_["loss"][0], options
    assert strategy.closed is False
    with pytest.raises(ValueError, match='did you mean "adam"'):
        cairn.Regressor(optimizer="adamm").fit(table, score)


@pytest.mark.parametrize("parameter, value", [
    ("layers", "64"), ("layers", [0]), ("epochs", 0), ("epochs", 1.5), ("batch_size", -1), ("learning_rate", 0), ("dropout", 1.0),
    ("validation_fraction", 1), ("bins", -1), ("strategy", "tpu"), ("ps", 0), ("activation", 3), ("class_weight", "even"),
    ("class_weight", {"maybe": 1}),
])
def test_a_parameter_that_makes_no_sense_is_named_by_fit(parameter, value):
    table, score = people(20)
    with pytest.raises(ValueError, match=parameter):
        cairn.Classifier(**{parameter: value}).fit(table, classes(score))


def test_targets_and_data_that_do_not_fit_are_refused():
    table, score = people(20)
    fit = cairn.Classifier(epochs=1).fit
    for x, y, message in [
        (table, None, "requires y"), (table, score[:19], r"inconsistent numbers of samples: \[20, 19\]"), (table, np.ones(20), "1 class"),
        (table, score + 0.25, "continuous"), (table, [None] * 20, "row 0"), (np.ones((2, 2, 2)), [0, 1], "Expected 2D array, got 3D"),
        (np.ones(4), [0, 1, 0, 1], "Expected 2D array, got 1D"), (np.full((4, 1), np.inf), [0, 1, 0, 1], "infinity"),
        ({"a": np.zeros(0)}, [], r"0 sample\(s\)"), ({"at": [[[1.0]], [[2.0]]]}, [0, 1], "2 axes"), (table, np.ones((20, 2)), "1d array"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit(x, y)
    for x in (cairn.Dataset.range(4), np.array([["a"], [{}]], object), np.zeros((2, 1), "datetime64[s]")):
        with pytest.raises(TypeError, match="X is a|argument must be"):
            fit(x, [0, 1])
    with pytest.raises(ValueError, match="has texts"):
        cairn.Regressor().fit(table, classes(score))
    with pytest.raises(cairn.FailedPreconditionError, match="not fitted"):
        cairn.Regressor().predict(table)


# ---- what is kept ----


def test_an_estimator_is_pickled_with_what_it_learned():
    table, score = people()
    model = cairn.Classifier(random_state=0, epochs=5, features={"height": cairn.FeatureColumn.bucketised("height", [170])})
    assert pickle.loads(pickle.dumps(model)).get_params().keys() == model.get_params().keys()
    model.fit(table, classes(score))
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
        assert again.classes_.tolist() == ["no", "yes"] and again.history_ == model.history_


def test_a_saved_estimator_is_a_model_that_reads_columns(tmp_path):
    table, score = people()
    model = cairn.Classifier(random_state=0, epochs=5).fit(table, classes(score))
    loaded = cairn.load_model(model.save(str(tmp_path / "model")))
    assert loaded.metadata == {"estimator": "Classifier", "classes": ["no", "yes"]}
    raw = cairn.Dataset.from_tensor_slices(table)
    lines = ["note,city,height,age", *(f'x,"{city}",{height},{age}' for city, height, age in zip(*(table[name] for name in ("city", "height", "age"))))]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    for data in (loaded.prepare(raw), loaded.examples([str(tmp_path / "people.csv")])):
        made = loaded.predict(data.batch(64))["probability"]
        np.testing.assert_allclose(made[:, 0], model.predict_proba(table)[:, 1], rtol=1e-5)
    with pytest.raises(FileExistsError):
        model.save(str(tmp_path / "model"))


def test_it_is_shown_with_the_parameters_that_were_changed():
    model = cairn.Classifier(epochs=3, layers=(8,))
    assert repr(model) == "Classifier(layers=(8,), epochs=3)"
    assert "not fitted" in model._repr_html_() and "<b>(8,)</b>" in model._repr_html_()
    table, score = people(50)
    assert "fitted on 3 features" in model.fit(table, classes(score))._repr_html_()
    with pytest.raises(ValueError, match="Invalid parameter 'epoch' for estimator"):
        model.set_params(epoch=3)
    assert model.set_params(epochs=7).get_params()["epochs"] == 7


def test_estimators_need_no_scikit_learn():
    program = (
        "import sys, numpy as np, cairn\n"
        "model = cairn.Classifier(epochs=1).fit(np.eye(4), [0, 1, 0, 1])\n"
        "model.predict(np.eye(4)); repr(model); model._repr_html_()\n"
        "assert not any(name.split('.')[0] in ('sklearn', 'scipy', 'pandas') for name in sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr


# ---- Adult ----


def adult(name):
    pandas = pytest.importorskip("pandas")
    with gzip.open(ADULT / name, "rt") as file:
        frame = pandas.read_csv(file, names=COLUMNS, comment="|", skipinitialspace=True)
    frame["income"] = frame["income"].str.rstrip(".")
    return frame


@pytest.mark.parametrize("options", [{}, {"strategy": "parameter_server", "ps": 2, "workers": 2}], ids=["one process", "servers"])
def test_adult_reaches_its_goal_in_five_lines(options, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    train, test = adult("adult.data.gz"), adult("adult.test.gz")
    model = cairn.Classifier(random_state=1, **options).fit(train, "income")
    probability = model.predict_proba(test)[:, 1]
    assert auc(test["income"] == ">50K", probability) >= 0.904
    assert model.score(test, "income") > 0.8


def test_warnings_name_the_line_of_the_caller():
    table, score = people(20)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cairn.Regressor(epochs=1).fit(table, score[:, None])
    assert pathlib.Path(caught[-1].filename).name == "test_estimators.py"
