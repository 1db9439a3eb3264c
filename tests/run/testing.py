#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dgc test: testing.py DGC SAMPLES SOURCE FILECHECK. What it makes of tests of each kind, what lines RUN may not do, our own
goldens, and whether CHECK lines mean what LLVM's FileCheck makes of them: it is asked, of texts and lines at random."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import xml.etree.ElementTree

from checks import check, dgc, finish, others, samples

source = pathlib.Path(others[0])
filecheck = sys.argv[4] if len(sys.argv) > 4 and os.path.exists(sys.argv[4]) else None
MODEL = """model m() {
  input x : f64[B, 2]
  input y : f64[B, 1]
  var w : f64[2, 1] = 0
  train mean((x @ w - y) * (x @ w - y)) with sgd(rate = 0.5)
}
"""


def write(name, text):
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return name


def test(*words, code=0):
    """What dgc test tells as JSON: file -> how it ended, and its text."""
    done = subprocess.run([dgc, "test", "--json", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(done.returncode == code, words, "exit", done.returncode, done.stdout.decode()[-2000:], done.stderr.decode())
    found = json.loads(done.stdout)
    return {os.path.basename(t["file"]): (t["end"], t["text"]) for t in found.get("tests", [])}


def ends(name, text, end, *shown, words=()):
    write("one/" + name, text)
    found = test("one/" + name, *words, code=0 if end in ("passed", "skipped", "failed as expected", "updated") else 4)
    check(found[name][0] == end, name, found[name])
    for part in shown:
        check(part in found[name][1], name, "does not say", repr(part), "but", found[name][1])
    return found[name][1]


# --- each kind of line ---

ends("run.dsl", MODEL + "# RUN: dgc compile --emit graph %s | FileCheck %s\n# CHECK: w = variable\n# CHECK-NOT: dense\n", "passed")
ends("wrong.dsl", MODEL + "# RUN: dgc compile --emit graph %s | FileCheck %s\n# CHECK: w = variables\n", "failed",
     "wrong.dsl:8:10: error: CHECK is not found", "wrong.dsl:7:8: note: the text is of this line", "graph m.train",
     "note: looked for from here on\n", "note: this line is nearest\n", "w = variable {trainable")
found = ends("far.dsl", MODEL + "# RUN: dgc compile --emit graph %s | FileCheck %s\n# CHECK: quite another thing\n", "failed", "note: looked for from here on\n")
check("nearest" not in found, "a line that has nothing of it is nearest", found)
ends("code.dsl", MODEL + "# RUN: dgc check --batch 0 %s\n", "failed", "code.dsl:7:8: error: dgc check --batch 0 code.dsl: exit code 2",
     "expected an integer")
ends("not.dsl", MODEL + "# RUN: not dgc check --batch 0 %s 2>&1 | FileCheck %s\n# CHECK: expected an integer\n", "passed")
ends("not_not.dsl", MODEL + "# RUN: not dgc check %s\n", "failed", "does not fail, and it should")
ends("pipe.dsl", MODEL + "# RUN: dgc compile --emit graph %s > %t.dg\n# RUN: dgc opt %t.dg | dgc opt --passes=grad - \\\n# RUN:   | FileCheck %s\n# CHECK: m.train\n", "passed")
ends("xfail.dsl", MODEL + "# XFAIL: one day\n# RUN: not dgc check %s\n", "failed as expected")
ends("xpass.dsl", MODEL + "# XFAIL: one day\n# RUN: dgc check %s\n", "passed unexpectedly", "one day")
ends("requires.dsl", MODEL + "# REQUIRES: shell\n# RUN: rm x\n", "skipped", "requires shell")
ends("interp.dsl", MODEL + "# REQUIRES: interp\n# RUN: dgc check %s\n", "passed")
ends("nothing.dsl", MODEL, "nothing to test")
ends("typo.dsl", MODEL + "# RUN: dgc check %s | FileCheck %s\n# CHECK: ok\n# CHECK-NXT: ok\n", "failed", "did you mean CHECK-NEXT?")

# Expected messages: those that come, and no others.
WRONG = """use nn
model w() {
  input x : f32[B, 4]
  h = nn.dens(x, 3)  # error: `nn` has no `dens`%s
  # error@+1: unknown name
  k = %s
  train mean(x) with sgd(rate = 1)  # error: depends on no variable
}
"""
ends("here.dsl", WRONG % ("  # help@*: did you mean", "hiden"), "passed")
ends("fewer.dsl", WRONG % ("", "x"), "failed", "this error does not come")
ends("more.dsl", WRONG.replace("# error@+1: unknown name", "") % ("", "hiden"), "failed", "error comes, and is not expected: more.dsl:6")
ends("where.dsl", (WRONG % ("", "hiden")).replace("@+1", ""), "failed", "this error does not come", "not expected")

# The same of graph texts, as dgc opt says them.
GRAPH = """graph m.train {
  x = input : f32[B,3]
  y = %s x : f32[B,3]  # error: %s
  predict y
}
"""
ends("good.dg", (GRAPH % ("exp", "x")).replace("error", "") + "# RUN: dgc opt %s\n", "passed")
ends("here.dg", GRAPH % ("axp", "axp"), "passed")
ends("fewer.dg", GRAPH % ("exp", "axp"), "failed", "this error does not come")
ends("more.dg", (GRAPH % ("axp", "axp")).replace("error", "note"), "failed", "comes, and is not expected: more.dg:")

# Expected numbers: what gradient descent by hand gives.
rng = random.Random(3)
rows = [[rng.gauss(0, 1) for _ in range(2)] for _ in range(8)]
goal = [[r[0] - 2 * r[1]] for r in rows]
for name, table in (("x", rows), ("y", goal)):
    write("one/%s.csv" % name, "".join(",".join(map(repr, row)) + "\n" for row in table))
w, losses = [0.0, 0.0], []
for step in range(3):
    error = [r[0] * w[0] + r[1] * w[1] - g[0] for r, g in zip(rows, goal)]
    losses.append(sum(e * e for e in error) / 8)
    w = [w[k] - 0.5 * sum(2 * e * r[k] for e, r in zip(error, rows)) / 8 for k in range(2)]
AFTER = " after 3 epochs with --batch 8 --no-shuffle --data x=x.csv --data y=y.csv\n"
ends("number.dsl", MODEL + "# EXPECT train.loss %r within 1e-12%s# EXPECT loss at most %r%s# EXPECT loss at least 0%s"
     % (losses[2], AFTER, losses[2] * 1.001, AFTER, AFTER), "passed")
ends("other.dsl", MODEL + "# EXPECT loss %r within 1e-12%s" % (losses[2] + 1e-9, AFTER), "failed", "other.dsl:7:10: error: loss is", "differs from")
ends("most.dsl", MODEL + "# EXPECT loss at most %r%s" % (losses[2] * 0.999, AFTER), "failed", "which is more than")
ends("name.dsl", MODEL + "# EXPECT los at most 1%s" % AFTER, "failed", "the training tells of no 'los'")
ends("number_wrong.dsl", MODEL + "# EXPECT loss about 1 after 3 steps\n", "failed", "this is no expected number")

# Goldens, and their diff, which patch understands.
golden = MODEL + "# RUN: dgc compile --emit graph %s | golden golden.expected\n"
check("+graph" not in ends("golden.dsl", golden, "failed", "there is no golden.expected", "--update"), "a text beside nothing")
check(not os.path.exists("one/golden.expected"))
ends("golden.dsl", golden, "updated", "+graph m.train", words=["--update"])
ends("golden.dsl", golden, "passed")
for n in range(20):
    before = "".join(rng.choice("abc") + "\n" for _ in range(rng.randrange(0, 30)))
    after = "".join(line for line in before.splitlines(True) for line in rng.choice([[line], [line], [line], [], ["x\n", line]]))
    after = after[:-1] if rng.random() < 0.2 else after
    write("one/patched.txt", before)
    write("one/with.txt", after)
    text = ends("patched.dsl", "# RUN: golden patched.txt < with.txt\n", "passed" if before == after else "updated", words=["--update"])
    check(pathlib.Path("one/patched.txt").read_text() == after, n)
    write("one/patched.txt", before)
    done = subprocess.run(["patch", "-s", "--no-backup-if-mismatch", "one/patched.txt"], input=text.encode()) if text else None
    check(not done or done.returncode == 0, n, text)
    check(pathlib.Path("one/patched.txt").read_text() == after, n, before, after, text)

# --- what lines RUN may not do ---

secret = os.path.abspath(write("secret.dsl", MODEL))
outside = os.path.abspath("made")
for line in [
    "rm -rf x", "sh -c 'rm x'", "/bin/sh x", "env A=b dgc check %s", "dgc check %s && dgc check %s", "dgc check %s ; rm x", "dgc check $HOME",
    "dgc check `id`", "dgc check $(id)", "dgc check *", "dgc check " + secret, "dgc check ../secret.dsl", "dgc check %S/../secret.dsl",
    "dgc check %S./secret.dsl", "dgc check '%S.'/secret.dsl", "dgc check x/../../secret.dsl", "dgc check %s --data=x=" + secret, "dgc check %s --data x=../x.csv",
    "dgc check %s --allow-path=/", "dgc check %s --allow-path ..", "dgc compile %s -o" + outside, "dgc compile %s -o made", "dgc compile %s --file=%S/made",
    "dgc compile %s -o ../made", "dgc compile %s --dump-dir made", "dgc compile %s --dump-dir %t/../../made", "dgc check %s > made",
    "dgc check %s > %S/made", "dgc train %s --checkpoint made", "dgc train %s --log=made", "dgc train %s --resume made", "dgc train %s --log-dir made",
    "dgc train %s --dump-batch 1", "dgc train %s --receipt made", "dgc train %s --keep-best made", "dgc predict %s --output y=made",
    "dgc check %s --pjrt-plugin x.so", "dgc launch -n 2 -- train %s", "dgc test %s", "dgc nothing", "FileCheck " + secret + " < %s",
    "golden ../made < %s", "golden " + outside + " < %s", "FileCheck %s < " + secret, "not", "", "dgc", "dgc check %x", "dgc check 'x", "dgc check %s | rm x",
]:
    text = ends("hole.dsl", MODEL + "# RUN: " + line + "\n", "failed", words=["--update"])
    check("hole.dsl:7" in text, line, text)
    check("exit code 0" not in text and not os.path.exists("made") and not os.path.exists("one/made"), line, text)
# An option that names a file is one of these, which read, or may only write to %t.
reads = {"data", "eval-data", "allow-path", "source", "names", "init-from", "pjrt-plugin", "hosts", "junit", "define"}
for verb in ("check", "compile", "opt", "train", "eval", "predict", "bench", "verify", "explain", "diff", "checkpoint", "report"):
    for line in subprocess.run([dgc, "help", verb], stdout=subprocess.PIPE).stdout.decode().splitlines():
        words = line.split()
        option = next((w for w in words[:2] if w.startswith("--")), None) if line.startswith("  -") else None
        value = words[words.index(option) + 1] if option and len(words) > words.index(option) + 1 else ""
        if any(word in value for word in ("FILE", "DIR", "PATH")) and option[2:] not in reads and not (verb in ("eval", "predict") and option == "--checkpoint"):
            ends("hole.dsl", MODEL + "# RUN: dgc %s %%s %s made\n" % (verb, option), "failed", "writes to %t and nowhere else")
ends("device.dsl", MODEL + "# RUN: dgc check %s --devices /cpu:0,/cpu:1\n# RUN: dgc check --parameter-device=/cpu:1 --strategy central_storage --devices cpu:0-1 %s\n", "passed")
ends("own.dsl", MODEL + "# RUN: dgc check %x/secret.dsl\n", "passed", words=["--define", "x=."])

# A command that does not end, and a test that is asked to end.
write("one/long.dsl", MODEL + "# RUN: dgc train %s --epochs 100000000 --quiet --data x=x.csv --data y=y.csv\n")
check("has not ended after 1 seconds" in test("one/long.dsl", "--seconds", "1", code=4)["long.dsl"][1], "seconds")
scratch = os.path.abspath("tmp")
os.mkdir(scratch)
long = subprocess.Popen([dgc, "test", "one/long.dsl"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, TMPDIR=scratch))
while not any(pathlib.Path(scratch).glob("*/0")):
    check(long.poll() is None, "it has ended")
long.terminate()
check(long.wait() == -15 and not os.listdir(scratch), long.returncode, os.listdir(scratch))

# --- reports ---

shutil.rmtree("one")
for n in range(30):
    write("many/%02d.dsl" % n, MODEL + "# RUN: %sdgc check %%s\n" % ("not " if n % 7 == 3 else ""))
write("many/inputs/x.dsl", "# RUN: not dgc check %s\n")
write("many/<&.test", "# RUN: rm\n")
found = test("many", "--jobs", "3", "--junit", "out.xml", code=4)
suite = xml.etree.ElementTree.parse("out.xml").getroot()[0]
check(len(found) == 31 and suite.attrib["tests"] == "31" and suite.attrib["failures"] == "5", suite.attrib)
check({c.attrib["name"]: c.find("failure") is not None for c in suite} == {n: end == "failed" for n, (end, _) in found.items()}, "junit")
check([c.find("failure").text for c in suite if c.attrib["name"] == "<&.test"] == [found["<&.test"][1]], "text")
one = subprocess.run([dgc, "test", "many", "-j1"], stdout=subprocess.PIPE).stdout
check(one == subprocess.run([dgc, "test", "many", "-j7"], stdout=subprocess.PIPE).stdout and b"26 passed, 5 failed" in one, one)
check(subprocess.run([dgc, "test", "many/inputs/../nothing"], stderr=subprocess.DEVNULL).returncode == 1)
os.mkdir("empty")
check(subprocess.run([dgc, "test", "empty"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode == 1, "empty")

# --- our own goldens ---

own = test(str(source / "tests/golden"), "--define", "samples=" + str(source / "samples"), "--define", "data=" + samples)
told = [name for name, (end, _) in own.items() if end == "skipped"]
check(len(own) >= 80 and (len(told) <= 13 or "requires llvm" in str(own)), len(own), told)

# --- FileCheck itself ---

WORDS = ["a", "b", "ab", "aa", "b a", "a  b", "1", "22", "a.b", "[", "a|b", "x:"]
PARTS = WORDS + ["{{a+}}", "{{[ab]+}}", "{{.*}}", "{{a|b}}", "{{^}}", "{{$}}", "[[#]]", "[[V:[a-z]+]]", "[[W:[0-9]+]]", "[[V]]", "[[W]]", "{{(a|b)(1|2)?}}"]
KINDS = ["", "", "", "-NEXT", "-SAME", "-NOT", "-DAG", "-DAG", "-EMPTY", "-LABEL", "-COUNT-2"]


def as_pattern(rng, text):
    """A part of the text, of which some is made a pattern."""
    begin = rng.randrange(len(text) + 1)
    text = text[begin:begin + rng.randrange(1, 4)] if rng.random() < 0.8 else text
    return "".join(rng.choice([c, c, c, "{{.}}", "{{%s|1}}" % c, "[[V:.]]", "{{.*}}"] + ["[[V]]"] * (c == "a")) if c.isalnum() else c for c in text)


def case(rng):
    """A text, and lines most of which it is as."""
    each = ["".join(rng.choice(WORDS + [" ", "\t"]) for _ in range(rng.randrange(4))) for _ in range(rng.randrange(2, 8))]
    text, lines, at = "".join(line + "\n" for line in each), [], 0
    for _ in range(rng.randrange(1, 5)):
        step = rng.randrange(3)
        kind = rng.choice(KINDS) if rng.random() < 0.15 else ["-SAME" if lines else "", rng.choice(["-NEXT" if lines else "", "-DAG", ""]), rng.choice(["", "-LABEL", "-DAG"])][step]
        at = at if rng.random() < 0.1 else min(at + step, len(each) - 1)
        pattern = "".join(rng.choice(PARTS) for _ in range(rng.randrange(1, 4))) if rng.random() < 0.05 or kind == "-NOT" else as_pattern(rng, each[at])
        if kind == "-LABEL" and "[[" in pattern:
            kind = ""
        if not pattern.strip():
            kind = "-EMPTY"
        lines.append("# CHECK%s: %s\n" % (kind, "" if kind == "-EMPTY" else pattern))
    return text, "# RUN: FileCheck %s < " + "%s" + "\n" + "".join(lines)


if filecheck:
    expected, cases = {}, int(os.environ.get("TEST_CASES", 250))
    for n in range(cases):
        text, lines = case(random.Random(n))
        write("random/%d.txt" % n, text)
        write("random/%d.test" % n, lines.replace("< %s", "< %d.txt" % n))
        done = subprocess.run([filecheck, "random/%d.test" % n], stdin=open("random/%d.txt" % n), stderr=subprocess.PIPE)
        expected["%d.test" % n] = done.returncode == 0
    found = test("random", code=4)
    for name, good in expected.items():
        check((found[name][0] == "passed") == good, name, "FileCheck says", good, found[name], pathlib.Path("random", name).read_text())
    good = sum(expected.values())
    check(cases / 6 < good < cases * 5 / 6, "of", cases, "cases pass", good)
    finish("%d texts, of which %d are as their lines say, to FileCheck" % (cases, good))
finish("SKIP: there is no FileCheck to compare with")
