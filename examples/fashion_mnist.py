"""Fashion-MNIST under every strategy, with fit(): the network, the loss and the data stay as they
are, and the object at the top changes.

    python examples/fashion_mnist.py --strategy=one_device
    python examples/fashion_mnist.py --strategy=mirrored --devices=gpu:0,gpu:1
    cairn up --workers 2 -- python examples/fashion_mnist.py
        --strategy=multi_worker_mirrored                               in one line
    cairn up --ps 2 --workers 2 -- python examples/fashion_mnist.py --strategy=parameter_server

With --backup=FOLDER it goes on where it was killed when it is started again by the same line. With
--model=FOLDER it saves what it has learnt, which then predicts without this program:
    cairn predict FOLDER --data t10k-images-idx3-ubyte.gz --out classes.csv
--predictions=FILE writes this program's own predictions of the test images.
"""

import argparse
import os

import cairn


def strategy_of(name: str, devices: str, seed: int) -> cairn.Strategy:
    """Beside the names of make_strategy(): bounded and synchronous, parameter servers that are so."""
    replicas = devices.split(",") if devices else []
    if name == "bounded":
        bound = cairn.Consistency.bounded(2)
        return cairn.make_strategy("parameter_server", seed, replicas, bound)
    if name == "synchronous":
        return cairn.make_strategy("parameter_server", seed, replicas, "synchronous")
    return cairn.make_strategy(name, seed, replicas)


def images(folder: str, name: str) -> cairn.Dataset:
    path = os.path.join(os.path.abspath(folder), name)
    columns = [
        cairn.IdxColumn("image", path + "-images-idx3-ubyte.gz", shape=(28, 28)),
        cairn.IdxColumn("class", path + "-labels-idx1-ubyte.gz"),
    ]
    return cairn.Dataset.idx(columns, label="class")


def main(given: argparse.Namespace) -> None:
    with strategy_of(given.strategy, given.devices, given.seed).scope():
        perceptron = cairn.nn.Mlp([128, 10], seed=given.seed)

        def network(image: cairn.Array) -> cairn.Array:
            pixels = cairn.cast(image, "float32") / 255.0
            return perceptron(cairn.reshape(pixels, [-1, 28 * 28]))

        model = cairn.Model(network)
        # A rate that falls to nothing averages out the noise of the last steps.
        rate = cairn.optimizers.schedules.CosineDecay(0.002, decay_steps=given.epochs * 469)
        model.compile(
            optimizer=cairn.optimizers.Adam(rate),
            loss=cairn.Loss("sparse_categorical_crossentropy", from_logits=True),
            metrics=["sparse_categorical_accuracy"],
        )
        callbacks = []
        if given.backup:
            callbacks.append(cairn.callbacks.BackupAndRestore(given.backup, every_steps=100))
        train = images(given.data, "train").shuffle(60_000, given.seed).batch(128).prefetch(2)
        model.fit(train, epochs=given.epochs, callbacks=callbacks, verbose=2)
        test = images(given.data, "t10k")
        judged = model.evaluate(test.batch(500))
        accuracy = judged["sparse_categorical_accuracy"]
        print(f"test loss {judged['loss']:.9g}, accuracy {accuracy:.4f}")
        if given.model:
            model.save(given.model, examples=test, label="class")
        if given.predictions:
            model.predict_to(test.batch(500), given.predictions)


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--strategy", default="one_device")
    flags.add_argument("--devices", default="")
    flags.add_argument("--epochs", type=int, default=5)
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--data", default="examples/data/fashion-mnist")
    flags.add_argument("--backup", default="")
    flags.add_argument("--model", default="")
    flags.add_argument("--predictions", default="")
    main(flags.parse_args())
