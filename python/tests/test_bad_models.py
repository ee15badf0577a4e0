"""Layers, losses, metrics, optimizers, callbacks and models that are given what they cannot take."""

import json

import numpy as np
import pytest

import cairn
from bad import Case, parametrized
from cairn import nn

INVALID, STATE = cairn.InvalidArgumentError, cairn.FailedPreconditionError
X = np.ones((8, 2), "float32")
Y = np.ones(8, "float32")


@pytest.fixture
def strategy():
    made = cairn.OneDeviceStrategy()
    with made.scope():
        yield made
    made.close()


LAYERS = [
    Case("no units", lambda: nn.Dense(), TypeError, "Dense()", '"units" is missing'),
    Case("units of a text", lambda: nn.Dense("8"), TypeError, "Dense()", "\"units\" is '8'", "an int"),
    Case("units of a float", lambda: nn.Dense(8.0), TypeError, "Dense()", '"units" is 8.0', "an int"),
    Case("0 units", lambda: nn.Dense(0), INVALID, "units", "0"),
    Case("-1 units", lambda: nn.Dense(-1), INVALID, "units", "-1"),
    Case("a misspelt argument", lambda: nn.Dense(1, activaton="relu"), TypeError, 'Dense() has no argument "activaton"', 'did you mean "activation"'),
    Case("a misspelt activation", lambda: nn.Dense(1, activation="rlu"), INVALID, "rlu", "did you mean"),
    Case("an activation that is a number", lambda: nn.Dense(1, activation=3), TypeError, "an activation is a name or a function", "not 3"),
    Case("an activation that returns a list", lambda: nn.Dense(1, activation=lambda x: {"a": x})(X), TypeError, "dict", "is no array"),
    Case("an activation that returns nothing", lambda: nn.Dense(1, activation=lambda x: None)(X), TypeError, "None", "is no array"),
    Case("an activation of two", lambda: nn.Dense(1, activation=lambda x, y: x)(X), TypeError, "missing 1 required positional argument"),
    Case("an initializer", lambda: nn.Dense(1, kernel_initializer="glorot"), INVALID, "glorot"),
    Case("an initial value of another shape", lambda: nn.Dense(1, kernel_initializer=np.ones(3, "float32"))(X), INVALID, "dense/kernel", "[2, 1]", "[3]"),
    Case("an initializer that returns a text", lambda: nn.Dense(1, kernel_initializer=lambda a, b, seed: "x")(X), INVALID, "string"),
    Case("a regularizer", lambda: nn.Dense(1, kernel_regularizer="l3"), INVALID, '"l1", "l2"', '"l3"'),
    Case("a regularizer that is a number", lambda: nn.Dense(1, kernel_regularizer=0.1), TypeError, "a regularizer is", "not 0.1"),
    Case("a seed", lambda: nn.Dense(1, seed=-1), INVALID, '"seed" is -1', "at least 0"),
    Case("a name that is a number", lambda: nn.Dense(1, name=1), TypeError, "Dense()", '"name" is 1', "a str"),
    Case("texts as inputs", lambda: nn.Dense(1)(np.array(["a"])), INVALID, "string"),
    Case("ints as inputs", lambda: nn.Dense(1)(np.ones((2, 2), "int64")), INVALID, "dense", "float32", "int64", "astype('float32')"),
    Case("float64 as inputs", lambda: nn.Dense(1)(np.ones((2, 2))), INVALID, "float64", "astype('float32')"),
    Case("inputs without axes", lambda: nn.Dense(1)(1.0), INVALID, "dense"),
    Case("no inputs", lambda: nn.Dense(1)(), TypeError, "Dense.__call__()", '"x" is missing'),
    Case("inputs of another width", lambda: [layer := nn.Dense(1), layer(X), layer(X[:, :1])], INVALID, "dense", "2 inputs", "[8, 1]"),
    Case("a dict as inputs", lambda: nn.Dense(1)({"a": X}), TypeError, "dict", "is no array"),
    Case("an Mlp of a number", lambda: nn.Mlp(8), TypeError, "Mlp()", '"units" is 8', "a list of ints"),
    Case("an Mlp of nothing", lambda: nn.Mlp([]), INVALID, "units"),
    Case("an Mlp of texts", lambda: nn.Mlp([8, "1"]), TypeError, "Mlp()", "\"units\" has '1' at position 1", "an int"),
    Case("Dropout", lambda: nn.Dropout(1.0), INVALID, "dropout", "1"),
    Case("Dropout of a text", lambda: nn.Dropout("half"), TypeError, "Dropout()", "\"rate\" is 'half'", "a number"),
    Case("Embedding without dim", lambda: nn.Embedding(10), TypeError, "Embedding()", '"dim" is missing'),
    Case("Embedding of -1 rows", lambda: nn.Embedding(rows=-1, dim=2), INVALID, "rows", "-1"),
    Case("a combiner", lambda: nn.Embedding(rows=4, dim=2, combiner="max"), INVALID, "combiner", '"max"'),
    Case("float ids", lambda: nn.Embedding(rows=4, dim=2)([0.5]), INVALID, "int32 or int64 ids", "float32"),
    Case("an id beyond", lambda: nn.Embedding(rows=4, dim=2)([4]).numpy(), INVALID, "4"),
    Case("splits without a combiner", lambda: nn.Embedding(rows=4, dim=2)([1, 2], row_splits=[0, 2]), INVALID, "combiner"),
    Case("splits that do not end", lambda: nn.Embedding(rows=4, dim=2, combiner="sum")([1, 2], row_splits=[0, 3]).numpy(), INVALID, "splits"),
    Case("a policy", lambda: nn.RowPolicy(admit_probability=2.0), INVALID, "admit_probability", "2"),
    Case("a policy by place", lambda: nn.RowPolicy(2), TypeError, "RowPolicy()", "by their places", '"admit_after"'),
    Case("Conv2D of vectors", lambda: nn.Conv2D(1, 3)(X), INVALID, "conv2d", "[8, 2]"),
    Case("a padding", lambda: nn.Conv2D(1, 3, padding="full"), INVALID, '"valid" or "same"', '"full"'),
    Case("a kernel of three", lambda: nn.Conv2D(1, (3, 3, 3)), TypeError, "Conv2D()", "a tuple"),
    Case("Sequential of a number", lambda: nn.Sequential([nn.Dense(1), 3]), TypeError, "a layer is", "not 3"),
    Case("Sequential of a layer", lambda: nn.Sequential(nn.Dense(1)), TypeError, "Sequential()", "a list of layers", "a Dense"),
    Case("Sequential of a name", lambda: nn.Sequential(["rlu"]), INVALID, "rlu"),
    Case("a class of layers", lambda: nn.Sequential([nn.Flatten]), TypeError, "a layer is an object, not a class", "Flatten()"),
    Case("the kernel before the call", lambda: nn.Dense(1).kernel, INVALID, "dense", "first call"),
    Case("a layer without call()", lambda: cairn.Layer()(X), NotImplementedError, "Layer", "call()"),
    Case("a weight of no size", lambda: cairn.Layer().add_weight("w", (None, 2)), INVALID, "w", "?"),
    Case("a loss that is no scalar", lambda: nn.add_loss("own", [1.0, 2.0]), INVALID, "own", "scalar"),
    Case("an activation by name", lambda: nn.activation("rlu", X), INVALID, "rlu"),
    Case("Gru of one axis", lambda: nn.GRU(2)(np.ones(3, "float32")), INVALID, "gru"),
]

