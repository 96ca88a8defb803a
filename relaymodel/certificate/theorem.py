"""`certify`: the theorem's hypotheses, constants and bounds for one network and two runs."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from relaymodel.certificate.ladder import Ladder
from relaymodel.certificate.result import Certificate
from relaymodel.certificate.subject import Subject
from relaymodel.checks import as_text
from relaymodel.progress import reporter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaymodel.certificate.subject import Bias
    from relaymodel.networks.protocol.pairs import Pairs, PlainPairs
    from relaymodel.progress import Report


def certify(
    network: Any,
    pairs: Pairs | PlainPairs,
    *,
    bias: Bias | None = None,
    provenance: Mapping[str, str] | None = None,
    progress: bool | Report = False,
) -> Certificate:
    r"""Certify that two runs of a network forget their prompts no slower than a relay model (THEORY section 8).

    For every block $\delta'_n \le \rho_l\,\delta_n + \lambda_l\,\frac1n\sum_{s\le n}\delta_s$, $\delta_n$ the distance
    of the two runs' states at position n; hence the distances are at most those of a relay model, which section 2
    solves, and fall at the rate $O(P(\log t)^{L-1}/t)$.  The constants come from the weights alone, from the weights
    and the hypotheses, from the note's formulas, and, ever tighter, from what the two runs do: `Certificate.ladder`.
    MLPs with a gate have the product bound of `relaymodel.certificate.weights.MLPNorms.gain`.

    Parameters
    ----------
    network
        The NumPy transformer, or a GPT-2, Llama, Qwen2, OPT, Gemma or OLMo model (the first ones of the last two) of
        transformers, which is converted to it: the
        certificate is about the float64 network with these weights.
    pairs
        As for `measure`, one pair.
    bias
        As for `measure`.  With one that grows with t the hypothesis of bounded logits fails; the certificate says so,
        and how omega grows, and its bounds hold for these two runs only.
    provenance
        Facts to keep with the result.
    progress
        True shows a bar on a terminal; a function is called with (steps done, steps in total).

    Returns
    -------
    Certificate
        `applies`: do the hypotheses hold; `holds`: was every inequality verified.

    Raises
    ------
    TypeError, ValueError
        For unusable arguments, and, by name, for networks whose hypotheses cannot be established: post-LN, sliding
        windows, blocks of another kind.

    Examples
    --------
    >>> import numpy as np
    >>> from relaymodel.networks.transformer import Architecture, Transformer
    >>> shape = Architecture(depth=2, width=32, heads=4, vocabulary=256, positions="none")
    >>> network = Transformer.random(shape, np.random.default_rng(0))
    >>> certificate = certify(network, ("To be, or not", "All the world", "to be, that is the question. "))
    >>> certificate.applies, certificate.holds
    (True, True)
    >>> crude, tight = (certificate.log10_ratio(rung)[-1] for rung in ("section_8", "prompts"))
    >>> bool(crude > 2 > 1 > tight > 0)
    True
    """
    report = reporter(progress)
    subject, facts = Subject.of(network, pairs, bias)
    facts |= as_text(provenance)
    done, total = 2 * subject.network.depth, 2 * subject.network.depth + len(fields(Ladder))
    certificate = Certificate.gather(subject, facts, lambda done: report(done, total))
    for i, rung in enumerate(certificate.ladder.rungs.values(), start=1):
        _ = rung.bound  # derived now, while progress is shown
        report(done + i, total)
    report(total, total)
    return certificate
