"""Published numbers, computed again: one function for each, a verdict that can fail.

`python -m studies evidence` writes the page; the report has those that need no measurement.
"""

# isort: off
import relaymodel.report.evidence.networks
import relaymodel.report.evidence.tokens
import relaymodel.report.evidence.scaling
import relaymodel.report.evidence.distance
import relaymodel.report.evidence.rates  # noqa: F401

# isort: on
from relaymodel.report.evidence.row import ROWS, Outcome, PublishedNumber, PublishedRow, published

__all__ = ["ROWS", "Outcome", "PublishedNumber", "PublishedRow", "published"]
