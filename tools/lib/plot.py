"""tools/plot: the growth benchmark's newest figures as PNGs. One file a question; beside each curve stands the line it is held against."""
import json
import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

WANTED = {"color": "0.6", "linestyle": "--", "linewidth": 1}
OURS = {"color": "tab:blue", "marker": "o", "capsize": 3}
OTHER = {"color": "tab:orange", "marker": "s"}


def read(path):
    """The newest growth line of each configuration, over whatever transport; the later ones replace the earlier."""
    newest = {}
    for line in pathlib.Path(path).read_text().splitlines():
        figure = json.loads(line)
        if figure["bench"] == "growth":
            name = re.sub(r"wait of [1-9]\d* us", "wait", figure["configuration"])
            newest[re.sub(r"a row over \w+", "a row of a ps", name)] = figure
    return newest


def picked(figures, pattern):
    """[(number, figure)] of the configurations that match, by that number."""
    found = [(int(match.group(1)), figure) for name, figure in figures.items() if (match := re.match(pattern, name))]
    return sorted(found, key=lambda pair: pair[0])


def spread(series, scale=1.0):
    low = [(figure["median"] - figure["min"]) * scale for _, figure in series]
    high = [(figure["max"] - figure["median"]) * scale for _, figure in series]
    return [low, high]


def draw(folder, name, title, x, y, body):
    figure, axes = plt.subplots(figsize=(6, 4), dpi=120)
    body(axes)
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(True, alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(folder / f"{name}.png", metadata={"Software": None})
    plt.close(figure)
    print(folder / f"{name}.png")


def scale_axis(axes, ticks):
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()


def workers(axes, figures):
    series = picked(figures, r"(\d+) ps \+ \1 workers?, .*, wait$")
    at = [number for number, _ in series]
    one = series[0][1]["median"]
    axes.errorbar(at, [figure["median"] for _, figure in series], yerr=spread(series), label="measured", **OURS)
    axes.plot(at, [one * number for number in at], label="linear", **WANTED)
    axes.plot(at, [0.9 * one * number for number in at], label="0.9 x linear", **(WANTED | {"linestyle": ":"}))
    scale_axis(axes, at)
    axes.set_yscale("log", base=2)
    axes.set_yticks([one * number for number in at], [f"{one * number:.0f}" for number in at])


def rows(axes, figures):
    for label, pattern, style in (("one thread", r"(\d+) M rows, a row in one thread, of 8 M", OURS), ("from a worker", r"(\d+) M rows, a row of a ps, of 8 M", OTHER)):
        series = picked(figures, pattern)
        style = {key: value for key, value in style.items() if key != "capsize"}
        axes.plot([number for number, _ in series], [figure["median"] for _, figure in series], label=label, **style)
    at = [number for number, _ in series]
    axes.plot(at, [1.2] * len(at), label="wanted at most", **WANTED)
    axes.set_ylim(0, 1.4)
    scale_axis(axes, at)


def batch(axes, figures):
    series = picked(figures, r"wide-deep, batch (\d+), ")
    at = [number for number, _ in series]
    axes.errorbar(at, [figure["median"] / 1000 for _, figure in series], yerr=spread(series, 0.001), label="measured", **OURS)
    shares = dict(picked(figures, r"batch (\d+), of the half"))  # measured in turns, so they and not the rates say how a doubling went
    wanted = [(number, 0.9 * figure["median"] / shares[number]["median"]) for number, figure in series if number in shares]
    axes.plot([number for number, _ in wanted], [rate / 1000 for _, rate in wanted], label="0.9 x the rate of half the batch", **WANTED)
    scale_axis(axes, at)


def main(source, target):
    folder = pathlib.Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    figures = read(source)
    if not figures:
        sys.exit(f"{source} holds no figure of the benchmark 'growth': run tools/bench --record growth")
    draw(folder, "growth-workers", "Workers and as many ps, arithmetic replaced by a wait", "workers", "steps/s", lambda axes: workers(axes, figures))
    draw(folder, "growth-rows", "Time a row, against the machine's own random access", "million rows of 128 bytes", "of that at 8 million", lambda axes: rows(axes, figures))
    draw(folder, "growth-batch", "Wide & Deep over TCP, 1 ps + 1 worker", "examples of a batch", "thousand examples/s", lambda axes: batch(axes, figures))


if __name__ == "__main__":
    main(*sys.argv[1:3])
