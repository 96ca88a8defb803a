"""The theorem as a certificate for a concrete network (THEORY section 8)."""

from relaymodel.certificate.constants import Constants
from relaymodel.certificate.hypotheses import Hypothesis
from relaymodel.certificate.ladder import Ladder
from relaymodel.certificate.result import Certificate
from relaymodel.certificate.sharp import sharp_network
from relaymodel.certificate.theorem import certify
from relaymodel.certificate.verification import Verification

__all__ = ["Certificate", "Constants", "Hypothesis", "Ladder", "Verification", "certify", "sharp_network"]
