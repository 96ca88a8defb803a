"""The command that certifies the theorem for a network."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import relaymodel as rm
from relaymodel import files, plotting
from relaymodel.cli.inputs import (
    HEADS,
    NETWORK_WIDTH,
    NUMPY,
    SPEED,
    Model,
    NetworkOptions,
    announce,
    facts,
    one_line_warnings,
)
from relaymodel.cli.options import OUTPUT, flag, option
from relaymodel.cli.output import Listing, Output, filename, written
from relaymodel.display import latex_document
from relaymodel.memory import demand_memory

if TYPE_CHECKING:
    from relaymodel.certificate import Certificate

OPERATIONS = 2e5
"""Floating-point operations of a certificate for each layer and two tokens, about, the network's own among them."""


def certify(
    model: Model = NUMPY,
    /,
    *,
    network: NetworkOptions = NetworkOptions(),
    latex: Annotated[Path | None, option("FILE", "Write it as LaTeX.", filename, OUTPUT)] = None,
    document: Annotated[bool, flag("With --latex, a whole document for pdflatex.", OUTPUT)] = False,
    html: Annotated[Path | None, option("FILE", "Write it as an HTML page.", filename, OUTPUT)] = None,
    output: Output = Output(),
) -> int:
    """Certify that a network forgets its prompt at least as fast as a relay model.

    Checks the theorem's hypotheses, measures its constants on two runs, and verifies the bound at every position of
    every layer; for GPT-2, Llama, Qwen2, OPT, Gemma, OLMo.  Exit code 1 if an inequality fails; hypotheses that fail
    are reported.
    """
    from relaymodel.certificate.render import page
    from relaymodel.certificate.subject import memory
    from relaymodel.networks.transformer import Architecture

    output.check(latex=latex, html=html)
    if document and latex is None:
        raise ValueError("--document must be given with --latex FILE, which it makes a whole document")
    texts = network.checked(model, prompt=16, t_max=256)
    length = (texts.prompt or 0) + (texts.t_max or 0)
    if model == NUMPY:
        shape = Architecture(depth=1, width=NETWORK_WIDTH, heads=HEADS, vocabulary=256, context=length)
        demand_memory("--t-max or --prompt", memory(shape, length), f"a certificate of two runs of {length} tokens")
        announce(OPERATIONS * (texts.depth or 12) * length**2 / SPEED)
    with one_line_warnings():
        runs = texts.network(model)
        certificate = rm.certify(runs, texts.pairs(runs, 1), bias=texts.log_bias, progress=True)
    if latex is not None:
        text = certificate.latex()
        written(files.write_text(latex, latex_document(text) if document else text, overwrite=output.force))
    if html is not None:
        written(files.write_text(html, page(certificate, certificate.verification), overwrite=output.force))
    output.give(
        _columns(certificate),
        certificate.provenance,
        body=_body(certificate),
        result=_json(certificate),
        draw=[lambda ax: plotting.plot_certificate(certificate, ax=ax)],
        quiet=files.STDIO in (latex, html),
    )
    return 0 if certificate.holds else 1


def _columns(certificate: "Certificate") -> dict[str, list[Any]]:
    """Return t, the measured distance at the last layer, and the decimal logarithm of every bound on it."""
    bounds = {
        f"log10_{name}": certificate.log10_bound(rung).tolist() for name, rung in certificate.ladder.rungs.items()
    }
    return {"t": certificate.t.tolist(), "distance": certificate.distance().tolist(), **bounds}


def _json(certificate: "Certificate") -> dict[str, Any]:
    from relaymodel.certificate.render import CERTIFIED, MEASURED_TEXT, rounding

    check, heights = certificate.verification, certificate.heights
    return {
        "provenance": dict(certificate.provenance),
        "applies": certificate.applies,
        "holds": certificate.holds,
        "inequalities": check.inequalities,
        "failures": list(check.failures),
        "hypotheses": [{"name": h.name, "holds": h.holds, "finding": h.finding} for h in certificate.hypotheses],
        "rungs": [
            {"name": name, "holds_for": rung.scope, "made_of": rung.knows, "log10_ratio": heights[name]}
            for name, rung in certificate.ladder.rungs.items()
        ],
        "certified": CERTIFIED,
        "measured": MEASURED_TEXT,
        "rounding": rounding(certificate),
        **_columns(certificate),
    }


def _body(certificate: "Certificate") -> list[str | Listing]:
    from relaymodel.certificate.render import ladder, rounding, verdict

    rungs, scope, _, above, gained = zip(*ladder(certificate).rows, strict=True)
    return [
        *facts(certificate.provenance),
        *(f"{'holds' if h.holds else 'FAILS'}  {h.name}: {h.finding}" for h in certificate.hypotheses),
        "",
        Listing({"rung": rungs, "log10 (bound / measured)": above, "gained": gained, "holds for": scope}),
        f"(mean over the continuation, last layer)\n\n{verdict(certificate, certificate.verification)}",
        rounding(certificate),
    ]
