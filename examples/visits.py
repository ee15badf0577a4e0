"""Retrieval with two towers: from areas of a web site that a user has visited to one more. The
other examples of a batch serve as negatives. Of users never seen, ten areas that the model names
hold the visit looked for more often (0.77) than the ten most popular ones (0.62).

    cairn up --ps 2 --workers 2 -- python examples/visits.py --strategy=parameter_server

--data=FILE reads other visits; --checkpoint=FOLDER saves what was learnt. --model=FOLDER saves the
two towers and the areas, which `cairn serve FOLDER` then recommends.
"""

import argparse

import numpy as np

import cairn
from msweb import msweb_users

FIRST_AREA, AREAS, SEEN, TESTS = 1_000, 298, 8, 3_000
NONE = AREAS


def main(strategy: cairn.Strategy, data: str, checkpoint: str, saved: str) -> None:
    # The label is one visit of a user, beside up to SEEN others; in training, each visit in turn.
    seen: list[list[int]] = []
    labels: list[int] = []
    counts = np.ones(AREAS, np.float32)  # how often an area is the label, in training
    for user, areas in msweb_users(data, 2):
        is_test = len(labels) < TESTS
        for label in areas:
            if is_test and label != areas[user % len(areas)]:
                continue
            others = [NONE if area == label else area - FIRST_AREA for area in areas]
            seen.append((others + [NONE] * SEEN)[:SEEN])
            labels.append(label - FIRST_AREA)
            if not is_test:
                counts[labels[-1]] += 1
    users = cairn.Dataset.from_tensor_slices(
        {"seen": np.array(seen), "next": np.array(labels)}, label="next"
    )

    with strategy.scope():
        often = cairn.log(counts)
        bag = cairn.nn.Embedding(AREAS + 1, 64, "sum")
        query = cairn.nn.Sequential([bag, cairn.nn.Dense(64)])
        area = cairn.nn.Embedding(AREAS, 64, name="area")
        towers = cairn.nn.TwoTower(query, area)

        def network(visited: cairn.Array) -> cairn.Array:
            """The scores of all areas."""
            user = towers.embed_query(visited)
            return cairn.matmul(user, towers.embed_candidate(cairn.range(AREAS)), False, True)

        def loss(scores: cairn.Array, batch: cairn.Batch) -> cairn.Array:
            assert batch.label is not None
            chance = cairn.gather(often, batch.label)  # log of how often it is a negative
            return cairn.nn.in_batch_softmax(
                towers(batch["seen"], batch.label), log_probability=chance, ids=batch.label
            )

        model = cairn.Model(network)
        model.compile(
            optimizer=cairn.optimizers.LazyAdam(0.005),
            metrics=[cairn.metrics.RecallAtK(10)],
            batch_loss=loss,
        )
        model.fit(users.skip(TESTS).shuffle(50_000).batch(256), epochs=10, verbose=2)
        judged = model.evaluate(users.take(TESTS).batch(256))
        print(f"recall@10 {judged['recall@10']:.4f}")
        if checkpoint:
            strategy.save(checkpoint)
        if saved:
            save(saved, towers)


def save(folder: str, towers: cairn.nn.TwoTower) -> None:
    """Saves the towers, and as candidates all areas by their numbers in the data."""

    def vectors(features: cairn.Features) -> dict[str, cairn.Array]:
        return {
            "query": towers.embed_query(features["seen"]),
            "candidate": towers.embed_candidate(features["area"]),
        }

    model = cairn.Model(vectors, name="visits")
    model.build({"seen": np.zeros((2, SEEN), np.int64), "area": np.zeros(2, np.int64)})
    model.save(folder)
    areas = np.arange(AREAS)
    np.savez(f"{folder}/candidates.npz", ids=areas + FIRST_AREA, area=areas)


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--strategy", default="one_device")
    flags.add_argument("--data", default="examples/data/msweb/anonymous-msweb.data.gz")
    flags.add_argument("--checkpoint", default="")
    flags.add_argument("--model", default="")
    given = flags.parse_args()
    main(cairn.make_strategy(given.strategy), given.data, given.checkpoint, given.model)
