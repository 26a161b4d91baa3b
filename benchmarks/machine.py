"""What every benchmark prints first: where and of what it was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path


def headline() -> str:
    """Processor, cores, Python and commit in one line."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, commit {commit or 'unknown'}"
