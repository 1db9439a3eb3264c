"""Compares standard input with a golden file; with DGC_ACCEPT=1 in the environment, rewrites the file."""
import difflib
import os
import sys


def main():
    path = sys.argv[1]
    actual = sys.stdin.buffer.read()
    expected = b""
    if os.path.exists(path):
        with open(path, "rb") as f:
            expected = f.read()
    if actual == expected:
        return 0
    lines = [t.decode("utf-8", "replace").splitlines(keepends=True) for t in (expected, actual)]
    diff = "".join(difflib.unified_diff(lines[0], lines[1], path, "actual"))
    if os.environ.get("DGC_ACCEPT") != "1":
        sys.stdout.write(diff)
        return 1
    with open(path, "wb") as f:
        f.write(actual)
    with open(os.environ["DGC_ACCEPT_LOG"], "a", encoding="utf-8") as log:
        log.write(diff)
    return 0


sys.exit(main())
