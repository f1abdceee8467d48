"""What every test runs under: one BLAS thread, checked collectives, a Hypothesis profile, and a selection.

The environment is written here, before anything loads NumPy; library code never does this.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")           # ranks and helpers share the cores
os.environ.setdefault("MINIGPT_COMM_CHECK", "1")   # collectives compare their headers (CASES 97-99)

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

slow_data = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("ci", max_examples=15, derandomize=True, deadline=None, suppress_health_check=slow_data)
settings.register_profile("all", max_examples=200, deadline=None, suppress_health_check=slow_data)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

STRICT = os.environ.get("MINIGPT_DEVICE") == "strict"


def pytest_collection_modifyitems(items):
    """Skip, with the reason, what this device cannot show."""
    reason = None
    for item in items:
        if item.get_closest_marker("strict") and not STRICT:
            item.add_marker(pytest.mark.skip(reason="needs MINIGPT_DEVICE=strict (make test-strict)"))
        if item.get_closest_marker("gpu"):
            reason = reason or why_no_gpu()
            if reason != "there is one":
                item.add_marker(pytest.mark.skip(reason=reason))


def why_no_gpu():
    from autograd.backend import gpu_status

    ok, reason = gpu_status()
    return "there is one" if ok else f"no usable GPU: {reason}"
