"""Learning rates that change with the steps taken, by their names in Keras."""

from __future__ import annotations

from cairn._cairn.nn import CosineDecay as CosineDecay
from cairn._cairn.nn import CosineDecayRestarts as CosineDecayRestarts
from cairn._cairn.nn import ExponentialDecay as ExponentialDecay
from cairn._cairn.nn import InverseTimeDecay as InverseTimeDecay
from cairn._cairn.nn import LearningRateSchedule as LearningRateSchedule
from cairn._cairn.nn import PiecewiseConstantDecay as PiecewiseConstantDecay
from cairn._cairn.nn import PolynomialDecay as PolynomialDecay
