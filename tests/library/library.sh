#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# library.sh SOURCE DGC: the functions of the library beside JAX and scipy.
set -eu
python=$("$1/tools/oracles.sh" --find) || { echo "SKIP: no JAX: see tools/oracles.sh" && exit 77; }
exec "$python" -B "$1/tests/library/library.py" "$2"
