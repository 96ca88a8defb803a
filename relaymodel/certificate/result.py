"""The certificate: the evidence, verified and shown."""

from dataclasses import dataclass
from functools import cached_property

from relaymodel.certificate.evidence import Evidence
from relaymodel.certificate.ladder import Rung
from relaymodel.certificate.render import html, latex
from relaymodel.certificate.verification import Verification, compare, verify
from relaymodel.networks.protocol import Measurement


@dataclass(frozen=True, eq=False)
class Certificate(Evidence):
    """The theorem of THEORY section 8 for one network and two runs; made by `certify`.  Its parts: see `Evidence`."""

    @cached_property
    def verification(self) -> Verification:
        """What `verify` found."""
        return self.verify()

    @property
    def holds(self) -> bool:
        """Whether every inequality was verified, position by position and layer by layer."""
        return self.verification.passed

    def verify(self) -> Verification:
        """Compute everything anew from network and texts, compare it, and check every inequality on it."""
        return verify(self)

    def check(self, measured: Measurement, rung: str | Rung = "smallest_prompts") -> Verification:
        """Hold another measurement of the same texts, in float64, against a rung's bound at every layer and token.

        A network with other weights, or a curve that was tampered with, exceeds the bound where the change is large
        enough; the tightest rung is the most sensitive one.
        """
        return compare(self, measured, rung)

    def latex(self) -> str:
        """Return the certificate as LaTeX (amsmath): hypotheses, constants with the formulas they go into, bounds."""
        return latex(self, self.verification)

    def _repr_html_(self) -> str:
        return html(self, self.verification)

    def __repr__(self) -> str:
        return (
            f"Certificate(depth {self.depth}, prompt {self.prompt}, t = 1..{self.t[-1]}; "
            f"hypotheses {'hold' if self.applies else 'fail'}; {self.verification.inequalities} inequalities "
            f"{'hold' if self.holds else 'do NOT all hold'}; rung 'prompts' is 10^{self.heights['prompts']:.2f} above "
            "the truth)"
        )
