#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What has to be built for some suites: targets.py BUILD SUITE... prints, as words for ninja, all that is built by default
but programs which only tests of other suites run; targets.py --tests BUILD SUITE... prints the tests. -NAME leaves out
that suite, or that test."""
import json
import os
import sys


def load(build, what):
    with open(os.path.join(build, "meson-info", f"intro-{what}.json"), encoding="utf-8") as f:
        return json.load(f)


def chosen(test, suites):
    """As meson test has it with --suite and --no-suite."""
    of = {suite.split(":")[-1] for suite in test["suite"]}
    wanted = {suite for suite in suites if not suite.startswith("-")}
    return bool(of & wanted) and not any("-" + name in suites for name in of | {test["name"]})


def uses(test, programs):
    """The programs that it runs, is given, or says that it depends on."""
    named = set(test["cmd"]) | set(map(str, test["env"].values()))
    return {p["id"] for p in programs if p["id"] in test["depends"] or named & set(p["filename"])}


def main():
    names = sys.argv[1] == "--tests"
    build, suites = os.path.realpath(sys.argv[1 + names]), sys.argv[2 + names:]
    tests = load(build, "tests")
    if names:
        return print(*dict.fromkeys(test["name"] for test in tests if chosen(test, suites)))
    targets = [t for t in load(build, "targets") if t["build_by_default"]]
    programs = [t for t in targets if t["type"] == "executable"]
    others = set().union(*(uses(t, programs) for t in tests if not chosen(t, suites)))
    others -= set().union(*(uses(t, programs) for t in tests if chosen(t, suites)))
    # What libraries of archives are for is what is linked with them.
    print(*(os.path.relpath(name, build) for t in targets if t["id"] not in others and t["type"] != "static library"
            for name in t["filename"]))


main()
