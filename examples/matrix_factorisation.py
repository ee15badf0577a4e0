"""Matrix factorisation by BPR, against areas that each step draws at random: which areas of a web
site a user visits. A visit that was held out is among the first ten of a hundred areas in 0.10 of
the lists by chance, and in 0.76 by how popular the areas are. On a cluster of this machine:

    cairn up --ps 2 --workers 2 --
        python examples/matrix_factorisation.py --strategy=parameter_server

--data=FILE reads other visits; --checkpoint=FOLDER saves what was learnt.
"""

import argparse

import numpy as np

import cairn
from msweb import msweb_users

FIRST_AREA, AREA_END, OTHERS = 1_000, 1_298, 99


def pairs(users: list[int], areas: list[int]) -> cairn.Dataset:
    """User, area, and the place of the area in the list that the model ranks."""
    columns = {
        "user": np.array(users),
        "area": np.array(areas).reshape(-1, 1),
        "place": np.zeros(len(users), np.int64),
    }
    return cairn.Dataset.from_tensor_slices(columns, label="place")


def main(strategy: cairn.Strategy, data: str, checkpoint: str) -> None:
    users: tuple[list[int], list[int]] = ([], [])  # of the visits to train on; held out
    areas: tuple[list[int], list[int]] = ([], [])
    for user, visited in msweb_users(data):
        for i, area in enumerate(visited):
            held = i == user % len(visited) and len(visited) > 2
            users[held].append(user)
            areas[held].append(area)

    with strategy.scope():
        taste = cairn.nn.Embedding(1 << 30, 16, hashed=True, name="taste")
        theme = cairn.nn.Embedding(AREA_END, 16, name="theme")
        appeal = cairn.nn.Embedding(AREA_END, 1, name="appeal")

        def network(pair: cairn.Features) -> cairn.Array:
            """The scores of the area itself and of 99 others."""
            like = cairn.tile(pair["area"], [1, OTHERS])
            others = cairn.random_integers_like(like, FIRST_AREA, AREA_END)
            ranked = cairn.concat([pair["area"], others], 1)
            liked = cairn.expand_dims(taste(pair["user"]), 1) * theme(ranked)
            return cairn.reduce_sum(liked, [2]) + cairn.squeeze(appeal(ranked), 2)

        def loss(scores: cairn.Array, batch: cairn.Batch) -> cairn.Array:
            return cairn.nn.bpr(scores[:, 0:1], scores[:, 1:])

        model = cairn.Model(network)
        model.compile(
            optimizer=cairn.optimizers.LazyAdam(0.005),
            metrics=[cairn.metrics.HitRate(10)],
            batch_loss=loss,
        )
        model.fit(pairs(users[0], areas[0]).shuffle(100_000).batch(256), epochs=4, verbose=2)
        judged = model.evaluate(pairs(users[1], areas[1]).batch(256))
        print(f"hit@10 {judged['hit_rate@10']:.4f}")
        if checkpoint:
            strategy.save(checkpoint)


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--strategy", default="one_device")
    flags.add_argument("--data", default="examples/data/msweb/anonymous-msweb.data.gz")
    flags.add_argument("--checkpoint", default="")
    given = flags.parse_args()
    main(cairn.make_strategy(given.strategy), given.data, given.checkpoint)