LOSSES = [
    Case("a misspelt loss", lambda: cairn.Loss("mze"), INVALID, "mze", "did you mean"),
    Case("a loss that is a number", lambda: cairn.Loss(3), TypeError, "a loss is a name or a function", "not 3"),
    Case("an option of another loss", lambda: cairn.Loss("mse", delta="x"), TypeError, "Loss()", "\"delta\" is 'x'", "a number"),
    Case("the input of a loss", lambda: cairn.Loss(lambda p, y: p, input="words"), INVALID, '"numbers"', '"words"'),
    Case("other shapes", lambda: nn.mean_squared_error([[1.0, 2.0]], [[1.0]]), INVALID, "[1, 2]", "[1, 1]"),
    Case("other numbers of examples", lambda: nn.mean_squared_error([1.0, 2.0], [1.0]), INVALID, "2", "1"),
    Case("one argument", lambda: nn.huber([1.0]), TypeError, "huber()", '"label" is missing'),
    Case("a reduction", lambda: nn.reduce_loss([1.0], reduction="max"), INVALID, '"sum"', '"max"'),
    Case("a class id that is a float", lambda: nn.sparse_softmax_cross_entropy([[0.0, 1.0]], [0.5]), INVALID, "float32"),
    Case("a class id beyond", lambda: nn.sparse_softmax_cross_entropy([[0.0, 1.0]], [2]).numpy(), INVALID, "2"),
    Case("class weights by text", lambda: nn.class_weights([0], {"a": 1.0}), TypeError, "class_weights()", "\"weights\" has 'a' as a key", "an int"),
    Case("a loss of one", lambda: cairn.Loss(lambda p: p)([1.0], [1.0]), TypeError, "takes 1 positional argument"),
    Case("a misspelt metric", lambda: nn.Metric("auk"), INVALID, "auk"),
    Case("a curve", lambda: nn.Auc(curve="lift"), INVALID, '"roc" or "pr"', '"lift"'),
    Case("buckets", lambda: nn.Auc(buckets=0), INVALID, "buckets", "0"),
    Case("k", lambda: nn.HitRate(k=-1), INVALID, "k", "-1"),
    Case("merge of another kind", lambda: nn.Auc().merge(nn.Recall()), TypeError, "Auc.merge()", '"other" is a Recall', "an Auc"),
    Case("other numbers of labels", lambda: nn.Accuracy().update([0.1, 0.2], [1]), INVALID, "2", "1"),
    Case("a metric of texts", lambda: nn.Accuracy().update(["a"], ["b"]), INVALID, "string"),
    Case("a direction", lambda: nn.MeanMetric(lambda p, y: p, direction="up"), INVALID, '"rises", "falls"', '"up"'),
    Case("a summary of another metric", lambda: nn.Auc().add([1.0]), INVALID, "auc"),
]


