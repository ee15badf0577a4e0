"""Wide & Deep on the Adult census data, by a loop of closures of its own. It runs on any cluster
that TF_CONFIG names:

    cairn up --ps 2 --workers 2 -- python examples/wide_deep.py examples/data/adult

A second argument names the folder for the checkpoint. Under --consistency=synchronous the workers
take steps together; --steps=50 takes so many.
"""

import argparse
import os

import cairn

CATEGORIES = [
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native-country",
]
NUMBERS = ["age", "education-num", "hours-per-week", "capital-gain", "capital-loss"]
COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
).split()


def adult_schema() -> cairn.CsvSchema:
    columns = [
        cairn.CsvColumn(name, "int32" if name in NUMBERS else "string", skip=name == "fnlwgt")
        for name in COLUMNS
    ]
    label = cairn.CsvLabel("income", positive=[">50K", ">50K."], negative=["<=50K", "<=50K."])
    return cairn.CsvSchema(columns, label=label, comment="|")


def fit_columns(data: cairn.Dataset) -> list[cairn.FeatureColumn]:
    """Standardised numbers, and an id per value of each category, as the training data has them."""
    found = cairn.fit(data, numeric=NUMBERS, vocabularies=CATEGORIES)
    columns = [cairn.FeatureColumn.numeric(found.numeric)]
    for name, values in zip(CATEGORIES, found.vocabularies):
        columns.append(cairn.FeatureColumn.vocabulary(name, values))
    return columns


class WideDeep:
    def __init__(self, columns: list[cairn.FeatureColumn]) -> None:
        rows = [column.ids for column in columns[1:]]
        self.embeddings = [cairn.nn.Embedding(n, 8, name=name) for name, n in zip(CATEGORIES, rows)]
        self.wide = cairn.nn.Wide(
            [cairn.nn.WideColumn(name, n) for name, n in zip(CATEGORIES, rows)],
            [cairn.nn.WideCross(["education", "occupation"], 1000)],
        )
        self.tower = cairn.nn.Mlp([64, 32, 1])

    def __call__(self, features: cairn.Features) -> cairn.Array:
        deep = [features["numeric"]]
        for name, embedding in zip(CATEGORIES, self.embeddings):
            deep.append(embedding(features[name]))
        return self.tower(cairn.concat(deep, 1)) + self.wide(features)


def main(folder: str, checkpoints: str, consistency: str, steps: int) -> None:
    train = cairn.Dataset.csv(folder + "/adult.data.gz", adult_schema())
    test = cairn.Dataset.csv(folder + "/adult.test.gz", adult_schema())
    columns = fit_columns(train)

    strategy = cairn.ParameterServerStrategy(
        partitioner=cairn.MinSizePartitioner(max_shards=2), consistency=consistency
    )
    coordinator = cairn.ClusterCoordinator(strategy)
    model = WideDeep(columns)
    optimizer = cairn.optimizers.LazyAdam(0.001)

    def batches_of(context: cairn.InputContext) -> cairn.Dataset:
        data = train.features(columns).shard(context).shuffle(32_561)
        return data.repeat().batch(256).prefetch(2)

    @strategy.function
    def step(batches: cairn.Iterator) -> cairn.Array:
        features, label = batches.get_next()
        loss = cairn.mean(cairn.nn.sigmoid_cross_entropy(model(features), label))
        optimizer.minimize(loss)
        return loss

    batches = coordinator.create_per_worker_dataset(batches_of)
    losses = [coordinator.schedule(step, (batches,)) for _ in range(steps)]
    coordinator.join()

    auc = cairn.metrics.AUC()

    @strategy.function
    def evaluate(batches: cairn.Iterator) -> cairn.Array:
        features, label = batches.get_next()
        return auc.summary(cairn.nn.probability(model(features)), label)

    tests = coordinator.create_shared_dataset(test.features(columns).batch(2048))
    count = (16_281 + 2047) // 2048
    for summary in [coordinator.schedule(evaluate, (tests,)) for _ in range(count)]:
        auc.add(summary.get())

    checkpoint = strategy.save(os.path.abspath(checkpoints))
    print(
        f"{steps} steps, last loss {losses[-1].get():.4f}, test AUC {auc.result():.4f}, "
        f"checkpoint {checkpoint}"
    )


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("folder", nargs="?", default="examples/data/adult")
    flags.add_argument("checkpoints", nargs="?", default="checkpoints")
    flags.add_argument("--consistency", default="asynchronous")
    flags.add_argument("--steps", type=int, default=5 * 32_561 // 256)
    main(**vars(flags.parse_args()))
