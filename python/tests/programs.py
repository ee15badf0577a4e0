"""Programs with one wrong line each, marked "# wrong": by the moment at which the error is found."""

# What all of them begin with. A program of RECORDED, HERE and FITTED runs in the scope of `strategy`.
HEAD = """\
import numpy as np
import cairn
from cairn import nn
x, y = np.ones((8, 2), "float32"), np.ones(8, "float32")
ids = np.array([1, 9])
def fit(network, optimizer="sgd", loss="mse", x=x, y=y, callbacks=None, **options):
    model = cairn.Model(network)
    model.compile(optimizer, loss, **options)
    model.fit(x, y, batch_size=4, verbose=0, callbacks=callbacks)
def run(function, *arguments):
    return strategy.run(strategy.function(function), *arguments)
"""

# Found while it is recorded: a line of the traceback.
RECORDED = {
    "shapes": """
def step(a):
    b = a * 2.0
    return b @ a  # wrong
run(step, x)
""",
    "a branch": """
def step(a):
    if a[0, 0] > 0:  # wrong
        return a
    return -a
run(step, x)
""",
    "a helper's helper": """
def inner(a):
    return cairn.reshape(a, (3, 3))  # wrong
def outer(a):
    return inner(a) + 1.0
run(outer, x)
""",
    "an assignment": """
v = cairn.Variable(x, name="v")
def step():
    v.assign_add(y)  # wrong
run(step)
""",
    "what is returned": """
def step(a):
    b = a + 1.0
    return {"b": b, "name": "b"}  # wrong
run(step, x)
""",
    "a nest": """
def step(a):
    return cairn.concat([a, a["x"]], 1)  # wrong
run(step, x)
""",
    "a layer's call": """
class Own(cairn.Layer):
    def build(self, a):
        self.w = self.add_weight("w", (3, 1))
    def call(self, a):
        return a @ self.w  # wrong
fit(nn.Sequential([nn.Dense(2), Own()]))
""",
    "a layer's build": """
class Own(cairn.Layer):
    def build(self, a):
        self.w = self.add_weight("w", (2, "one"))  # wrong
    def call(self, a):
        return a @ self.w
fit(Own())
""",
    "an activation": """
def activation(a):
    return cairn.concat([a, y], 0)  # wrong
fit(nn.Dense(1, activation=activation))
""",
    "an initial value": """
def initial(fan_in, fan_out, seed):
    return np.ones((fan_in, missing))  # wrong
fit(nn.Dense(1, kernel_initializer=initial))
""",
    "a schedule": """
def rate(step):
    return 0.1 if step < 10 else 0.01  # wrong
fit(nn.Dense(1), optimizer=cairn.optimizers.SGD(rate))
""",
    "an update rule": """
def rule(given):
    return given.value - given["velocity"]  # wrong
fit(nn.Dense(1), optimizer=cairn.CustomOptimizer(rule))
""",
    "a loss": """
def loss(prediction, label):
    return cairn.square(prediction - cairn.cast(label, "int64"))  # wrong
fit(nn.Dense(1), loss=loss)
""",
    "a metric": """
def metric(prediction, label):
    return prediction @ label  # wrong
fit(nn.Dense(1), metrics=[metric])
""",
    "a map": """
def mapped(features):
    return {"z": features["xx"]}  # wrong
cairn.Dataset.from_tensor_slices({"x": x}).map(mapped)
""",
    "a filter": """
data = cairn.Dataset.from_tensor_slices({"x": x})
few = data.filter(lambda of: of["x"] * 2.0)  # wrong
""",
    "a callback": """
class Own(cairn.callbacks.Callback):
    def on_epoch_end(self, epoch, logs):
        print(logs["auc"])  # wrong
fit(nn.Dense(1), callbacks=[Own()])
""",
    "a generator": """
def rows():
    yield {"x": 1.0}
    yield {"x": 1.0 / 0}  # wrong
list(cairn.Dataset.from_generator(rows, {"x": "float32"}))
""",
    "a network": """
def network(features):
    return nn.Dense(1)(features) @ y  # wrong
fit(network)
""",
}

