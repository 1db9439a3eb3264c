# SPDX-License-Identifier: Apache-2.0
"""What a test cannot do without. Where the Python that runs it lacks something, that of tools/oracles.sh takes over; where that
one does, too, the test is skipped and says so."""
import importlib
import os
import subprocess
import sys

ORACLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/oracles.sh")


def modules(*names):
    """To be called before the test changes its folder."""
    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as missing:
        found = subprocess.run([ORACLES, "--find"], capture_output=True, text=True)
        if found.returncode or os.environ.get("TEST_NESTED"):
            print(f"SKIP: no {missing.name}: see tools/oracles.sh", found.stderr.strip())
            sys.exit(77)
    os.environ["TEST_NESTED"] = "1"
    python = found.stdout.strip()
    os.execv(python, [python, "-B", *sys.argv])
