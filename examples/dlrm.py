"""Click models on click logs: DLRM, DCN-v2 and DeepFM.

    cairn generate criteo-like train.bin --rows 2000000
    cairn generate criteo-like test.bin --rows 200000 --first 2000000
    cairn up --ps 2 --workers 2 -- python examples/dlrm.py train.bin test.bin dlrm

Under --consistency=synchronous the workers take steps together; --checkpoint=FOLDER saves what was
learnt. --rows-max=N is for logs none of whose 26 tables of ids has more than N rows.
"""

import argparse
from typing import Optional

import cairn

BATCH, TEST_BATCH = 2048, 8192


def click_model(kind: str, rows_max: int) -> cairn.nn.ClickModel:
    tables = [
        cairn.nn.ClickTable(f"C{number}", rows)
        for number, rows in enumerate(cairn.criteo_table_rows(rows_max), 1)
    ]
    return cairn.nn.ClickModel(tables, kind=kind, dim=16, bottom=[64], top=[256, 64])


def logits(model: cairn.nn.ClickModel, features: cairn.Features) -> cairn.Array:
    """The ids lie side by side in one column of the file, [b, 26]."""
    ids = [cairn.reshape(each, [-1]) for each in cairn.split(features["ids"], 26, 1)]
    return model(features["dense"], ids)


def main(
    train: str,
    test: str,
    kind: str,
    steps: Optional[int],
    consistency: str,
    checkpoint: str,
    rows_max: int,
) -> None:
    train_data = cairn.Dataset.criteo_records(train)
    test_data = cairn.Dataset.criteo_records(test)
    if steps is None:
        steps = (train_data.cardinality() or 0) // BATCH

    strategy = cairn.ParameterServerStrategy(
        partitioner=cairn.MinSizePartitioner(max_shards=2), consistency=consistency
    )
    coordinator = cairn.ClusterCoordinator(strategy)
    model = click_model(kind, rows_max)
    optimizer = cairn.optimizers.Adagrad(0.02)

    @strategy.function
    def step(batches: cairn.Iterator) -> cairn.Array:
        features, label = batches.get_next()
        loss = cairn.mean(cairn.nn.sigmoid_cross_entropy(logits(model, features), label))
        optimizer.minimize(loss)
        return loss

    batches = coordinator.create_per_worker_dataset(
        lambda context: train_data.shard(context).repeat().batch(BATCH).prefetch(2)
    )
    losses = [coordinator.schedule(step, (batches,)) for _ in range(steps)]
    coordinator.join()

    auc = cairn.metrics.AUC()

    @strategy.function
    def evaluate(batches: cairn.Iterator) -> cairn.Array:
        features, label = batches.get_next()
        return auc.summary(cairn.nn.probability(logits(model, features)), label)

    tests = coordinator.create_shared_dataset(test_data.batch(TEST_BATCH))
    count = -(-(test_data.cardinality() or 0) // TEST_BATCH)
    for summary in [coordinator.schedule(evaluate, (tests,)) for _ in range(count)]:
        auc.add(summary.get())
    print(f"{steps} steps, last loss {losses[-1].get():.4f}, test AUC {auc.result():.4f}")
    if checkpoint:
        coordinator.save(checkpoint)


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("train", metavar="TRAIN.bin")
    flags.add_argument("test", metavar="TEST.bin")
    flags.add_argument("kind", nargs="?", default="dlrm", choices=["dlrm", "dcn_v2", "deepfm"])
    flags.add_argument("steps", nargs="?", type=int)
    flags.add_argument("--consistency", default="asynchronous")
    flags.add_argument("--checkpoint", default="")
    flags.add_argument("--rows-max", type=int, default=2_000_000)
    main(**vars(flags.parse_args()))
