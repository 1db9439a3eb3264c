#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fitted.sh DGC SOURCE: nn.running_norm beside numpy, by the Python that has it.
set -eu
python=$("$2/tools/oracles.sh" --find) || { echo "SKIP: no numpy: see tools/oracles.sh" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -B "$2/tests/run/fitted.py" "$1" "$work"
