"""Callbacks of fit: Cairn's own, and those that are written in Python."""

import csv
import gc
import os
import signal
import threading
import weakref

import numpy as np
import pytest

import cairn
from cairn import callbacks

X = np.random.default_rng(1).normal(size=(64, 3)).astype("float32")
Y = X.sum(1)


def compiled(optimizer=None, **options):
    model = cairn.Model(cairn.nn.Dense(1, name="d", kernel_initializer="zeros"))
    model.compile(optimizer or cairn.optimizers.SGD(0.05), "mse", **options)
    return model


def fit(model, *used, epochs=3, **options):
    return model.fit(X, Y, epochs=epochs, batch_size=16, callbacks=list(used), verbose=0, **options)


@pytest.fixture(autouse=True)
def strategy():
    made = cairn.OneDeviceStrategy()
    with made.scope():
        yield made
    made.close()


class Recorder(callbacks.Callback):
    def __init__(self):
        self.calls = []

    def on_train_begin(self):
        self.calls.append(("train_begin", self.run.epochs, self.run.steps_per_epoch))

    def on_train_end(self, logs):
        self.calls.append(("train_end", sorted(logs)))

    def on_epoch_begin(self, epoch):
        self.calls.append(("epoch_begin", epoch))

    def on_epoch_end(self, epoch, logs):
        logs["mine"] = epoch * 10.0
        self.calls.append(("epoch_end", epoch, sorted(logs)))

    def on_train_batch_end(self, step, logs):
        self.calls.append(("batch_end", step, "loss" in logs))

    def on_test_begin(self):
        self.calls.append(("test_begin",))

    def on_test_end(self, logs):
        self.calls.append(("test_end", sorted(logs)))


def test_methods_are_called_in_order_and_logs_may_be_changed():
    seen = Recorder()
    model = compiled()
    history = fit(model, seen, epochs=1)
    assert seen.calls[:3] == [("train_begin", 1, 4), ("epoch_begin", 0), ("batch_end", 0, True)]
    assert seen.calls[-2:] == [("epoch_end", 0, ["loss", "mine"]), ("train_end", ["loss"])]
    assert history["mine"] == [0.0] and seen.model is model
    del seen.calls[:]
    model.evaluate(X, Y, callbacks=[seen])
    assert seen.calls == [("test_begin",), ("test_end", ["loss"])]


def test_the_run_is_of_use_within_methods_alone():
    seen = Recorder()
    fit(compiled(), seen, epochs=1)
    with pytest.raises(cairn.FailedPreconditionError, match="within"):
        seen.run.stop_training()


def test_any_object_with_a_method_is_a_callback_and_stops_training():
    class Stop:
        def on_epoch_end(self, epoch, logs):
            if epoch == 1:
                self.run.stop_training()

    assert fit(compiled(), Stop(), epochs=9).epoch == [0, 1]
    lines = []
    fit(compiled(), callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: lines.append(logs["loss"])))
    assert len(lines) == 3 and lines[2] < lines[0]


def test_an_error_in_a_callback_ends_fit_with_it():
    ended = []

    class Broken(callbacks.Callback):
        def on_train_batch_end(self, step, logs):
            raise KeyError("mine")

        def on_train_end(self, logs):
            ended.append(True)

    with pytest.raises(KeyError, match="mine"):
        fit(compiled(), Broken())
    assert ended == [True]
    with pytest.raises(TypeError, match=r"EarlyStopping\(\)"):
        fit(compiled(), callbacks.EarlyStopping)
    with pytest.raises(TypeError, match="numbers"):
        fit(compiled(), callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: logs.update(a="b")))


def test_early_stopping_puts_the_best_weights_back():
    stop = callbacks.EarlyStopping(monitor="score", mode="max", patience=2, restore_best_weights=True)
    weights = []

    class Score(callbacks.Callback):
        def on_epoch_end(self, epoch, logs):
            logs["score"] = [1.0, 5.0, 2.0, 1.0][epoch]
            weights.append(self.model.get_weights()[0])

    model = compiled()
    history = fit(model, Score(), stop, epochs=9)
    assert history.epoch == [0, 1, 2, 3]
    assert (stop.stopped_epoch, stop.best_epoch) == (3, 1)
    np.testing.assert_array_equal(model.get_weights()[0], weights[1])


