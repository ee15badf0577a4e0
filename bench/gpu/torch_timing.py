"""What mlp_torch.py and dlrm_torch.py share: medians of steps by CUDA events, a budget of time, and the report.

Without a GPU the clock of the host takes the place of the events, so that `--device cpu` tries the
scripts with small sizes; figures of such a run mean nothing.
"""
import argparse
import json
import statistics
import sys
import time

STARTED = time.perf_counter()  # the import of torch counts: scripts import this module first

import torch  # noqa: E402


def arguments(description, seconds):
    """A parser with the options that both scripts have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write the figures there, as one JSON object")
    parser.add_argument("--seconds", type=float, default=seconds,
                        help="begin no further measurement that may not end within so many seconds (%(default)s)")
    parser.add_argument("--steps", type=int, default=50, help="steps that the median is of (%(default)s)")
    parser.add_argument("--warm-up", type=int, default=10, help="steps before them (%(default)s)")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu to try the script (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of weights and data (%(default)s)")
    return parser


def set_up(options):
    """Seeds torch, refuses a missing device, and returns the facts of the machine that belong to every figure."""
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit("torch finds no CUDA device; --device cpu with small sizes only tries the script")
    torch.manual_seed(options.seed)
    on_gpu = options.device.startswith("cuda")
    facts = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "device": torch.cuda.get_device_name(options.device) if on_gpu else "cpu",
        "steps": options.steps,
    }
    print(f"torch {facts['torch']}, CUDA {facts['cuda']}, {facts['device']}")
    return facts


def use_tf32(allowed):
    """Whether products of float32 may be computed in TF32."""
    torch.set_float32_matmul_precision("high" if allowed else "highest")


def time_left(options, needed):
    """Whether `needed` more seconds fit into --seconds."""
    return time.perf_counter() - STARTED + needed <= options.seconds


def step_ms(options, step):
    """Milliseconds of each of --steps calls of step(i), after --warm-up calls, sorted.

    One event stands between two steps, so that a step's time includes what the GPU waits for the host.
    """
    for i in range(options.warm_up):
        step(i)
    if not options.device.startswith("cuda"):
        times = [time.perf_counter()]
        for i in range(options.steps):
            step(i)
            times.append(time.perf_counter())
        return sorted((after - before) * 1e3 for before, after in zip(times, times[1:]))
    torch.cuda.synchronize()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(options.steps + 1)]
    events[0].record()
    for i in range(options.steps):
        step(i)
        events[i + 1].record()
    torch.cuda.synchronize()
    return sorted(before.elapsed_time(after) for before, after in zip(events, events[1:]))


def summary(times):
    """The figures that are reported of sorted times: median and both quartiles."""
    return {
        "ms": statistics.median(times),
        "ms_p25": times[len(times) // 4],
        "ms_p75": times[(3 * len(times)) // 4],
    }


def text_of(figures):
    """Of a summary: one column of a line."""
    return f"{figures['ms']:8.3f} ms per step  ({figures['ms_p25']:.3f} to {figures['ms_p75']:.3f})"


def report(options, facts, results):
    """Writes --json."""
    facts["seconds"] = round(time.perf_counter() - STARTED, 1)
    print(f"{facts['seconds']} s in all")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(facts, results=results), file, indent=1)
            file.write("\n")
