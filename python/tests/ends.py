"""Programs that end in every way, drawn from a seed (test_ends.py)."""

HEAD = """
import atexit, sys, threading
import numpy as np
import cairn
print("started", flush=True)
"""
CLUSTER = """
cluster = cairn.LocalCluster(ps=1, workers=1)
strategy = cluster.strategy()
coordinator = cairn.ClusterCoordinator(strategy)
with strategy.scope():
    table = cairn.Variable(np.zeros((64, 8), "float32"), name="table")
    model = cairn.Model(cairn.nn.Mlp([8, 1]))
    model.compile(optimizer="adam", loss="mse")
@strategy.function
def step(x):
    table.scatter_add(np.arange(8), np.ones((8, 8), "float32"))
    return cairn.reduce_sum(x)
def schedule():
    return [coordinator.schedule(step, (np.ones(256, "float32"),)) for _ in range(1000)]
"""
LOCAL = """
strategy = cairn.OneDeviceStrategy()
with strategy.scope():
    model = cairn.Model(cairn.nn.Mlp([8, 1]))
    model.compile(optimizer="adam", loss="mse")
"""
DATA = """
x = np.random.default_rng(0).normal(size=(4096, 16)).astype("float32")
y = x.sum(axis=1)
def fit(epochs=1, callbacks=None):
    return model.fit(x, y, epochs=epochs, batch_size=512, verbose=0, callbacks=callbacks)
def numbers():
    while True:
        yield {"x": 1.0}
class Own(cairn.callbacks.Callback):
    def __init__(self, act=None):
        self.act = act
    def on_epoch_end(self, epoch, logs):
        if self.act:
            self.act()
"""
# What lies about when the program ends.
AROUND = {
    "a cycle": """
class Holder:
    pass
holder = Holder()
holder.strategy, holder.itself, holder.model = strategy, holder, model
@strategy.function
def looking(x):
    return x + (1.0 if holder else 2.0)
holder.function = looking
""",
    "a daemon thread": """
def turn():
    while True:
        np.asarray(cairn.exp(cairn.Array([1.0])))
threading.Thread(target=turn, daemon=True).start()
""",
    "a daemon thread that fits": """
other = cairn.OneDeviceStrategy()
with other.scope():
    model_2 = cairn.Model(cairn.nn.Dense(1))
    model_2.compile(optimizer="sgd", loss="mse")
threading.Thread(target=lambda: model_2.fit(x, y, epochs=100000, verbose=0), daemon=True).start()
""",
    "a daemon thread that reads": """
def read():
    for _ in cairn.Dataset.from_generator(numbers, {"x": "float32"}).batch(8).prefetch(4):
        pass
threading.Thread(target=read, daemon=True).start()
""",
    "an iterator": """
reading = iter(cairn.Dataset.from_generator(numbers, {"x": "float32"}).batch(8).prefetch(4))
next(reading)
""",
    "a fitted model": """
fit(callbacks=[Own(), cairn.callbacks.EarlyStopping("loss", patience=3)])
""",
    "a thread that has ended": """
thread = threading.Thread(target=fit)
thread.start()
thread.join()
""",
    "a call at the end": """
@atexit.register
def last_call():
    model.build(x)
""",
    "a layer in a cycle": """
class Layer(cairn.Layer):
    def build(self, x):
        self.w = self.add_weight("w", (16, 1))
    def call(self, x):
        return x @ self.w
layer = Layer(name="own")
layer.itself, layer.activation = layer, cairn.nn.Dense(1, activation=lambda z: z + (0.0 if layer else 1.0))
with strategy.scope():
    layer(x[:2])
""",
}
AROUND_CLUSTER = {
    "closures": """
values = schedule()
""",
    "a daemon thread that joins": """
schedule()
threading.Thread(target=coordinator.join, daemon=True).start()
""",
    "a failed closure": """
@strategy.function
def fails(ids):
    return table.gather(ids)
coordinator.schedule(fails, (np.array([99]),))
""",
}
# What is done last, and the exit status.
LAST = {
    "": 0,
    "sys.exit(3)": 3,
    "raise ValueError('on purpose')": 1,
    "raise SystemExit('a text')": 1,
    "raise KeyboardInterrupt": 130,
    "del strategy": 0,
    "del model": 0,
    "strategy.close()": 0,
    "fit(callbacks=[Own(lambda: sys.exit(3))])": 3,
    "fit(callbacks=[Own(lambda: 1 / 0)])": 1,
    "strategy.run(strategy.function(lambda: 1 / 0))": 1,
    "strategy.run(strategy.function(lambda: sys.exit(3)))": 3,
}
LAST_CLUSTER = {
    "coordinator.join()": 0,
    "cluster.close()": 0,
    "coordinator.cancel()": 0,
    "del cluster, coordinator": 0,
    "with cluster: raise ValueError('on purpose')": 1,
}
# What runs when Ctrl-C is pressed, after it has printed its word.
WAITS = {"fitting": "fit(epochs=100000)", "fitting with a callback": "fit(epochs=100000, callbacks=[Own(lambda: None)])"}
WAITS_CLUSTER = {"joining": "while True: schedule(), coordinator.join()", "getting": "while True: schedule()[-1].get()"}


def program(random):
    """Its text, the word after which Ctrl-C is pressed (or None), and the exit statuses that are right."""
    cluster = random.random() < 0.5
    around = AROUND | (AROUND_CLUSTER if cluster else {})
    text = HEAD + (CLUSTER if cluster else LOCAL) + DATA
    chosen = random.sample(sorted(around), random.randrange(4))
    # A closure that failed ends the next wait, so that nothing may wait behind it.
    fails = "a failed closure" in chosen
    chosen.sort(key=lambda name: name == "a failed closure")
    for name in chosen:
        text += around[name]
    way = random.random()
    if way < 0.25 and not fails:
        waits = WAITS | (WAITS_CLUSTER if cluster else {})
        word = random.choice(sorted(waits))
        return f'{text}print("{word}", flush=True)\n{waits[word]}\n', word, {130}
    lasts = LAST | (LAST_CLUSTER if cluster else {})
    last = random.choice(sorted(lasts))
    if fails and ("fit" in last or "join" in last or "run(" in last):
        last = ""
    return text + last + "\n", "started" if way < 0.5 else None, {lasts[last], 130} if way < 0.5 else {lasts[last]}
