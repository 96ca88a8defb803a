"""What `measure --instruments` prints, writes and draws of the other instruments."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import relaymodel as rm
from relaymodel import plotting
from relaymodel.checks import choice
from relaymodel.cli.numbers import parts
from relaymodel.cli.output import Listing
from relaymodel.files import STDIO

if TYPE_CHECKING:
    from relaymodel.networks.protocol import Measurement

READINGS = ("next_token", "attention", "response")
Columns = dict[str, list[Any]]


def chosen(name: str, text: str) -> list[str]:
    """Return the instruments that an option names.

    >>> chosen("--instruments", "next_token,attention")
    ['next_token', 'attention']
    """
    return [choice(name, part, READINGS) for part in parts(text)]


def columns(measured: "Measurement", name: str, layers: Sequence[int], start: float | None) -> Columns:
    """Return a table of what an instrument found: exponents, or shares of attention in each octave."""
    from relaymodel.networks.protocol.next_token import DIVERGENCES

    if name == "attention":
        found = measured.attention
        n = found.prompt + found.t
        ends = [int(n[-1] * 2**-k) for k in range(int(n[-1] / n[0]).bit_length())][::-1]
        inside = [(n > end / 2) & (n <= end) for end in ends]
        rows = [(end, chosen) for end, chosen in zip(ends, inside, strict=True) if chosen.any()]
        table: Columns = {"to_n": [end for end, _ in rows]}
        for part in ("prompt", "first", "own"):
            table[part] = [float(found.share(part)[:, chosen].mean()) for _, chosen in rows]
        return table
    if name == "next_token":
        kinds = DIVERGENCES[:3]
        fits = [measured.next_token.alpha(kind, t_min=start) for kind in kinds]
        table = {"prediction": [kind.replace("_", " ") for kind in kinds]}
    else:
        curves = [measured.response.profile(layer) for layer in layers]
        fits = [rm.fit_power_law(curve, t_min=start) for curve in curves]
        summed = [rm.fit_power_law(measured.response.summed(layer), t_min=start).value for layer in layers]
        table = {"layer": list(layers)}
    table["alpha" if name == "next_token" else "p"] = [fit.value for fit in fits]
    table["noise_stderr"] = [fit.noise_stderr for fit in fits]
    return table if name == "next_token" else table | {"alpha_summed": summed}


def listing(table: Columns) -> Listing:
    """Return a table to print."""
    return Listing(table, dict.fromkeys(table, 4) | {"noise_stderr": 2})


def beside(csv: Path | None, names: Sequence[str]) -> dict[str, Path]:
    """Return the file of each instrument's table, beside that of the distances: curves.csv, curves-attention.csv.

    >>> beside(Path("curves.csv"), ["attention"])["attention"].name
    'curves-attention.csv'
    """
    if csv is None or csv == STDIO:
        return {}
    return {name: csv.with_name(f"{csv.stem}-{name}{csv.suffix}") for name in names}


def drawings(measured: "Measurement", names: Sequence[str], layers: Sequence[int]) -> list[Callable[..., Any]]:
    """Return what draws each instrument into some axes."""
    draw = {
        "next_token": lambda ax: plotting.plot_next_token(measured, ax=ax),
        "attention": lambda ax: plotting.plot_attention(measured, ax=ax),
        "response": lambda ax: plotting.plot_response(measured, layers, ax=ax),
    }
    return [draw[name] for name in names]
