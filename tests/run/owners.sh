#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The header for C++ compiles without a warning by the oldest standard it is for, and does what owners.cpp asks of it.
#   owners.sh BUILD SOURCE
set -eu
command -v g++ >/dev/null || { echo "g++ is not installed"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for standard in c++11 c++20; do
  g++ -std=$standard -pedantic -Wall -Wextra -Werror -I"$2/include" "$2/tests/run/owners.cpp" -o "$folder/owners" -L"$1" -ldgc
  LD_LIBRARY_PATH=$1 "$folder/owners"
done
