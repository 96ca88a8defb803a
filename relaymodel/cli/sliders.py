"""The command that writes a page to play with."""

from pathlib import Path
from typing import Annotated

from relaymodel.cli.curves import Renamed, demand_file
from relaymodel.cli.options import OUTPUT, Force, option
from relaymodel.cli.output import claim, filename, written
from relaymodel.curve import Curve, read_curves

CurveFiles = Annotated[
    Path,
    option("FILE", "Tables of measured curves to lay over the model's, every layer of each; - is stdin.", filename),
]


def explore(
    *curves: CurveFiles,
    out: Annotated[Path, option("FILE", "The page; - is standard output.", filename, OUTPUT)] = Path("page.html"),
    columns: Renamed = None,
    force: Force = False,
) -> None:
    """Write a page to play with.

    One HTML file with sliders for the model, its bias and its reminders, on which D(t) and its local exponent are drawn
    as they move. It needs no server and no network: mail it, or open it on a phone.
    """
    claim(out, force=force)
    from relaymodel.explore import write_page

    named: dict[str, Curve] = {}
    for path in curves:
        for layer, curve in read_curves(demand_file(path), columns).items():
            name = path.stem if layer is None else f"{path.stem}, layer {layer}"
            if name in named:
                raise ValueError(f"FILE must be files of different names, got {path.name} twice")
            named[name] = curve
    written(write_page(out, curves=named, overwrite=force))