def rule(returned):
    return lambda: cairn.CustomOptimizer(lambda rule: returned, slots={"a": 0.0})


OPTIMIZERS = [
    Case("a misspelt optimizer", lambda: cairn.Optimizer("adm"), INVALID, "adm", 'did you mean "adam"'),
    Case("an argument of another", lambda: cairn.Optimizer("sgd", beta_1=0.5), TypeError, '"sgd"', '"beta_1"'),
    Case("a misspelt argument", lambda: cairn.Optimizer("adam", beta1=0.5), TypeError, '"adam"', '"beta1"', '"beta_1"'),
    Case("an argument of Keras", lambda: cairn.optimizers.Adam(decay=0.1), TypeError, "decay"),
    Case("a text as a rate", lambda: cairn.optimizers.SGD("fast"), TypeError, "a learning rate is a number, a schedule", "'fast'"),
    Case("a negative rate", lambda: cairn.optimizers.SGD(-0.1), INVALID, "learning rate", "-0.1"),
    Case("momentum of a text", lambda: cairn.optimizers.SGD(0.1, momentum="x"), TypeError, '"momentum"', "is a number"),
    Case("momentum beyond", lambda: cairn.optimizers.SGD(0.1, momentum=-1.0), INVALID, "momentum", "-1"),
    Case("a clip below 0", lambda: cairn.optimizers.SGD(clipnorm=-1.0), INVALID, "clipnorm", "-1"),
    Case("an api", lambda: cairn.optimizers.SGD(api="keras3"), INVALID, '"legacy" or "keras2"', '"keras3"'),
    Case("a schedule of texts", lambda: nn.CosineDecay("a", 1), TypeError, "CosineDecay()", "\"initial_learning_rate\" is 'a'", "a number"),
    Case("0 steps of decay", lambda: nn.CosineDecay(0.1, 0), INVALID, "decay_steps", "0"),
    Case("boundaries and values", lambda: nn.PiecewiseConstantDecay([1, 2], [0.1]), INVALID, "PiecewiseConstantDecay", "boundaries"),
    Case("a schedule that returns a text", lambda: cairn.optimizers.SGD(lambda step: "x").minimize(cairn.sum(cairn.Variable(1.0) * 1.0)), INVALID, "string"),
    Case("a loss without variables", lambda: cairn.optimizers.SGD().minimize(cairn.Array(1.0)), INVALID, "variable"),
    Case("a loss that is no scalar", lambda: cairn.optimizers.SGD().minimize(cairn.Variable([1.0, 2.0]) * 1.0), INVALID, "scalar"),
    Case("variables that are arrays", lambda: cairn.optimizers.SGD().minimize(cairn.Array(1.0), [cairn.Array(1.0)]), TypeError, "a list of Variables", "an Array"),
    Case("one variable", lambda: cairn.optimizers.SGD().minimize(cairn.Array(1.0), cairn.Variable(1.0)), TypeError, "a list of Variables", "not a Variable"),
    Case("gradients of numbers", lambda: cairn.optimizers.SGD().apply_gradients([1.0]), TypeError, "pairs (gradient, variable)", "1.0"),
    Case("gradients that are a number", lambda: cairn.optimizers.SGD().apply_gradients(1.0), TypeError, "pairs (gradient, variable)", "1.0"),
    Case("a gradient of another shape", lambda: cairn.optimizers.SGD().apply_gradients([([1.0, 2.0], cairn.Variable([1.0], name="v"))]), INVALID, '"v"', "[2]"),
    Case("a rate that is set to a text", lambda: setattr(cairn.optimizers.SGD(), "learning_rate", "fast"), TypeError, "Optimizer.learning_rate", "'fast'", "a number"),
    Case("a rule without slots", rule(cairn.Array(1.0)), INVALID, "slots"),
    Case("a rule that returns a list", rule((cairn.Array(1.0), [1.0])), TypeError, "a dict of its slots", "list"),
    Case("a rule that forgets a slot", rule((cairn.Array(1.0), {})), INVALID, '"a"'),
    Case("a rule that is no function", lambda: cairn.CustomOptimizer(3), TypeError, "a rule is a function", "3"),
    Case("a slot that is a text", lambda: cairn.CustomOptimizer(lambda r: r.value, slots={"a": "b"}), TypeError, "CustomOptimizer()", "\"slots\" has 'b' for 'a'", "a number"),
    Case("a slot that is none", lambda: cairn.CustomOptimizer(lambda r: r["b"]), KeyError, "b"),
]


