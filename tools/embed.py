#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns text files into a C file: embed.py NAME OUT.c FILE...

The C file defines `const struct embedded NAME[]` (see base/embed.h), one entry per file in the given order
and an entry with a NULL name behind the last. An entry is named after its file, without the folder.
"""
import os
import sys


def literal(line):
    out = []
    for byte in line:
        char = chr(byte)
        if char in '"\\':
            out.append("\\" + char)
        elif char == "\n":
            out.append("\\n")
        elif char == "?" or not 32 <= byte < 127:
            out.append("\\%03o" % byte)
        else:
            out.append(char)
    return '"' + "".join(out) + '"'


def main():
    name, out, *paths = sys.argv[1:]
    rows = []
    with open(out, "w", encoding="ascii", newline="\n") as c:
        c.write('#include "base/embed.h"\n\n')
        for i, path in enumerate(paths):
            with open(path, "rb") as f:
                text = f.read()
            c.write("static const char text_%d[] =\n" % i)
            for line in text.splitlines(keepends=True) or [b""]:
                c.write("  " + literal(line) + "\n")
            c.write("  ;\n\n")
            rows.append('  {"%s", text_%d, sizeof text_%d - 1},\n' % (os.path.basename(path), i, i))
        c.write("extern const struct embedded %s[];\n" % name)
        c.write("const struct embedded %s[] = {\n%s  {0, 0, 0},\n};\n" % (name, "".join(rows)))


main()
