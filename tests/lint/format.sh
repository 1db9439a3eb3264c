#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is the C code as clang-format leaves it? Other versions than 14 format otherwise, so they do not count.
cd "$1" || exit 1
for tool in clang-format-14 clang-format; do
  case $($tool --version 2>/dev/null) in
  *"version 14."*)
    # Folders that meson builds, and those that it does not enter.
    find $(dirname -- */meson.build) include tools bench -name '*.[ch]' -print0 2>/dev/null | xargs -0 "$tool" --dry-run -Werror
    exit
    ;;
  esac
done
echo "clang-format 14 is not installed"
exit 77
