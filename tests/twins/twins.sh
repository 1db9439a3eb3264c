#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# twins.sh SOURCE DGC NAME: models in the language and in JAX, by the file NAME.py.
set -eu
python=$("$1/tools/oracles.sh" --find) || { echo "SKIP: no JAX: see tools/oracles.sh" && exit 77; }
exec "$python" -B "$1/tests/twins/$3.py" "$2"
