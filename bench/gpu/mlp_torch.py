"""Milliseconds per training step of an MLP in PyTorch, and what share of a plain product's rate the step reaches.

    python3 bench/gpu/mlp_torch.py [--json FILE]

Four linear layers with biases, 4,096 wide, relu between them, mean squared error against a random
target, batch 8,192, SGD: by default in bf16 (autocast over float32 weights), in TF32, and in float32
(eager only), each eager and under torch.compile. A step counts three products per layer, forward and
both gradients, and two for the first layer, whose input has no gradient. The plain product is one
torch.matmul of batch x width by width x width, measured in the same run.
"""
import torch_timing as timing

import torch
from torch import nn

# Seconds that a measurement is expected to take at most on an H100, with its compilation.
EAGER_SECONDS, COMPILED_SECONDS = 5, 14

# (arithmetic, way), in the order of their interest: where time ends, the last ones are left out.
CASES = [("bf16", "eager"), ("tf32", "eager"), ("bf16", "compiled"), ("tf32", "compiled"), ("fp32", "eager")]


def matmul_tflops(options, arithmetic):
    """TFLOP/s of the plain product: the median of --steps."""
    timing.use_tf32(arithmetic == "tf32")
    dtype = torch.bfloat16 if arithmetic == "bf16" else torch.float32
    a = torch.randn(options.batch, options.width, device=options.device, dtype=dtype)
    b = torch.randn(options.width, options.width, device=options.device, dtype=dtype)
    out = torch.empty_like(a)
    ms = timing.summary(timing.step_ms(options, lambda i: torch.matmul(a, b, out=out)))["ms"]
    return product_flops(options) / ms / 1e9


def product_flops(options):
    return 2 * options.batch * options.width * options.width


def make_model(options):
    layers = []
    for i in range(options.layers):
        layers += [nn.ReLU()] if i > 0 else []
        layers += [nn.Linear(options.width, options.width)]
    return nn.Sequential(*layers).to(options.device)


def measure(options, arithmetic, way):
    """Times and the last loss of one case, on weights and data of its own."""
    timing.use_tf32(arithmetic == "tf32")
    torch.compiler.reset()
    torch.manual_seed(options.seed)
    model = make_model(options)
    x = torch.randn(options.batch, options.width, device=options.device)
    target = torch.randn(options.batch, options.width, device=options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)

    def loss_of(x, target):
        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=arithmetic == "bf16"):
            return nn.functional.mse_loss(model(x), target)

    forward = torch.compile(loss_of) if way == "compiled" else loss_of
    last = {}

    def step(i):
        loss = forward(x, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        last["loss"] = loss.detach()

    times = timing.step_ms(options, step)
    return timing.summary(times), last["loss"].item()


def main():
    parser = timing.arguments(__doc__, seconds=40)
    parser.add_argument("--batch", type=int, default=8192, help="(%(default)s)")
    parser.add_argument("--width", type=int, default=4096, help="(%(default)s)")
    parser.add_argument("--layers", type=int, default=4, help="(%(default)s)")
    options = parser.parse_args()
    facts = timing.set_up(options)
    facts.update(batch=options.batch, width=options.width, layers=options.layers)

    facts["matmul_tflops"] = {arithmetic: matmul_tflops(options, arithmetic) for arithmetic in ("bf16", "tf32", "fp32")}
    for arithmetic, tflops in facts["matmul_tflops"].items():
        print(f"matmul {options.batch} x {options.width} x {options.width} in {arithmetic}: {tflops:7.1f} TFLOP/s")

    step_flops = (3 * options.layers - 1) * product_flops(options)
    results = []
    for arithmetic, way in CASES:
        if not timing.time_left(options, COMPILED_SECONDS if way == "compiled" else EAGER_SECONDS):
            print(f"{arithmetic} {way:<8}  left out: --seconds {options.seconds:g} are nearly over")
            continue
        figures, loss = measure(options, arithmetic, way)
        tflops = step_flops / figures["ms"] / 1e9
        shares = {of: tflops / facts["matmul_tflops"][of] for of in ("bf16", arithmetic)}
        results.append(dict(figures, arithmetic=arithmetic, way=way, tflops=tflops, loss=loss,
                            share_of_bf16_matmul=shares["bf16"], share_of_own_matmul=shares[arithmetic]))
        print(f"{arithmetic} {way:<8} {timing.text_of(figures)}"
              f"  {tflops:6.1f} TFLOP/s: {', '.join(f'{share:.1%} of the {of} matmul' for of, share in shares.items())}"
              f"  loss {loss:.4f}", flush=True)
    timing.report(options, facts, results)


if __name__ == "__main__":
    main()
