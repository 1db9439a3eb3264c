#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up meson's test logs: summary.py testlog.json... prints "PASSED FAILED SKIPPED"; with --longest N before them, the
tests that took most processor seconds (those of tools/alone.py): "; longest: bits 21 s, session 9 s".

A test program that reports its cases (cmocka, lit, or a line "N passed, N failed") counts with all of them.
"""
import json
import re
import sys

OWN = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
USED = re.compile(r"^processor seconds: ([0-9.]+)$", re.M)
CMOCKA = {
    "passed": re.compile(r"^\[  PASSED  \] (\d+) test", re.M),
    "failed": re.compile(r"^\[  FAILED  \] (\d+) test", re.M),
    "skipped": re.compile(r"^\[  SKIPPED \] (\d+) test", re.M),
}
LIT = {
    "passed": re.compile(r"^ +(?:Passed|Expectedly Failed) *: +(\d+)", re.M),
    "failed": re.compile(r"^ +(?:Failed|Timed Out|Unexpectedly Passed|Unresolved) *: +(\d+)", re.M),
    "skipped": re.compile(r"^ +(?:Unsupported|Skipped) *: +(\d+)", re.M),
}


def cases(text):
    own = OWN.findall(text)
    if own:
        return [sum(int(row[i] or 0) for row in own) for i in range(3)]
    for style in (CMOCKA, LIT):
        counts = [sum(map(int, pattern.findall(text))) for pattern in style.values()]
        if any(counts):
            return counts
    return None


def spent(test):
    """Processor seconds; by the clock, where nobody has measured them."""
    used = USED.findall(test.get("stderr") or "")
    return float(used[-1]) if used else test["duration"]


def longest(count, paths):
    tests = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            tests += map(json.loads, f)
    tests.sort(key=lambda test: -spent(test))
    return ", ".join("%s %.0f s" % (test["name"].split(" / ")[-1].split(":")[-1], spent(test)) for test in tests[:count])


def main():
    if sys.argv[1] == "--longest":
        print("; longest: " + longest(int(sys.argv[2]), sys.argv[3:]))
        return
    total = [0, 0, 0]
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            for line in f:
                test = json.loads(line)
                result = test["result"]
                kind = {"OK": 0, "EXPECTEDFAIL": 0, "SKIP": 2}.get(result, 1)
                counts = cases((test.get("stdout") or "") + "\n" + (test.get("stderr") or ""))
                if counts is None or (kind == 1 and not counts[1]):
                    counts = counts or [0, 0, 0]
                    counts[kind] += 1
                total = [a + b for a, b in zip(total, counts)]
    print(*total)


main()
