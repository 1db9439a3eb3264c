# SPDX-License-Identifier: Apache-2.0
"""The head of a test of the tool in Python: its arguments as absolute paths, an empty folder to work in, what fails."""

import os
import sys
import tempfile

dgc, *others = map(os.path.abspath, sys.argv[1:])
samples, *others = others or [""]
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
model = os.path.join(samples, "digits.dsl")
failures = []
checks = 0


def check(good, *what):
    global checks
    checks += 1
    if not good:
        failures.append(what)
        print("FAILED:", *what)


def finish(more=""):
    if more:
        print(more)
    print("%d passed, %d failed" % (checks - len(failures), len(failures)))
    sys.exit(1 if failures else 0)
