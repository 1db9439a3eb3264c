#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what Debian 12 needs: tools/deps.sh build|test. Does nothing when all of it is there.
set -eu

build="gcc libc6-dev libopenmpi-dev pkg-config meson ninja-build flex bison llvm-19-dev libdnnl-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev python3"
test="chromium clang-19 lld-19 openmpi-bin libclang-rt-19-dev llvm-19-tools libcmocka-dev clang-format-14 locales python3-numpy python3-venv git tcc"

case ${1-} in
build) packages=$build ;;
test) packages="$build $test" ;;
*)
  echo "usage: tools/deps.sh build|test" >&2
  exit 2
  ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "tools/deps.sh: not a Debian system; install the equivalents of: $packages" >&2
  exit 0
fi

missing=
for package in $packages; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing="$missing $package"
done

as_root=
if [ "$(id -u)" != 0 ]; then
  as_root=sudo
fi
if [ -n "$missing" ]; then
  if [ -n "$as_root" ] && ! command -v sudo >/dev/null; then
    echo "tools/deps.sh: run as root, or install:$missing" >&2
    exit 1
  fi
  echo "installing:$missing" >&2
  $as_root apt-get update -q >&2
  # shellcheck disable=SC2086
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >&2
fi

# One locale with a decimal comma: numbers must print the same in it.
if [ "$1" = test ] && ! locale -a 2>/dev/null | grep -qi '^de_DE.utf'; then
  $as_root localedef -i de_DE -f UTF-8 de_DE.UTF-8 || true
fi
