"""Estimates run without the threads of the linear algebra library."""

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from relaymodel import Curve
from relaymodel.inference import fit_power_law, power_law


def counts():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_estimates_run_in_one_thread_and_leave_the_others_be(monkeypatch):
    seen, smooth = [], power_law.smooth
    monkeypatch.setattr(power_law, "smooth", lambda *given: seen.append(counts()) or smooth(*given))
    t = np.geomspace(2, 1e3, 12)
    with threadpool_limits(2, user_api="blas"):
        fit_power_law(Curve(t, t**-0.5))
        assert seen == [{1}]
        assert counts() == {2}
    assert fit_power_law.__name__ == "fit_power_law"
