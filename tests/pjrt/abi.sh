#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Our table of the PJRT C API against the real header: that of DGC_PJRT_HEADER, or one that a package of the oracles' Python
# brings, TensorFlow's for example. abi.sh COMPILER SOURCE
compiler=$1
source=$2
python=$("$source/tools/oracles.sh" --find 2>/dev/null) || python=python3
header=${DGC_PJRT_HEADER-$("$python" -c '
import glob, sysconfig
found = glob.glob(sysconfig.get_paths()["purelib"] + "/*/include/**/pjrt/c/pjrt_c_api.h", recursive=True)
print(found[0] if found else "")' 2>/dev/null)}
if [ ! -f "$header" ]; then
  echo "SKIP: no pjrt_c_api.h: set DGC_PJRT_HEADER, or DGC_ORACLES to a Python that has tensorflow-cpu"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$compiler" -std=c17 -I"$source" "-DPJRT_HEADER=\"$header\"" "$source/tests/pjrt/test_abi.c" -o "$work/test_abi" &&
  "$work/test_abi"
