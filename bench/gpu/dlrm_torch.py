"""Milliseconds per training step, and examples per second, of a DLRM in PyTorch on one GPU.

    python3 bench/gpu/dlrm_torch.py [--json FILE] [--tables adagrad|sgd]

Batch 16,384; 13 dense features through an MLP 512-256-64; 26 tables of 100,000 rows of 64, one id
each, drawn by a power law (row r with a probability proportional to r^-1.05); the dot products of all
pairs of the 27 vectors, beside the dense one, through an MLP 1024-1024-512-256-1; sigmoid
cross-entropy; SGD for the MLPs, Adagrad (or SGD) for the rows. In float32 with TF32 allowed and in
bf16 (autocast; weights and rows stay float32), each eager and under torch.compile. Batches lie on the
GPU before the clock starts.

The tables are one array, and their rows are updated by a function here, not by
nn.Embedding(sparse=True) and torch.optim: those would start 26 kernels per operation, and make
the host wait for the number of different ids of each step. This is the fastest form that we know in
PyTorch without further libraries. Adagrad applies each row's summed gradient once, as torch.optim.Adagrad does.
"""
import itertools

import torch_timing as timing

import torch
from torch import nn

# Seconds that a measurement is expected to take at most on an H100, with its compilation.
EAGER_SECONDS, COMPILED_SECONDS = 5, 22
CASES = [("tf32", "eager"), ("bf16", "eager"), ("bf16", "compiled"), ("tf32", "compiled")]
DENSE = 13
EPSILON = 1e-10
BATCHES = 8


class Tables:
    """All tables as one array of rows; its last row belongs to no table and takes what is padding."""

    def __init__(self, options):
        self.count = options.tables_count * options.rows
        self.rows = torch.randn(self.count + 1, options.dim, device=options.device) * 0.05
        self.sums = torch.zeros_like(self.rows) if options.tables == "adagrad" else None  # of squared gradients

    def gather(self, ids):
        """The rows of `ids` as a leaf that takes a gradient: shape [*ids.shape, dim]."""
        return self.rows[ids].requires_grad_()


def update_by_sgd(rows, ids, gradients, rate):
    """Adds up repeated ids by atomic additions: their order is not fixed."""
    rows.index_add_(0, ids, gradients, alpha=-rate)


def update_by_adagrad(rows, sums, ids, gradients, rate):
    """Each row's summed gradient is applied once. No shape depends on the ids, so the host waits for nothing."""
    sorted_ids, order = torch.sort(ids)
    is_first = torch.ones_like(sorted_ids)
    is_first[1:] = (sorted_ids[1:] != sorted_ids[:-1]).long()
    place = torch.cumsum(is_first, 0) - 1  # of each gradient's row among the different rows
    summed = torch.zeros_like(gradients).index_add_(0, place, gradients[order])
    different = torch.full_like(ids, rows.shape[0] - 1).scatter_(0, place, sorted_ids)
    new_sums = sums[different] + summed * summed
    sums[different] = new_sums
    rows[different] = rows[different] - rate * summed / (new_sums.sqrt() + EPSILON)


def mlp(width, units, last_relu):
    layers = []
    for unit in units:
        layers += [nn.Linear(width, unit), nn.ReLU()]
        width = unit
    return nn.Sequential(*(layers if last_relu else layers[:-1]))