def compiled(network=None, optimizer="sgd", loss="mse", **options):
    model = cairn.Model(network or nn.Dense(1), name="net")
    model.compile(optimizer, loss, **options)
    return model


def fit(x=X, y=Y, model=None, **options):
    return (model or compiled()).fit(x, y, **{"verbose": 0, **options})


def raises(*given):
    raise RuntimeError("on purpose")


class Late(cairn.callbacks.Callback):
    def on_epoch_end(self, epoch, logs):
        logs["mine"] = "text"


MODELS = [
    Case("a network that is a number", lambda: cairn.Model(3), TypeError, "a network is a layer, or a function", "3"),
    Case("no network", lambda: cairn.Model(), TypeError, "Model()", '"network" is missing'),
    Case("not compiled", lambda: cairn.Model(nn.Dense(1), name="net").fit(X, Y), STATE, '"net"', "compile()"),
    Case("not built", lambda: compiled().get_weights(), STATE, '"net"', "not built", "build()"),
    Case("a misspelt optimizer", lambda: compiled(optimizer="adm"), INVALID, "adm", "adam"),
    Case("a class of optimizers", lambda: compiled(optimizer=cairn.optimizers.Adam), TypeError, "an optimizer is an object, not a class", "Adam()"),
    Case("a misspelt loss", lambda: compiled(loss="mze"), INVALID, "mze", "did you mean"),
    Case("a class of losses", lambda: compiled(loss=cairn.losses.Huber), TypeError, "a loss is an object, not a class", "Huber()"),
    Case("metrics that are a text", lambda: compiled(metrics="auc"), TypeError, "`metrics` is a list", "'auc'"),
    Case("a misspelt metric", lambda: compiled(metrics=["auk"]), INVALID, "auk", "auc"),
    Case("a class of metrics", lambda: compiled(metrics=[cairn.metrics.AUC]), TypeError, "a metric is an object, not a class", "Auc()"),
    Case("a loss scaling", lambda: compiled(loss_scaling="sum"), INVALID, '"global_batch" or "replica_mean"', '"sum"'),
    Case("loss weights of one loss", lambda: compiled(loss_weights={"a": 1.0}), TypeError, "loss_weights", "dict of losses"),
    Case("steps per execution", lambda: compiled(steps_per_execution=0), INVALID, "steps_per_execution", "0"),
    Case("a misspelt argument of compile", lambda: compiled(metric=["auc"]), TypeError, 'Model.compile() has no argument "metric"', '"metrics"'),
    Case("rows of y", lambda: fit(y=Y[:3]), INVALID, "fit", '"y" has 3 examples', "8"),
    Case("rows of sample_weight", lambda: fit(sample_weight=Y[:3]), INVALID, "fit", "3 examples", "8"),
    Case("no y", lambda: compiled().fit(X, verbose=0), INVALID, "label"),
    Case("y of a dataset", lambda: fit(cairn.Dataset.range(8).batch(2)), TypeError, "fit", "brings its label", "leave y out"),
    Case("a dataset without label", lambda: fit(cairn.Dataset.from_tensor_slices({"x": X}).batch(2), None), INVALID, "label"),
    Case("a dataset without batches", lambda: fit(cairn.Dataset.from_tensor_slices((X, Y)), None), INVALID, "batch"),
    Case("a dataset without end", lambda: fit(cairn.Dataset.from_tensor_slices((X, Y)).repeat().batch(2), None), INVALID, "steps_per_epoch"),
    Case("a generator", lambda: fit((i for i in [1]), None), TypeError, "fit", "a generator", "cairn.Dataset"),
    Case("a text as x", lambda: fit("data.csv"), (INVALID, TypeError), "fit", "x"),
    Case("None as x", lambda: fit(None), TypeError, "None"),
    Case("texts as features", lambda: fit(np.array(["a"] * 8)), INVALID, "string"),
    Case("float64 as features", lambda: fit(X.astype("float64")), INVALID, "float64", "astype('float32')"),
    Case("dates as features", lambda: fit(X.astype("int64").astype("datetime64[s]")), TypeError, "datetime64[s]", "int64"),
    Case("a single number", lambda: fit(1.0, 1.0), INVALID, "fit", '"x"', "single number"),
    Case("no examples", lambda: fit(X[:0], Y[:0]), INVALID, "fit", "no examples"),
    Case("a column twice", lambda: fit({"x": X, "y": Y}, {"y": Y}), INVALID, "fit", "two columns", '"y"'),
    Case("a label that is no column", lambda: fit({"x": X, "target": Y}, "targt"), INVALID, "fit", '"targt"', 'did you mean "target"'),
    Case("0 epochs", lambda: fit(epochs=0), INVALID, "epochs", "0"),
    Case("epochs of a text", lambda: fit(epochs="3"), TypeError, "Model.fit()", "\"epochs\" is '3'", "an int"),
    Case("epochs of a float", lambda: fit(epochs=3.0), TypeError, "Model.fit()", '"epochs" is 3.0', "an int"),
    Case("epochs by place", lambda: compiled().fit(X, Y, 3), TypeError, "Model.fit()", "by their places", "3 are given"),
    Case("a misspelt argument", lambda: fit(batchsize=3), TypeError, 'Model.fit() has no argument "batchsize"', '"batch_size"'),
    Case("a batch of 0", lambda: fit(batch_size=0), INVALID, "batch", "0"),
    Case("a split of 1", lambda: fit(validation_split=1.0), INVALID, "validation_split", "1"),
    Case("a split of all", lambda: fit(validation_split=0.99), INVALID, "validation_split", "0.99"),
    Case("both validations", lambda: fit(validation_split=0.5, validation_data=(X, Y)), INVALID, "validation_data", "validation_split"),
    Case("validation data of one", lambda: fit(validation_data=X), TypeError, "validation_data", "(x, y)"),
    Case("validation data of four", lambda: fit(validation_data=(X, Y, Y, Y)), TypeError, "validation_data", "(x, y)"),
    Case("validation rows", lambda: fit(validation_data=(X, Y[:3])), INVALID, "validation_data", '"y" has 3 examples'),
    Case("class weights by text", lambda: fit(class_weight={"a": 1.0}), TypeError, "Model.fit()", "\"class_weight\" has 'a' as a key", "an int"),
    Case("verbose", lambda: fit(verbose="loud"), TypeError, "Model.fit()", "\"verbose\" is 'loud'", "an int"),
    Case("callbacks that are one", lambda: fit(callbacks=Late()), TypeError, "`callbacks` is a list", "a Late"),
    Case("a class of callbacks", lambda: fit(callbacks=[Late]), TypeError, "an object, not a class", "Late()"),
    Case("a callback that is a number", lambda: fit(callbacks=[3]), TypeError, "a callback is", "on_epoch_end", "3"),
    Case("a callback that raises", lambda: fit(callbacks=[cairn.callbacks.LambdaCallback(on_epoch_end=raises)]), RuntimeError, "on purpose"),
    Case("a callback that logs a text", lambda: fit(callbacks=[Late()]), TypeError, "Late", "numbers", "'text' as 'mine'"),
    Case("what is monitored", lambda: fit(callbacks=[cairn.callbacks.EarlyStopping("val_loss")]), INVALID, "val_loss"),
    Case("a mode", lambda: cairn.callbacks.EarlyStopping(mode="up"), INVALID, '"auto", "min" or "max"', '"up"'),
    Case("patience", lambda: cairn.callbacks.EarlyStopping(patience=-1), INVALID, "patience", "-1"),
    Case("patience of a text", lambda: cairn.callbacks.EarlyStopping(patience="3"), TypeError, "EarlyStopping()", "\"patience\" is '3'", "an int"),
    Case("a folder without name", lambda: cairn.callbacks.TensorBoard(""), INVALID, "folder"),
    Case("a state without its kin", lambda: cairn.callbacks.LambdaCallback(state=lambda: 1), TypeError, "state and restore_state"),
    Case("a network that returns a text", lambda: fit(model=compiled(lambda x: "a")), TypeError, '"net"', "str"),
    Case("a network that returns nothing", lambda: fit(model=compiled(lambda x: None)), TypeError, '"net"', "no array"),
    Case("a network of two", lambda: fit(model=compiled(lambda x, y: x)), TypeError, "missing 1 required positional argument"),
    Case("a network that is a generator", lambda: cairn.Model(lambda x: (yield x)), TypeError, "a network", "generator"),
    Case("a loss that returns nothing", lambda: fit(model=compiled(loss=lambda p, y: None)), TypeError, "None"),
    Case("a loss of all examples", lambda: fit(model=compiled(loss=lambda p, y: cairn.mean(p))), INVALID, "loss", "example"),
    Case("a loss with a dict", lambda: fit(model=compiled(loss={"a": "mse"})), INVALID, '"a"'),
    Case("weights of another model", lambda: [m := compiled(), m.build(X), m.set_weights([X])], INVALID, "set_weights", "2 variables", "1"),
    Case("weights of another shape", lambda: [m := compiled(), m.build(X), m.set_weights([X, Y])], INVALID, "kernel", "[2, 1]", "[8, 2]"),
    Case("weights that are a number", lambda: [m := compiled(), m.build(X), m.set_weights(3)], TypeError, "set_weights", "a list of arrays", "3"),
    Case("features of another width", lambda: [m := compiled(), m.build(X), m.predict(X[:, :1])], INVALID, "dense", "2 inputs", "1]"),
    Case("features by other names", lambda: [m := compiled(lambda features: features["a"]), m.build({"a": X}), m.predict({"b": X})], INVALID, '"a"'),
    Case("no examples to predict", lambda: [m := compiled(), m.build(X), m.predict(X[:0])], INVALID, "predict", "no examples"),
    Case("a batch of a text", lambda: [m := compiled(), m.build(X), m.predict(X, "3")], TypeError, "Model.predict()", "\"batch_size\" is '3'", "an int"),
    Case("evaluate without y", lambda: [m := compiled(), m.build(X), m.evaluate(X)], INVALID, "label"),
    Case("a model to load", lambda: cairn.load_model("/none"), cairn.NotFoundError, "/none"),
    Case("a folder that is a number", lambda: cairn.load_model(3), TypeError, "load_model()", '"folder" is 3', "a str"),
    Case("a device to load on", lambda: cairn.load_model("/none", "gpu:99"), cairn.Error, "gpu:99"),
]


