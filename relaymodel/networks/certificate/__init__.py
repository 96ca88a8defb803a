"""The theorem as a certificate for a concrete network (THEORY section 8)."""

from relaymodel.networks.certificate.constants import Constants
from relaymodel.networks.certificate.hypotheses import certify
from relaymodel.networks.certificate.result import Certificate, Hypothesis, Verification
from relaymodel.networks.certificate.sharp import sharp_network
from relaymodel.networks.certificate.steps import Step

__all__ = ["Certificate", "Constants", "Hypothesis", "Step", "Verification", "certify", "sharp_network"]
