"""The job of embedding_bench.cu on PyTorch: ten tables of 1.68 million rows of 128 floats, a step
of 105,000 lookups in each, ids from a power law of exponent 1.05; forward, backward and update.

    python3 embedding_torch.py [--quick] [--json FILE]

Variants: "modules" is what people write (one nn.EmbeddingBag per table, sparse gradients, optim.SGD
or optim.SparseAdam); "merged" is one table and one lookup for all, with the update by hand, which
is the least that plain PyTorch can be made to do. The output's gradient is given, so that nothing
but the embedding is timed.
"""
import argparse
import gc
import json
import math
import time

import torch
from torch.nn import functional

TABLES, ROWS, LOOKUPS, DIM, EXPONENT, ID_SETS = 10, 1_680_000, 105_000, 128, 1.05, 4
DEVICE = "cuda"
RATE, BETA_1, BETA_2, EPSILON = 0.05, 0.9, 0.999, 1e-7


def power_law_ids():
    """[ID_SETS] of [TABLES, LOOKUPS], as power_law_ids() in embedding_job.cu has them."""
    generator = torch.Generator(device=DEVICE).manual_seed(20260101)
    shares = torch.arange(1, ROWS + 1, device=DEVICE, dtype=torch.float64).pow(-EXPONENT).cumsum(0)
    tables = torch.arange(TABLES, device=DEVICE).unsqueeze(1)
    sets = []
    for _ in range(ID_SETS):
        uniform = torch.rand(TABLES, LOOKUPS, device=DEVICE, dtype=torch.float64,
                             generator=generator)
        ranks = torch.searchsorted(shares, uniform * shares[-1], right=True).clamp_(max=ROWS - 1)
        sets.append((ranks * 1000003 + tables * 7919) % ROWS)
    return sets


def timed(step, ids, replays):
    """Median, least and greatest ms of `replays` steps, each between two events."""
    for i in range(ID_SETS):
        step(ids[i])
    torch.cuda.synchronize()
    begins = [torch.cuda.Event(enable_timing=True) for _ in range(replays)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(replays)]
    for i in range(replays):
        begins[i].record()
        step(ids[i % ID_SETS])
        ends[i].record()
    torch.cuda.synchronize()
    times = sorted(begin.elapsed_time(end) for begin, end in zip(begins, ends))
    return times[len(times) // 2], times[0], times[-1]


def modules(gradients, optimizer_type):
    tables = []
    for _ in range(TABLES):  # from uninitialised memory: the initialiser is not what is measured
        weight = torch.empty(ROWS, DIM, device=DEVICE).uniform_(-0.05, 0.05)
        tables.append(torch.nn.EmbeddingBag(ROWS, DIM, mode="sum", sparse=True, _weight=weight))
    parameters = [table.weight for table in tables]
    optimizer = optimizer_type(parameters)
    offsets = torch.arange(LOOKUPS, device=DEVICE)

    def step(ids):
        optimizer.zero_grad(set_to_none=True)
        outputs = [table(ids[t], offsets) for t, table in enumerate(tables)]
        torch.autograd.backward(outputs, list(gradients))
        optimizer.step()

    return step


def merged_rows(ids, first_rows):
    return (ids + first_rows).view(-1)


@torch.no_grad()
def merged_sgd(gradients):
    table = torch.empty(TABLES * ROWS, DIM, device=DEVICE).uniform_(-0.05, 0.05)
    first_rows = (torch.arange(TABLES, device=DEVICE) * ROWS).unsqueeze(1)
    flat = gradients.view(-1, DIM)

    @torch.no_grad()
    def step(ids):
        rows = merged_rows(ids, first_rows)
        functional.embedding(rows, table)
        table.index_add_(0, rows, flat, alpha=-RATE)  # by atomics, in no fixed order

    return step


@torch.no_grad()
def merged_adam(gradients):
    table = torch.empty(TABLES * ROWS, DIM, device=DEVICE).uniform_(-0.05, 0.05)
    m, v = torch.zeros_like(table), torch.zeros_like(table)
    first_rows = (torch.arange(TABLES, device=DEVICE) * ROWS).unsqueeze(1)
    flat = gradients.view(-1, DIM)
    taken = 0

    @torch.no_grad()
    def step(ids):
        nonlocal taken
        taken += 1
        alpha = RATE * math.sqrt(1 - BETA_2**taken) / (1 - BETA_1**taken)
        rows = merged_rows(ids, first_rows)
        functional.embedding(rows, table)
        distinct, group = torch.unique(rows, return_inverse=True)
        g = torch.zeros(distinct.numel(), DIM, device=DEVICE).index_add_(0, group, flat)
        new_m = m[distinct].lerp_(g, 1 - BETA_1)
        new_v = v[distinct].mul_(BETA_2).addcmul_(g, g, value=1 - BETA_2)
        m[distinct], v[distinct] = new_m, new_v
        table.index_add_(0, distinct, new_m.div_(new_v.sqrt_().add_(EPSILON)), alpha=-alpha)

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    parser.add_argument("--json", help="a file for the results")
    arguments = parser.parse_args()
    replays = 10 if arguments.quick else 50
    ids = power_law_ids()
    gradients = torch.empty(TABLES, LOOKUPS, DIM, device=DEVICE).uniform_(-1e-3, 1e-3)
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}, {TABLES} tables x {ROWS} "
          f"rows x {DIM}, {TABLES * LOOKUPS} lookups, {replays} steps")
    variants = [
        ("modules sgd", lambda: modules(gradients, lambda p: torch.optim.SGD(p, lr=RATE))),
        ("merged sgd", lambda: merged_sgd(gradients)),
        ("modules adam", lambda: modules(
            gradients, lambda p: torch.optim.SparseAdam(p, lr=RATE, betas=(BETA_1, BETA_2),
                                                        eps=EPSILON))),
        ("merged adam", lambda: merged_adam(gradients)),
    ]
    results, begun = [], time.monotonic()
    for name, make in variants:
        if time.monotonic() - begun > 20:
            print(f"{name:16} left out: 20 s are over")
            continue
        try:
            median, least, greatest = timed(make(), ids, replays)
        except (RuntimeError, TypeError) as error:  # one that fails must not hide the others
            print(f"{name:16} failed: {error}")
            continue
        finally:
            gc.collect()
            torch.cuda.empty_cache()
        print(f"{name:16} median {median:8.3f}  min {least:8.3f}  max {greatest:8.3f} ms",
              flush=True)
        results.append({"name": name, "median_ms": median, "min_ms": least, "max_ms": greatest})
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__,
                       "measured": results}, file, indent=1)


if __name__ == "__main__":
    main()