@parametrized(LAYERS)
def test_a_layer_says_what_it_takes(strategy, case):
    case.check()


@parametrized(LOSSES)
def test_a_loss_or_a_metric_says_what_it_takes(strategy, case):
    case.check()


@parametrized(OPTIMIZERS)
def test_an_optimizer_says_what_it_takes(strategy, case):
    case.check()


@parametrized(MODELS)
def test_a_model_says_what_it_takes(strategy, case):
    case.check()


def test_a_saved_model_says_what_is_damaged_and_what_it_takes(strategy, tmp_path):
    model = compiled(lambda features: nn.Dense(1, name="d")(cairn.concat([features["a"], features["b"]], 1)))
    model.build({"a": X, "b": X})
    folder = model.save(str(tmp_path / "m"))
    loaded = cairn.load_model(folder)
    cases = [
        Case("an array", lambda: loaded.predict(X), TypeError, '"net"', "2 columns", "a dict of arrays"),
        Case("a column that is missing", lambda: loaded.predict({"a": X, "bb": X}), INVALID, '"b" is missing', '"bb"'),
        Case("another width", lambda: loaded.predict({"a": X, "b": X[:, :1]}), INVALID, '"b"'),
        Case("other rows", lambda: loaded.predict({"a": X, "b": X[:3]}), INVALID, '"b"'),
        Case("texts", lambda: loaded.predict({"a": X, "b": np.array(["a"] * 8)}), INVALID, '"b"', "string"),
        Case("a generator", lambda: loaded.predict(i for i in [1]), TypeError, "generator"),
        Case("a class of no model", lambda: cairn.LoadedModel(folder), TypeError, "LoadedModel"),
    ]
    for case in cases:
        case.check()
    about = next(path for path in (tmp_path / "m").rglob("*.json"))
    about.write_text(about.read_text()[:20])
    with pytest.raises(json.JSONDecodeError):
        json.loads(about.read_text())
    Case("damaged", lambda: cairn.load_model(folder), cairn.DataLossError, about.name).check()
