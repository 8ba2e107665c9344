"""The curve of recall and speed as a picture."""

from pathlib import Path
from statistics import median

SIDES = {"in_process": "Lance in process", "gateway": "through the gateway"}


def draw(name: str, measured: dict, to: Path) -> None:
    """A line for each side and refine factor, along the partitions that are searched."""
    # Only this needs it: see requirements.txt beside this file.
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    factors = sorted({point["refine_factor"] or 0 for point in measured["points"]})
    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for number, factor in enumerate(factors):
        points = [point for point in measured["points"] if (point["refine_factor"] or 0) == factor]
        for side, label in SIDES.items():
            recalls = [point["recall"][side] for point in points]
            rates = [measured["queries"] / median(point["seconds"][side]) for point in points]
            style = {"color": f"C{number}", "marker": "o", "linestyle": "--" if side == "in_process" else "-"}
            axes.plot(recalls, rates, label=f"{label}, refine factor {factor or 'none'}", **style)
    axes.set(
        title=f"{name}: {measured['in_flight']} in flight",
        xlabel="recall@10",
        ylabel="queries per second",
        yscale="log",
    )
    axes.grid(which="both", alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(to, metadata={"Date": None})
    pyplot.close(figure)