# Found when a step runs in this process: the origin and the message.
HERE = {
    "shapes": """
def step(a, b):
    c = a + 1.0
    return c @ b  # wrong
run(step, x, x)
""",
    "an id": """
v = cairn.Variable(np.zeros((4, 2), "float32"), name="rows")
def step(ids):
    rows = v.gather(ids)  # wrong
    return rows * 2.0
run(step, ids)
""",
    "a number that is not finite": """
def step(a):
    b = cairn.log(a - 1.0)
    return cairn.check_numerics(b, "the logarithm")  # wrong
run(step, x)
""",
    "a map": """
table = cairn.Array(np.arange(4.0))
def mapped(features):
    return {"z": cairn.gather(table, features["ids"])}  # wrong
list(cairn.Dataset.from_tensor_slices({"ids": ids}).map(mapped))
""",
    "outside of any function": """
a = cairn.Array(np.arange(4.0))
b = cairn.gather(a, [9])  # wrong
print(b.numpy())
""",
    "a layer": """
table = nn.Embedding(rows=4, dim=2)
def network(features):
    rows = table(features["ids"])  # wrong
    return rows[:, :1]
fit(network, x={"ids": np.arange(8)})
""",
    "a layer's call in fit": """
class Own(cairn.Layer):
    def call(self, a):
        return cairn.gather(np.ones((4, 1), "float32"), a)  # wrong
fit(nn.Sequential([Own(), nn.Dense(1)]), x=np.arange(8))
""",
    "a loss": """
def loss(prediction, label):
    rows = cairn.gather(np.ones(4, "float32"), cairn.cast(label, "int64"))  # wrong
    return prediction[:, 0] * rows
fit(nn.Dense(1), loss=loss, y=np.arange(8.0, dtype="float32"))
""",
    "a metric": """
def metric(prediction, label):
    return cairn.gather(np.ones(4, "float32"), cairn.cast(label, "int64"))  # wrong
fit(nn.Dense(1), metrics=[metric], y=np.arange(8.0, dtype="float32"))
""",
}

# Found when a closure or a step of fit() runs on a worker. `coordinator` is there.
WORKER = {
    "an id": """
v = cairn.Variable(np.zeros((4, 2), "float32"), name="id/rows")
def step(ids):
    rows = v.gather(ids)  # wrong
    return rows * 2.0
coordinator.schedule(strategy.function(step), (ids,)).get()
""",
    "shapes": """
def step(a, b):
    c = a + 1.0
    return c @ b  # wrong
coordinator.schedule(strategy.function(step), (x, x))
coordinator.join()
""",
    "a number that is not finite": """
def step(a):
    return cairn.check_numerics(cairn.log(a - 1.0), "the logarithm")  # wrong
coordinator.schedule(strategy.function(step), (x,))
coordinator.join()
""",
    "a map": """
table = cairn.Array(np.arange(4.0))
def mapped(features):
    return {"z": cairn.gather(table, features["ids"])}  # wrong
data = coordinator.create_shared_dataset(cairn.Dataset.from_tensor_slices({"ids": ids}).map(mapped).batch(2))
step = strategy.function(lambda batches: batches.get_next()["z"])
coordinator.schedule(step, (data,)).get()
""",
    "a layer": """
table = nn.Embedding(rows=4, dim=2, name="layer/rows")
def network(features):
    rows = table(features["ids"])  # wrong
    return rows[:, :1]
fit(network, x={"ids": np.arange(8)})
""",
    "a loss": """
def loss(prediction, label):
    rows = cairn.gather(np.ones(4, "float32"), cairn.cast(label, "int64"))  # wrong
    return prediction[:, 0] * rows
fit(nn.Dense(1, name="loss/d"), loss=loss, y=np.arange(8.0, dtype="float32"))
""",
}