class Dlrm(nn.Module):
    """Everything but the tables: dense features and gathered rows to logits."""

    def __init__(self, options):
        super().__init__()
        vectors = options.tables_count + 1
        self.bottom = mlp(DENSE, [512, 256, options.dim], last_relu=True)
        self.top = mlp(options.dim + vectors * (vectors - 1) // 2, [1024, 1024, 512, 256, 1], last_relu=False)
        i, j = torch.tril_indices(vectors, vectors, offset=-1)
        self.register_buffer("pairs", i * vectors + j)

    def forward(self, dense, rows):
        bottom = self.bottom(dense)
        vectors = torch.cat([bottom.unsqueeze(1), rows.to(bottom.dtype)], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([bottom, products.index_select(1, self.pairs)], dim=1)).squeeze(1)


def make_batches(options):
    """BATCHES of (dense, ids, labels); an id counts from the beginning of the array of all tables."""
    weights = torch.arange(1, options.rows + 1, dtype=torch.float64, device=options.device) ** -options.power
    cumulated = torch.cumsum(weights / weights.sum(), 0)
    offsets = torch.arange(options.tables_count, device=options.device) * options.rows
    batches = []
    for _ in range(BATCHES):
        drawn = torch.rand(options.batch, options.tables_count, dtype=torch.float64, device=options.device)
        ids = torch.searchsorted(cumulated, drawn).clamp_(max=options.rows - 1) + offsets
        dense = torch.randn(options.batch, DENSE, device=options.device)
        batches.append((dense, ids, (torch.rand(options.batch, device=options.device) < 0.3).float()))
    return batches


def measure(options, batches, arithmetic, way):
    """Times and the last loss of one case, on weights of its own."""
    torch.compiler.reset()
    torch.manual_seed(options.seed)
    tables = Tables(options)
    model = Dlrm(options).to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate, fused=True)

    def loss_of(dense, rows, labels):
        with torch.autocast(dense.device.type, dtype=torch.bfloat16, enabled=arithmetic == "bf16"):
            return nn.functional.binary_cross_entropy_with_logits(model(dense, rows), labels)

    def update(ids, gradients):
        if options.tables == "sgd":
            update_by_sgd(tables.rows, ids, gradients, options.rate)
        else:
            update_by_adagrad(tables.rows, tables.sums, ids, gradients, options.rate)

    if way == "compiled":
        loss_of, update = torch.compile(loss_of, dynamic=False), torch.compile(update, dynamic=False)
    turns = itertools.cycle(batches)
    last = {}

    def step(i):
        dense, ids, labels = next(turns)
        rows = tables.gather(ids)
        loss = loss_of(dense, rows, labels)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            update(ids.flatten(), rows.grad.flatten(0, 1))
        optimizer.zero_grad(set_to_none=True)
        last["loss"] = loss.detach()

    times = timing.step_ms(options, step)
    return timing.summary(times), last["loss"].item()


def main():
    parser = timing.arguments(__doc__, seconds=60)
    parser.add_argument("--tables", choices=["adagrad", "sgd"], default="adagrad",
                        help="the rows' optimizer (%(default)s)")
    parser.add_argument("--batch", type=int, default=16384, help="(%(default)s)")
    parser.add_argument("--tables-count", type=int, default=26, help="(%(default)s)")
    parser.add_argument("--rows", type=int, default=100_000, help="of each table (%(default)s)")
    parser.add_argument("--dim", type=int, default=64, help="(%(default)s)")
    parser.add_argument("--power", type=float, default=1.05, help="of the law that ids are drawn by (%(default)s)")
    parser.add_argument("--rate", type=float, default=0.01, help="both optimizers' learning rate (%(default)s)")
    options = parser.parse_args()
    facts = timing.set_up(options)
    facts.update({name: getattr(options, name) for name in ("batch", "tables_count", "rows", "dim", "power", "tables")})
    timing.use_tf32(True)
    batches = make_batches(options)
    facts["different_rows_per_step"] = int(batches[0][1].unique().numel())
    print(f"batch {options.batch}: {batches[0][1].numel()} ids of {facts['different_rows_per_step']} different rows, "
          f"which are updated by {options.tables}")

    results = []
    for arithmetic, way in CASES:
        if not timing.time_left(options, COMPILED_SECONDS if way == "compiled" else EAGER_SECONDS):
            print(f"{arithmetic} {way:<8}  left out: --seconds {options.seconds:g} are nearly over")
            continue
        figures, loss = measure(options, batches, arithmetic, way)
        rate = options.batch / figures["ms"] * 1e3
        results.append(dict(figures, arithmetic=arithmetic, way=way, examples_per_s=rate, loss=loss))
        print(f"{arithmetic} {way:<8} {timing.text_of(figures)}"
              f"  {rate:12,.0f} examples/s  loss {loss:.4f}", flush=True)
    timing.report(options, facts, results)


if __name__ == "__main__":
    main()
