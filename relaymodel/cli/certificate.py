"""The command that certifies the theorem for a network."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaymodel import files
from relaymodel.cli.inputs import (
    HEADS,
    LONGEST,
    NUMPY,
    WIDTH,
    BiasStrength,
    Continuation,
    Length,
    NumpyDepth,
    PromptA,
    PromptB,
    PromptLength,
    Seed,
    Untrained,
    check_prompts,
    choose_network,
    choose_texts,
    one_line_warnings,
)
from relaymodel.cli.numbers import number, whole
from relaymodel.cli.options import Csv, Force, Json, Plot
from relaymodel.cli.output import Output, claim, print_json
from relaymodel.memory import demand_memory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from relaymodel.certificate import Certificate


def certify(
    model: Annotated[
        str,
        typer.Argument(
            metavar="[MODEL]",
            help="untrained-numpy (random weights, NumPy alone), or a GPT-2, Llama or Qwen2 model of transformers: a "
            "folder, a GGUF file, a hub name; with --untrained also a config.json.",
        ),
    ] = NUMPY,
    prompt_a: PromptA = None,
    prompt_b: PromptB = None,
    continuation: Continuation = None,
    prompt: PromptLength = "16",
    t_max: Length = "256",
    bias: BiasStrength = "0",
    untrained: Untrained = False,
    depth: NumpyDepth = None,
    seed: Seed = "0",
    latex: Annotated[Path | None, typer.Option("--latex", metavar="FILE", help="Write it as LaTeX.")] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write it as an HTML page.")] = None,
    json: Json = False,
    csv: Csv = None,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """Certify that a network forgets its prompt at least as fast as a relay model.

    Checks the theorem's hypotheses, measures its constants on two runs, and verifies the bound at every position of
    every layer.  Exit code 1 if an inequality fails; hypotheses that fail are reported.
    """
    from relaymodel.certificate import certify
    from relaymodel.certificate.render import page
    from relaymodel.certificate.subject import memory
    from relaymodel.networks.transformer import Architecture
    from relaymodel.simulation import PromptBias

    output = Output(json, csv, plot, force)
    taken = [path.absolute() for path in (csv, plot, latex, html) if path is not None]
    if len(set(taken)) < len(taken):
        raise ValueError("--csv, --plot, --latex and --html must be different files")
    for path in (latex, html):
        if path is not None:
            claim(path, force=force)
    strength, random = number("--bias", bias), whole("--seed", seed, least=0)
    P, steps = whole("--prompt", prompt, most=LONGEST), whole("--t-max", t_max, least=2, most=LONGEST)
    check_prompts(prompt_a, prompt_b)
    source = continuation or ("random" if model == NUMPY else "english")
    if model == NUMPY:
        shape = Architecture(depth=1, width=WIDTH, heads=HEADS, vocabulary=256, context=P + steps)
        demand_memory("--t-max", memory(shape, P + steps), f"a certificate of two runs of {P + steps} tokens")
    with one_line_warnings():
        network = choose_network(model, untrained, depth, random, None, P + steps)
        certificate = certify(
            network,
            choose_texts(network, prompt_a, prompt_b, source, 1, P, steps, random),
            bias=PromptBias(strength) if strength else None,
            progress=True,
        )
    output.write_table(_columns(certificate), certificate.provenance)
    for path, text in ((latex, certificate.latex), (html, lambda: page(certificate, certificate.verification))):
        if path is not None:
            output.written(files.write_text(path, text(), overwrite=force))
    output.write_figure(lambda: _draw(certificate))
    if json:
        print_json(_json(certificate))
    else:
        _print(certificate)
    if not certificate.holds:
        raise typer.Exit(1)


def _draw(certificate: "Certificate") -> "Figure":
    from relaymodel.plotting import panels, plot_certificate

    figure = panels()
    plot_certificate(certificate, ax=figure.axes[0])
    return figure


def _columns(certificate: "Certificate") -> dict[str, list[Any]]:
    """Return t, the measured distance at the last layer, and the decimal logarithm of every bound on it."""
    bounds = {
        f"log10_{name}": certificate.log10_bound(rung).tolist() for name, rung in certificate.ladder.rungs.items()
    }
    return {"t": certificate.t.tolist(), "distance": certificate.distance().tolist(), **bounds}


def _json(certificate: "Certificate") -> dict[str, Any]:
    from relaymodel.certificate.render import CERTIFIED, MEASURED, rounding

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
        "measured": MEASURED,
        "rounding": rounding(certificate),
        **_columns(certificate),
    }


def _print(certificate: "Certificate") -> None:
    from relaymodel.certificate.render import ladder, rounding, verdict

    for key, value in certificate.provenance.items():
        print(f"{key + ':':14} {value}")
    print()
    for hypothesis in certificate.hypotheses:
        print(f"{'holds' if hypothesis.holds else 'FAILS'}  {hypothesis.name}: {hypothesis.finding}")
    print()
    print(f"{'rung':18}{'log10 (bound / measured)':>26}{'gained':>9}  holds for")
    for name, holds_for, _, above, gained in ladder(certificate).rows:
        print(f"{name:18}{above:>26}{gained:>9}  {holds_for}")
    print(f"(mean over the continuation, last layer)\n\n{verdict(certificate, certificate.verification)}")
    print(rounding(certificate))
