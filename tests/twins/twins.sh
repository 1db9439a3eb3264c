#!/bin/sh
# twins.sh SOURCE DGC: models in the language and in JAX end with the same variables.
set -eu
python=$("$1/tools/oracles.sh" --find) || { echo "SKIP: no JAX: see tools/oracles.sh" && exit 77; }
exec "$python" "$1/tests/twins/twins.py" "$2"
