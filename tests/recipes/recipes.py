#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what HACKING.md says, to a copy of the tree: recipes.py SOURCE [RECIPE...]

A recipe is a section "## Add ...". Its blocks of code are applied in their order: the line that opens one says, behind
the language, which file it belongs to and where:

    ```c ir/ops/ops.def after OP(tan,      behind the line that contains this text, which is one
    ```c ir/ops/unary.c end                at the end of the file
    ```c passes/signs.c new                a file that is not there yet

All recipes go into one copy, which is built once; then each block that is `sh` is run in the copy, by sh -e. What is
printed of each recipe is its price: the files and lines that it takes."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

FENCE = re.compile(r"^( *)```(\w+)(?: (\S+) (end|new|after|before)(?: (.*))?)?$")


class Wrong(Exception):
    pass


def recipes(path):
    """title -> [(line number, language, file, place, anchor, text)]"""
    found, title, block = {}, None, None
    with open(path) as f:
        for n, line in enumerate(f, 1):
            if block is not None:
                if line.strip() == "```":
                    block[-1] = textwrap.dedent(block[-1])
                    block = None
                else:
                    block[-1] += line
                continue
            if line.startswith("## "):
                title = line[3:].strip() if line.startswith("## Add ") else None
            fence = FENCE.match(line.rstrip("\n"))
            if title and fence:
                _, language, name, place, anchor = fence.groups()
                if name is None and language != "sh":
                    raise Wrong(f"{path}:{n}: to which file does this belong?")
                block = [n, language, name, place, anchor, ""]
                found.setdefault(title, []).append(block)
            elif line.strip().startswith("```"):
                block = [n, "", None, None, None, ""]  # of another section, or plain text
    return found


def apply(block, root):
    n, _, name, place, anchor, text = block
    path = os.path.join(root, name)
    if place == "new":
        if os.path.exists(path):
            raise Wrong(f"HACKING.md:{n}: {name} is there already")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        return
    with open(path) as f:
        lines = f.readlines()
    at = len(lines)
    if place != "end":
        where = [i for i, line in enumerate(lines) if anchor in line]
        if len(where) != 1:
            raise Wrong(f"HACKING.md:{n}: {len(where)} lines of {name} contain '{anchor}', not one")
        at = where[0] + (place == "after")
    lines[at:at] = text.splitlines(keepends=True)
    with open(path, "w") as f:
        f.writelines(lines)


def run(command, root, what):
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        said = done.stdout[max(done.stdout.find("\nFAILED:"), 0):]
        raise Wrong(f"{what}: exit {done.returncode}\n{said[-4000:]}")


def price(blocks):
    """Files and lines, those of tests and documents aside."""
    edits = [(b[2], b[5].count("\n")) for b in blocks if b[2]]
    def side(tests):
        of = [e for e in edits if e[0].startswith(("tests/", "docs/")) == tests]
        return len({name for name, _ in of}), sum(count for _, count in of)
    return "%d files, %d lines; tests and docs %d, %d" % (side(False) + side(True))


def unwanted(folder, names):
    """What belongs to git and to builds."""
    return [n for n in names if n in (".git", "__pycache__") or
            n.startswith("build") and os.path.isdir(os.path.join(folder, n))]


def main():
    source = os.path.abspath(sys.argv[1])
    every = recipes(os.path.join(source, "HACKING.md"))
    chosen = {t: b for t, b in every.items() if not sys.argv[2:] or any(word in t for word in sys.argv[2:])}
    if not chosen:
        raise Wrong("HACKING.md has no such recipe")
    with tempfile.TemporaryDirectory(prefix="dgc-recipes.") as work:
        root = os.path.join(work, "dgc")
        shutil.copytree(source, root, symlinks=True, ignore=unwanted)
        for title, blocks in chosen.items():
            for block in blocks:
                if block[2]:
                    apply(block, root)
        # Without optimization, and with nothing for debuggers, it is built in less time.
        run(["meson", "setup", "build", "-Doptimization=0", "-Ddebug=false", "-Dwerror=true"], root, "meson setup")
        run(["ninja", "-C", "build", "dgc"], root, "the tree with all recipes does not build")
        failed = 0
        for title, blocks in chosen.items():
            try:
                scripts = [b for b in blocks if b[1] == "sh"]
                if not scripts:
                    raise Wrong(f"{title}: no block says how to see that it works")
                for n, _, _, _, _, text in scripts:
                    run(["sh", "-ec", text], root, f"HACKING.md:{n}: {text.strip()}")
                print(f"{title}: {price(blocks)}")
            except Wrong as e:
                print(e)
                failed += 1
        print(f"{len(chosen) - failed} passed, {failed} failed")
        return 1 if failed else 0


try:
    sys.exit(main())
except Wrong as e:
    print(e)
    sys.exit(1)
