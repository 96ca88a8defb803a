"""The claims, in the order of the report: importing a module registers its checks."""

# isort: off
import relaymodel.report.claims.solution
import relaymodel.report.claims.decay
import relaymodel.report.claims.bound
import relaymodel.report.claims.limits
import relaymodel.report.claims.control
import relaymodel.report.claims.heads
import relaymodel.report.claims.evidence
import relaymodel.report.claims.networks
import relaymodel.report.claims.certificate
import relaymodel.report.claims.training  # noqa: F401
