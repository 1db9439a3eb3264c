#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# with_oracles.sh SOURCE SCRIPT ARGUMENT...: a test in Python that compares with JAX, numpy or scipy, by the Python that has
# them.
set -eu
python=$("$1/tools/oracles.sh" --find) || { echo "SKIP: no JAX and numpy: see tools/oracles.sh" && exit 77; }
script=$1/$2
shift 2
exec "$python" -B "$script" "$@"
