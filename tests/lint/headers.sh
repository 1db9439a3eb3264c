#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone; the public one also as C99 and as C++. headers.sh SOURCE BUILD CC...
cd "$1" || exit 1
build=$2
llvm=/usr/lib/llvm-19/include
shift 2
status=0
check() {
  header=$1
  shift
  "$@" -fsyntax-only -Wall -Wextra -Werror "$header" || {
    echo "$header does not compile alone: $*"
    status=1
  }
}
# Those of folders that meson builds, and of the tool; generated ones are flex's and bison's affair, and tests have their own.
for header in $(find $(dirname -- */meson.build) tools -name '*.h' ! -path '*/generated/*' ! -path 'tests/*'); do
  case $header in
    runtime/cpu/*) [ -f "$llvm/llvm-c/Types.h" ] || continue ;; # a build without LLVM has none of them
  esac
  check "$header" "$@" -x c -std=c17 -D_GNU_SOURCE -I. -Iinclude -I"$build" -isystem "$llvm"
done
if [ -f include/dgc.h ]; then
  check include/dgc.h "$@" -x c -std=c99 -pedantic
  echo 'int main() { return 0; }' | "$@" -x c++ -fsyntax-only - 2>/dev/null &&
    check include/dgc.h "$@" -x c++ -std=c++11 -pedantic
fi
exit $status
