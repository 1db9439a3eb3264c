# SPDX-License-Identifier: Apache-2.0
"""What a stage of tools/test builds: targets.py TARGETS LONG BUILD. Of a made-up build, exactly that; of this one, everything
that is built by default for all suites, and for some all that their tests are given. And each row of LONG, tests/long.txt, is
a test, where the build has all tests, and stages."""
import json
import os
import subprocess
import sys
import tempfile


def printed(*words):
    return subprocess.run([sys.executable, sys.argv[1], *words], check=True, capture_output=True, text=True).stdout.split()


def targets(*words):
    return set(printed(*words))


def check(what, wanted, got):
    print(f"{'ok' if wanted == got else 'FAILED'}: {what}" + ("" if wanted == got else f": {wanted} {got}"))
    return wanted == got


def made_up(build):
    def target(name, kind="executable", default=True):
        return {"id": name + "@id", "type": kind, "filename": [f"{build}/{name}"], "build_by_default": default}

    def test(suites, cmd, depends=(), env=None):
        return {"name": "test_" + cmd[0], "suite": ["x:" + s for s in suites], "cmd": [f"{build}/{c}" for c in cmd], "depends": list(depends),
                "env": {k: f"{build}/{v}" for k, v in (env or {}).items()}}
    what = {"targets": [*map(target, ["tool", "bench", "a", "b", "c", "d"]), target("lib", "shared library"),
                        target("archive", "static library"), target("never", default=False)],
            "tests": [test(["unit"], ["a", "tool"]), test(["unit", "slow"], ["b"]), test(["run"], ["x.sh"], ["c@id"], {"D": "d"}),
                      test(["run"], ["tool"]), test(["run"], ["never"]), test(["more"], ["tool"])]}
    os.mkdir(f"{build}/meson-info")
    for name, rows in what.items():
        with open(f"{build}/meson-info/intro-{name}.json", "w", encoding="utf-8") as f:
            json.dump(rows, f)


def main():
    with tempfile.TemporaryDirectory() as folder:
        build = os.path.realpath(folder)
        made_up(build)
        good = [check("a suite", {"tool", "bench", "lib", "a", "b"}, targets(build, "unit")),
                check("a suite without another", {"tool", "bench", "lib", "a"}, targets(build, "unit", "-slow")),
                check("a suite without a test", {"tool", "bench", "lib", "a"}, targets(build, "unit", "-test_b")),
                check("tests", {"test_a", "test_x.sh", "test_never"}, targets("--tests", build, "unit", "run", "-slow", "-test_tool")),
                check("a name of two tests once", ["test_tool"], printed("--tests", build, "run", "more", "-test_x.sh", "-test_never")),
                check("what a test depends on, or has in a variable", {"tool", "bench", "lib", "c", "d"}, targets(build, "run"))]
    build = os.path.realpath(sys.argv[3])
    with open(f"{build}/meson-info/intro-targets.json", encoding="utf-8") as f:
        all_files = {os.path.relpath(n, build): t for t in json.load(f) if t["build_by_default"] for n in t["filename"]}
    with open(f"{build}/meson-info/intro-tests.json", encoding="utf-8") as f:
        tests = json.load(f)
    suites = {s.split(":")[-1] for t in tests for s in t["suite"]}
    good.append(check("all suites of this build", {n for n, t in all_files.items() if t["type"] != "static library"}, targets(build, *suites)))
    given = {os.path.relpath(a, build) for t in tests if "unit" in t["suite"][0] for a in t["cmd"] if a.startswith(build + "/")}
    good.append(check("what tests of units are given", set(), (given & set(all_files)) - targets(build, "unit")))
    with open(sys.argv[2], encoding="utf-8") as f:
        rows = [words for words in (line.partition("#")[0].split() for line in f) if words]
    names = {t["name"] for t in tests}
    if {"registers", "recipes", "cpu_longer", "simulated_waits"} <= names:
        good.append(check("rows are tests", set(), {row[0] for row in rows} - names))
    good.append(check("stages", set(), set().union(*(row[1:] for row in rows)) - {"gcc", "address", "thread"}))
    good.append(check("no test stands twice", len(rows), len({row[0] for row in rows})))
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    return 0 if all(good) else 1


sys.exit(main())
