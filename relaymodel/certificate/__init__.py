"""The theorem as a certificate for a concrete network (THEORY section 8)."""

from relaymodel.certificate.constants import Constants
from relaymodel.certificate.hypotheses import certify
from relaymodel.certificate.result import Certificate, Hypothesis, Verification
from relaymodel.certificate.sharp import sharp_network
from relaymodel.certificate.steps import Step

__all__ = ["Certificate", "Constants", "Hypothesis", "Step", "Verification", "certify", "sharp_network"]
