# SPDX-License-Identifier: Apache-2.0
"""What a test cannot do without; where that is not there, it is skipped and says so."""
import importlib
import sys


def modules(*names):
    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as missing:
        print(f"SKIP: no {missing.name}: see tools/oracles.sh")
        sys.exit(77)
