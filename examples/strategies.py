"""One model under every strategy: the object at the top changes, and nothing else does.

    python examples/strategies.py --strategy=one_device
    python examples/strategies.py --strategy=mirrored
    python examples/strategies.py --strategy=mesh
    python examples/strategies.py --strategy=central_storage
    python examples/strategies.py --strategy=multi_worker_mirrored     on every worker of TF_CONFIG
    cairn up --ps 2 --workers 1 --
        python examples/strategies.py --strategy=parameter_server      in one line; or hybrid

With --checkpoints=FOLDER it saves on its way, and workers that are started again go on from there.
"""

import argparse

import numpy as np

import cairn

EXAMPLES, NUMBERS, GLOBAL_BATCH = 1024, 8, 64
SEED = 1


def strategy_of(name: str) -> cairn.Strategy:
    if name == "mesh":
        devices = cairn.DeviceAssignment.build(num_replicas=2, num_logical_devices=2)
        return cairn.MeshStrategy(devices, seed=SEED)
    return cairn.make_strategy(name, seed=SEED)


def points() -> cairn.Dataset:
    """Points inside and outside of a sphere, which no plane separates."""
    random = cairn.Random(SEED)
    x = np.array([random.below(2000) for _ in range(EXAMPLES * NUMBERS)], np.float32)
    x = x.reshape(EXAMPLES, NUMBERS) / np.float32(1000) - np.float32(1)
    squares = np.zeros(EXAMPLES, np.float32)
    for column in x.T:
        squares += column * column
    y = (squares < np.float32(2.6)).astype(np.float32).reshape(-1, 1)
    return cairn.Dataset.from_tensor_slices({"x": x, "y": y}, label="y")


def train(strategy: cairn.Strategy, steps: int, folder: str) -> None:
    with strategy.scope():
        model = cairn.nn.Mlp([16, 16, 1])
        optimizer = cairn.optimizers.Adam(0.01)

        @strategy.function
        def step(batches: cairn.Iterator) -> cairn.Array:
            features, label = batches.get_next()
            losses = cairn.nn.sigmoid_cross_entropy(model(features["x"]), label)
            loss = cairn.sum(losses) / GLOBAL_BATCH
            optimizer.minimize(loss)
            return loss

        done = 0
        if isinstance(strategy, cairn.MultiWorkerMirroredStrategy) and folder:
            if strategy.restore_newest(folder):
                done = strategy.global_step
        data = points().shuffle(EXAMPLES, SEED).repeat().batch(GLOBAL_BATCH)
        batches = strategy.iterate(strategy.experimental_distribute_dataset(data))
        while done < steps:
            loss = strategy.reduce("sum", strategy.run(step, batches)).item()
            done += 1
            if done % 100 != 0 and done != steps:
                continue
            # Before the checkpoint: a run that is started again goes on after it and prints no
            # step twice that was saved, so a line that came after could be lost for good.
            print(f"step {done}: loss {loss:.9g}", flush=True)
            if folder:
                strategy.save(folder)


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--strategy", default="one_device")
    flags.add_argument("--steps", type=int, default=200)
    flags.add_argument("--checkpoints", default="")
    given = flags.parse_args()
    train(strategy_of(given.strategy), given.steps, given.checkpoints)
