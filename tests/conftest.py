"""What all tests share: hypothesis draws the same examples each time where CI is set, and never times one out."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Test modules are imported by path; this makes the helpers beside this file importable by name.
sys.path.insert(0, str(Path(__file__).parent))

# The first example of a test may have to compile kernels, which is slow and says nothing about the data.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture
def here(monkeypatch, capsys):
    """Runs the `lifeline` command in this process, which has its packages loaded: (exit code, output, errors)."""
    from lifeline.cli import main

    def run_here(*arguments):
        monkeypatch.setattr(sys, "argv", ["lifeline", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, *capsys.readouterr()

    return run_here
