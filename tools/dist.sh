#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run by `meson dist`: adds the generated lexer and parser to the source archive.
set -eu
cd "$MESON_DIST_ROOT/frontend"
[ -f parser.y ] || exit 0
mkdir -p generated
bison --header=generated/parser.h -o generated/parser.c parser.y
flex --header-file=generated/lexer.h -o generated/lexer.c lexer.l
