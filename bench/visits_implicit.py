"""recall@10 of examples/visits.cc's task by the library implicit, of Python's index: the same
users, of which the first 3,000 with two visits and more are for testing, and the same visit of each
is looked for.

    pip install implicit
    OPENBLAS_NUM_THREADS=1 python3 bench/visits_implicit.py

Prints a line a model; what a user has visited already is never recommended.
"""
import gzip
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # implicit asks for it

import numpy as np
import scipy.sparse
from implicit.als import AlternatingLeastSquares
from implicit.nearest_neighbours import BM25Recommender, CosineRecommender

FIRST_AREA, AREAS, SEEN, TESTS, K = 1000, 298, 8, 3000, 10


def users_of(path):
    users = []
    with gzip.open(path, "rt", encoding="latin-1") as lines:
        for line in lines:
            if line.startswith("C,"):
                users.append((int(line.rsplit(",", 1)[1]), []))
            elif line.startswith("V,"):
                users[-1][1].append(int(line.split(",")[1]) - FIRST_AREA)
    return [(user, areas) for user, areas in users if len(areas) >= 2]


def matrix(lists):
    rows = [i for i, areas in enumerate(lists) for _ in areas]
    columns = [area for areas in lists for area in areas]
    return scipy.sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), (len(lists), AREAS))


def main():
    users = users_of("examples/data/msweb/anonymous-msweb.data.gz")
    labels = [areas[user % len(areas)] for user, areas in users]
    seen = [[a for a in areas if a != label][:SEEN] for (_, areas), label in zip(users, labels)]
    training = matrix([areas for _, areas in users[TESTS:]])  # every visit of a user for training
    tests, wanted = matrix(seen[:TESTS]), np.array(labels[:TESTS])

    popular = np.argsort(-np.bincount(labels[TESTS:], minlength=AREAS))[:K]
    print(f"the most popular ten: recall@{K} {np.isin(wanted, popular).mean():.4f}")
    models = {
        "ALS, 32 factors": AlternatingLeastSquares(factors=32, random_state=1),
        "ALS, 32 factors, regularised": AlternatingLeastSquares(factors=32, regularization=10, random_state=1),
        "cosine neighbours": CosineRecommender(K=100),
        "BM25 neighbours": BM25Recommender(K=100),
    }
    for name, model in models.items():
        model.fit(training, show_progress=False)
        ids, _ = model.recommend(np.arange(TESTS), tests, N=K, recalculate_user=True)
        print(f"{name}: recall@{K} {(ids == wanted[:, None]).any(1).mean():.4f}")


if __name__ == "__main__":
    main()
