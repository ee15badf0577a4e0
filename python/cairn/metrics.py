"""Metrics by the names of their classes in Keras, and Cairn's own."""

from __future__ import annotations

from cairn._cairn.nn import Accuracy as Accuracy
from cairn._cairn.nn import AnyAccuracy as AnyAccuracy
from cairn._cairn.nn import Auc as AUC
from cairn._cairn.nn import BestThreshold as BestThreshold
from cairn._cairn.nn import BinaryAccuracy as BinaryAccuracy
from cairn._cairn.nn import Calibration as Calibration
from cairn._cairn.nn import CategoricalAccuracy as CategoricalAccuracy
from cairn._cairn.nn import GroupedAuc as GroupedAUC
from cairn._cairn.nn import HitRate as HitRate
from cairn._cairn.nn import ListMetric as ListMetric
from cairn._cairn.nn import LogLoss as LogLoss
from cairn._cairn.nn import Mean as Mean
from cairn._cairn.nn import MeanAbsoluteError as MeanAbsoluteError
from cairn._cairn.nn import MeanMetric as MeanMetric
from cairn._cairn.nn import MeanSquaredError as MeanSquaredError
from cairn._cairn.nn import Metric as Metric
from cairn._cairn.nn import Mrr as MRR
from cairn._cairn.nn import Ndcg as NDCG
from cairn._cairn.nn import Precision as Precision
from cairn._cairn.nn import Recall as Recall
from cairn._cairn.nn import RecallAtK as RecallAtK
from cairn._cairn.nn import RootMeanSquaredError as RootMeanSquaredError
from cairn._cairn.nn import SparseCategoricalAccuracy as SparseCategoricalAccuracy
from cairn._cairn.nn import SparseTopKCategoricalAccuracy as SparseTopKCategoricalAccuracy
from cairn._cairn.nn import TopKCategoricalAccuracy as TopKCategoricalAccuracy
from cairn._cairn.nn import metric_names as metric_names

__all__ = [
    "AUC",
    "MRR",
    "NDCG",
    "Accuracy",
    "AnyAccuracy",
    "BestThreshold",
    "BinaryAccuracy",
    "Calibration",
    "CategoricalAccuracy",
    "GroupedAUC",
    "HitRate",
    "ListMetric",
    "LogLoss",
    "Mean",
    "MeanAbsoluteError",
    "MeanMetric",
    "MeanSquaredError",
    "Metric",
    "Precision",
    "Recall",
    "RecallAtK",
    "RootMeanSquaredError",
    "SparseCategoricalAccuracy",
    "SparseTopKCategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "metric_names",
]
