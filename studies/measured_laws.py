"""Which law measured curves follow, layer by layer: a table of AICc against the best, and what would decide.

    python -m studies measured_laws CURVES.csv ... --csv docs/laws.csv

Each file is one network's, as `relaymodel measure --csv` writes it.
"""

from pathlib import Path

from relaymodel import RelayModel, simulate
from relaymodel.curve import read_curves
from relaymodel.inference import UnderdeterminedError, compare_laws, extrapolate_exponent, fit, fit_power_law
from studies import tables

LAWS = ("relay model", "power law", "power law and constant", "power of log t")


def rows_of(path):
    """Yield what there is to say of each layer of a file."""
    for layer, curve in read_curves(path).items():
        laws, line, relay = compare_laws(curve), fit_power_law(curve), fit(curve)
        try:
            limit = extrapolate_exponent(curve)
            limit = f"{limit.value:.3g} ({limit.lower:.3g} to {limit.upper:.3g})"
        except UnderdeterminedError:
            limit = "refused"
        preferred = laws["power law"].aicc - laws["relay model"].aicc
        yield {
            "network": curve.provenance.get("network", path.stem),
            "layer": layer,
            "alpha": f"{line.alpha:.3f}",
            "stderr": f"{line.stderr:.3f}",
            "limit": limit,
            "relay": f"{relay.relay.value:.3g} ({relay.relay.lower:.3g} to {relay.relay.upper:.3g})",
            "depth": f"{relay.depth.value:.3g} ({relay.depth.lower:.3g} to {relay.depth.upper:.3g})",
            "best": laws.best.name,
            "power law minus relay model": f"{preferred:+.1f}",
            **{f"AICc, {name}": f"{laws[name].aicc - laws.best.aicc:.1f}" for name in LAWS},
            "not told apart": "; ".join(str(need) for need in laws.needed),
        }


MAKES = "docs/laws.csv"


def taste(folder):
    curve = simulate(RelayModel.uniform(prompt=16, depth=2, relay=0.5), 256)
    curve.to_csv(folder / "curve.csv", overwrite=True)
    return [str(folder / "curve.csv"), "--csv", str(folder / "laws.csv")]


def add_options(parser):
    parser.add_argument("files", nargs="+", type=Path, metavar="CURVES.csv")
    parser.add_argument("--csv", type=Path)


def main(options):
    rows = [row for path in options.files for row in rows_of(path)]
    for row in rows:
        print(", ".join(f"{key} {value}" for key, value in row.items()))
    if options.csv is not None:
        tables.write(options.csv, rows)
