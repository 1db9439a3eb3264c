#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scan.sh DGC SOURCE [SIMULATED]: loops at run time beside JAX, by the Python that has it.
set -eu
python=$("$2/tools/oracles.sh" --find) || { echo "SKIP: no JAX: see tools/oracles.sh" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -B "$2/tests/run/scan.py" "$1" "$work" ${3+"$3"}
