#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program's output is what its "expect:" line says. sample.sh PROGRAM SOURCE
wanted=$(sed -n 's/.*expect: *\(.*[^ ]\) *\*\/$/\1/p' "$2")
got=$("$1") || exit 1
[ "$got" = "$wanted" ] && exit 0
echo "expected: $wanted"
echo "printed:  $got"
exit 1
