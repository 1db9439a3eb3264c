#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Python package from this build, and runs package.py with what was installed.
set -eu
root=$1 build=$2 program=$3
python=$("$root/tools/oracles.sh") || exit $?
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m pip install -q --disable-pip-version-check --no-index --no-deps --no-build-isolation --no-cache-dir \
  --target "$folder/site" --config-settings build="$build" "$root/python"
cd "$folder"
PYTHONPATH=$folder/site DGC_CACHE=${DGC_CACHE-} "$python" -W error "$program" "$root"
