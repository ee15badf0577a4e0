"""Classifier and Regressor within scikit-learn: its checks, pipelines, searches."""

import pickle
import warnings

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn", minversion="1.6")

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

import cairn

#: What is known to fail, and why.
EXPECTED = {"check_sample_weight_equivalence_on_dense_data": "a step is of a batch, and repeated examples make other batches"}

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that they are no subclasses of scikit-learn's
    checks = parametrize_with_checks(
        [cairn.Classifier(), cairn.Regressor()], expected_failed_checks=lambda estimator: EXPECTED, xfail_strict=True
    )


@checks
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def table(rows=200, seed=0):
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(seed)
    frame = pandas.DataFrame({"age": random.integers(18, 90, rows), "city": random.choice(["Bern", "Ulm", "Bonn"], rows)})
    return frame, (frame["age"] > 50) ^ (frame["city"] == "Ulm")


def test_scikit_learn_knows_what_they_are():
    assert is_classifier(cairn.Classifier()) and not is_regressor(cairn.Classifier())
    assert is_regressor(cairn.Regressor()) and not is_classifier(cairn.Regressor())
    model = cairn.Classifier(
        epochs=3, layers=[4], features={"age": cairn.FeatureColumn.bucketised("age", [50])}, strategy=cairn.OneDeviceStrategy()
    )
    again = clone(model)
    assert repr(again.get_params()) == repr(model.get_params()) and again.strategy is model.strategy
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError) as caught:
        model.predict([[1.0]])
    assert isinstance(caught.value, cairn.FailedPreconditionError)


def test_a_pipeline_takes_a_frame():
    frame, y = table()
    scaled = ColumnTransformer([("scale", StandardScaler(), ["age"])], remainder="passthrough", verbose_feature_names_out=False)
    pipeline = make_pipeline(scaled.set_output(transform="pandas"), cairn.Classifier(random_state=0, epochs=60, learning_rate=0.01))
    pipeline.fit(frame, y, classifier__sample_weight=np.ones(len(y)))
    assert pipeline.score(frame, y) > 0.95
    assert pipeline[-1].feature_names_in_.tolist() == ["age", "city"] and pipeline.classes_.tolist() == [False, True]
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict_proba(frame), pipeline.predict_proba(frame))
    assert "Classifier" in pipeline._repr_html_()


def test_a_search_runs_in_several_processes():
    frame, y = table()
    model = cairn.Classifier(random_state=0, learning_rate=0.01)
    search = GridSearchCV(model, {"epochs": [1, 60], "features": [None, {"city": None}]}, cv=2, n_jobs=2, scoring="roc_auc", error_score="raise")
    search.fit(frame, y)
    assert search.best_params_ == {"epochs": 60, "features": None} and search.best_score_ > 0.9
    assert search.score(frame, y) > 0.95
    regressor = cairn.Regressor(random_state=0, epochs=60)
    assert cross_val_score(regressor, frame, frame["age"] * 2.0, cv=2).min() > 0.9


def test_a_search_starts_servers_for_each_model():
    frame, y = table(60)
    model = cairn.Classifier(random_state=0, epochs=2, strategy="parameter_server", ps=1, workers=1)
    search = GridSearchCV(model, {"embedding_dim": [2, 4]}, cv=2, error_score="raise").fit(frame, y)
    assert search.cv_results_["mean_test_score"].shape == (2,)


def test_other_estimators_are_made_of_them():
    frame, y = table()
    members = [(str(seed), cairn.Classifier(random_state=seed, epochs=60, learning_rate=0.01)) for seed in (0, 1)]
    assert VotingClassifier(members, voting="soft").fit(frame, y).score(frame, y) > 0.95
    assert CalibratedClassifierCV(members[0][1], cv=2, method="sigmoid").fit(frame, y).score(frame, y) > 0.9
