#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does each source say what license it has, where SPDX's tools look? licenses.py SOURCE [--add]

On its first line, behind `#!` on its second. Of programs in dgc's language it is the last one: lines of theirs are quoted.
Texts, and what tests read and compare, are data; LICENSE holds for them as for all. --add writes the line where it
lacks. A script NAME.py that writes NAME.def beside it writes that line, too."""
import os
import re
import sys

LINE = "SPDX-License-Identifier: Apache-2.0"
SOURCE = re.compile(r"\.(c|h|cpp|hpp|def|l|y|cu|cuh|py|sh|toml)$|(^|/)(meson\.build|meson_options\.txt)$")
PROGRAM = re.compile(r"^(frontend/lib|samples)/[^/]*\.dsl$")
SKIP = re.compile(r"^(\.git|build.*|generated|__pycache__|subprojects|golden)$")


def lines_of(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read().splitlines()


def where(relative, lines):
    """The line that must say it, None: it need not."""
    if PROGRAM.search(relative):
        return len(lines) - 1
    if lines and lines[0].startswith("#!"):
        return 1
    return 0 if SOURCE.search(relative) else None


def add(path, at, text):
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as f:
        lines = f.read().rstrip("\n").split("\n")
    if path.endswith(".dsl"):
        lines += ["", text]
    else:
        lines.insert(at, text)
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as f:
        f.write("\n".join(lines) + "\n")


def main(root, adds):
    failures = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not SKIP.search(f))
        for file in sorted(files):
            path = os.path.join(folder, file)
            relative = os.path.relpath(path, root)
            lines = lines_of(path) if os.path.isfile(path) and os.path.getsize(path) < 1 << 20 else []
            if os.path.exists(re.sub(r"\.py$", ".def", path)) and file.endswith(".py") and "/* " + LINE not in "\n".join(lines):
                print("%s: what it writes lacks `/* %s */`" % (relative, LINE))
                failures += 1
            at = where(relative, lines)
            if at is not None and lines and LINE not in "".join(lines[at:at + 1]):
                comment = "/* %s */" if re.search(r"\.(c|h|cpp|hpp|def|l|y|cu|cuh)$", file) else "# %s"
                if adds:
                    add(path, at, comment % LINE)
                    continue
                print("%s:%d: this line must be `%s` (tests/lint/licenses.py . --add)" % (relative, at + 1, comment % LINE))
                failures += 1
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--add" in sys.argv[2:]) != 0)
