"""What compiled steps send between devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_steps_on_eight_devices_send_what_theory_says() -> None:
    pytest.importorskip("jax")
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    script = Path(__file__).with_name("transfers_on_eight.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env={**os.environ, **flags})
    assert done.stdout == "done\n", done.stderr
