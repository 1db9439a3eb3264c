#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# oracle.sh SOURCE CASES SUITE: what XLA makes of the modules that CASES writes, by the Python that has JAX.
set -eu
python=$("$1/tools/oracles.sh" --find) || { echo "SKIP: no JAX: see tools/oracles.sh" && exit 77; }
exec "$python" "$1/tests/oracle/oracle.py" "$2" "$3"