def test_rates_are_scheduled_and_lowered():
    model = compiled()
    history = fit(model, callbacks.LearningRateScheduler(lambda epoch, rate: 0.5 / (epoch + 1)))
    np.testing.assert_allclose(history["learning_rate"], [0.5, 0.25, 0.5 / 3], rtol=1e-6)
    plateau = callbacks.ReduceLROnPlateau(monitor="same", mode="min", factor=0.5, patience=1)
    same = callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: logs.update(same=1.0))
    history = fit(compiled(cairn.optimizers.SGD(0.5)), same, plateau)
    np.testing.assert_allclose(model.learning_rate, 0.5 / 3, rtol=1e-6)
    assert history["learning_rate"][-1] < 0.5
    with pytest.raises(TypeError, match="returns a learning rate"):
        fit(compiled(), callbacks.LearningRateScheduler(lambda epoch, rate: "slow"))

    class Halve(callbacks.Callback):
        adjusts_learning_rate = True

        def on_epoch_begin(self, epoch):
            self.model.learning_rate = 0.1 / 2**epoch

    np.testing.assert_allclose(fit(compiled(), Halve())["learning_rate"], [0.1, 0.05, 0.025], rtol=1e-6)


def test_checkpoints_and_the_best_model_are_saved(tmp_path):
    saved = callbacks.ModelCheckpoint(
        str(tmp_path / "c"), monitor="loss", save_best_only=True, model=str(tmp_path / "best"), keep_last=2
    )
    model = compiled()
    fit(model, saved)
    assert os.path.exists(saved.newest)
    np.testing.assert_allclose(cairn.load_model(str(tmp_path / "best")).predict(X), model.predict(X), rtol=1e-6)
    with pytest.raises(ValueError, match="int8"):
        callbacks.ModelCheckpoint("c", row_form="int4")


def test_logs_are_written_as_csv_and_for_tensorboard(tmp_path):
    fit(compiled(), callbacks.CSVLogger(str(tmp_path / "log.csv")), callbacks.TensorBoard(str(tmp_path / "tb")))
    lines = list(csv.DictReader(open(tmp_path / "log.csv")))
    assert [line["epoch"] for line in lines] == ["0", "1", "2"] and float(lines[2]["loss"]) < float(lines[0]["loss"])
    assert any(name.startswith("events") for _, _, names in os.walk(tmp_path / "tb") for name in names)


def test_a_loss_that_is_not_finite_is_an_error_unless_a_callback_takes_it():
    bad = np.full(64, np.nan, "float32")
    with pytest.raises(cairn.NotFiniteError):
        compiled().fit(X, bad, verbose=0)
    compiled().fit(X, bad, verbose=0, callbacks=[callbacks.TerminateOnNaN()])


class Counter(callbacks.Callback):
    def __init__(self, stop_after=None):
        self.count, self.array, self.stop_after = 0, np.zeros(2, "float32"), stop_after

    def on_epoch_end(self, epoch, logs):
        self.count += 1
        self.array += 1
        if self.count == self.stop_after:
            raise RuntimeError("killed")

    def state(self):
        return {"count": self.count, "arrays": [self.array]}

    def restore_state(self, state):
        self.count, self.array = state["count"], state["arrays"][0].copy()


def test_a_killed_fit_goes_on_with_the_states_of_callbacks(tmp_path, strategy):
    backup = str(tmp_path / "backup")
    whole = compiled()
    fit(whole, epochs=4)
    expected = whole.get_weights()

    first = Counter()
    killed = callbacks.LambdaCallback(on_epoch_begin=lambda epoch: 1 / 0 if epoch == 2 else None)
    with pytest.raises(ZeroDivisionError):
        fit(compiled(), first, callbacks.BackupAndRestore(backup), killed, epochs=4)
    assert first.count == 2
    assert os.path.exists(backup)

    again = Counter()
    restored = compiled()
    history = fit(restored, again, callbacks.BackupAndRestore(backup), epochs=4)
    assert (again.count, again.array.tolist()) == (4, [4, 4])
    assert history.epoch == [0, 1, 2, 3]
    assert not os.path.exists(backup) or os.listdir(backup) == []


def test_the_first_interrupt_ends_fit_in_order():
    ended = []

    class Last(callbacks.Callback):
        def on_epoch_begin(self, epoch):
            if epoch == 1:
                threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()

        def on_train_end(self, logs):
            ended.append(self.run.epochs)

    model = compiled()
    with pytest.raises(KeyboardInterrupt):
        fit(model, Last(), epochs=10_000_000)
    assert ended == [10_000_000]
    assert model.evaluate(X, Y)["loss"] < 5


def test_lines_are_printed_where_python_prints(capsys):
    model = compiled()
    model.fit(X, Y, epochs=2, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[1].startswith("Epoch 2/2  2 steps") and "  loss " in lines[1]
    model.fit(X, Y, epochs=2, verbose=0)
    assert capsys.readouterr().out == ""


def test_a_callback_that_its_own_function_refers_to_is_collected():
    def make():
        used = []

        def schedule(epoch, rate):
            return rate if used else 0.1

        used.append(callbacks.LearningRateScheduler(schedule))
        return weakref.ref(schedule)

    known = make()
    gc.collect()
    gc.collect()
    assert known() is None
