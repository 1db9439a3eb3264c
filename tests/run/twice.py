#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One file for two things: twice.py DGC SAMPLES. Each option of each verb that writes, as `dgc VERB --help --json` tells them, is
given the file of each other that writes or reads, and of the verb's own words: an error that names both, and nothing has changed."""
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess

from checks import check, dgc, finish

MODEL = """use "lib.dsl" as lib
model line {
  input x : f32[B, 2]
  input y : f32[B]
  var weight : f32[2, 1] = zeros()
  guess = lib.twice(squeeze(x @ weight, 1))
  loss = squared_error(guess, y)
  train mean(loss) with sgd(rate = 0.1)
  predict p = guess
  data train {
    x = "dx.npy"
    y = "dy.npy"
  }
}
"""


def npy(path, shape):
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    text = ("{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % "".join("%d, " % k for k in shape)).ljust(117) + "\n"
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode()
                                   + struct.pack("<%df" % count, *(i % 7 - 3 for i in range(count))))


def run(*words, **more):
    return subprocess.run([dgc, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


pathlib.Path("m.dsl").write_text(MODEL)
pathlib.Path("lib.dsl").write_text("function twice(x) { return 2 * x }\n")
pathlib.Path("names").write_text("w = weight\n")
pathlib.Path("hosts").write_text("localhost slots=2\n")
for name, shape in ("x.npy", (32, 2)), ("ex.npy", (32, 2)), ("y.npy", (32,)), ("dx.npy", (32, 2)), ("dy.npy", (32,)):
    npy(name, shape)
data = ["--data", "x=x.npy", "--data", "y=y.npy"]
made = run("train", "m.dsl", *data, "--batch", "8", "--checkpoint", "g.st", "--log", "a.jsonl", "--receipt", "r.json", "--trace", "t.json")
check(made.returncode == 0, made.stderr)
graph = run("compile", "m.dsl", "--emit", "placed", "-o", "g.dg")
check(graph.returncode == 0, graph.stderr)
shutil.copy("g.st", "h.st")
shutil.copy("g.dg", "h.dg")
shutil.copy("a.jsonl", "b.jsonl")
pathlib.Path("t.test").write_text("RUN: dgc check %S/m.dsl\n")


def state():
    """Every file, a link by where it leads."""
    return {str(p): os.readlink(p) if p.is_symlink() else hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "" for p in sorted(pathlib.Path(".").rglob("*"))}


WORDS = {"check": ["m.dsl"], "compile": ["m.dsl"], "opt": ["g.dg"], "train": ["m.dsl"], "eval": ["m.dsl"], "predict": ["m.dsl"], "bench": ["m.dsl"],
         "checkpoint": ["rename", "g.st"], "report": ["a.jsonl", "b.jsonl"], "test": ["t.test"], "trace": ["t.json"], "verify": ["g.dg"],
         "diff": ["g.dg", "h.dg"], "explain": ["m.dsl", "guess"], "doc": ["relu"], "devices": [], "inspect": ["g.st"], "weights": ["g.st"],
         "new": ["n"], "doctor": [], "completion": ["bash"], "launch": []}
# What a file that is written must end in, and what a verb wants besides.
ENDS = {"log": ".jsonl"}
MORE = {"train": data, "eval": ["--checkpoint", "h.st"] + data, "predict": ["--checkpoint", "h.st"] + data, "bench": data,
        "checkpoint": ["--names", "names"]}
# What each option that reads is given: a file that is there. A new one belongs here.
READS = {"data": "x.npy", "eval-data": "ex.npy", "names": "names", "init-from": "h.st", "source": "h.dg", "resume": "h.st", "receipt": "r.json",
         "checkpoint": "h.st", "pjrt-plugin": "plugin.so", "hosts": "hosts", "define": "names"}
pathlib.Path("plugin.so").write_text("no library\n")
# A checkpoint is gone on with, in place.
ALLOWED = {("resume", "checkpoint"), ("resume", "keep-best")}


def value(option, path):
    if option["value"].startswith("NAME="):
        return {"output": "p=", "define": "x="}.get(option["name"], "x=") + path
    return path if option["name"] != "dump-batch" else "7"


def shown(option):
    return "-o" if option["name"] == "file" else "--" + option["name"]


def refused(verb, what, *words):
    """The command is refused with both names and has done nothing."""
    before = state()
    done = run(verb, *words)
    good = done.returncode == 2 and all(name in done.stderr for name in what) and "help: " in done.stderr and "--help" not in done.stderr
    check(good and ("both name" in done.stderr or "names" in done.stderr), verb, words, done.returncode, done.stderr)
    check(state() == before, verb, words, set(state()) ^ set(before))


def given(verb, *options):
    """The words of a verb, with the options in place of what it wants besides."""
    names = {o["name"] for o, _ in options}
    more = MORE.get(verb, [])
    rest = [w for k in range(0, len(more), 2) if more[k][2:] not in names or more[k] == "--data" for w in more[k:k + 2]]
    return WORDS[verb] + rest + [w for o, path in options for w in ("--" + o["name"] + "=" + value(o, path),)]


verbs = [line.split()[0] for line in run("--help").stdout.splitlines() if line.startswith("  ") and line[2] != " "]
check({"train", "predict", "compile", "report"} < set(verbs) and set(verbs) <= set(WORDS), "a verb is new", set(verbs) ^ set(WORDS))
pairs, found = 0, set()
for verb in verbs:
    helped = json.loads(run(verb, "--help", "--json").stdout)
    options = [o for o in helped["options"] if o["value"]]
    for o in options:  # an option that names files must say what is done with them
        names = any(word in o["value"] for word in ("FILE", "DIR", "PATH"))
        check(not names or o["file"] or o["name"] == "allow-path", verb, "what is done with the file of", o)
    writes = [o for o in options if o["file"] in ("writes", "writes in")]
    reads = [o for o in options if o["file"] == "reads" and not o["name"] == "define"]
    found |= {o["name"] for o in writes}
    check(all(o["name"] in READS for o in reads), "what does it read?", [o["name"] for o in reads if o["name"] not in READS])
    if verb == "launch":
        continue
    for i, a in enumerate(writes):
        for b in writes[i + 1:]:  # two that are written
            if a["file"] == b["file"] == "writes in":
                continue
            path = "batch-7.npz" if "dump-batch" in (a["name"], b["name"]) else "z" + ENDS.get(a["name"], ENDS.get(b["name"], ""))
            refused(verb, (shown(a), shown(b)), *given(verb, (a, path), (b, "./" + path)))
            pairs += 1
        for b in reads:  # one that is written and one that is read
            if (b["name"], a["name"]) in ALLOWED:
                continue
            path = READS[b["name"]]
            if a["name"] == "dump-batch":
                path = "batch-7.npz"
                shutil.copy(READS[b["name"]], path)
            extra = [] if verb != "train" else ["--overwrite"]
            refused(verb, (shown(a), shown(b)), *given(verb, (b, path), (a, path)), *extra)
            pathlib.Path("batch-7.npz").unlink(missing_ok=True)
            pairs += 1
        for word in WORDS[verb][1 if verb == "checkpoint" else 0:]:  # and what the verb is told without an option
            if a["name"] == "dump-batch" or word in ("guess", "relu"):
                continue
            extra = ["--overwrite"] if verb in ("train", "checkpoint") else []
            refused(verb, (shown(a),), *given(verb, (a, word)), *extra)
            pairs += 1
        if WORDS[verb][:1] == ["m.dsl"] and a["name"] != "dump-batch":  # what the model reads
            for word in ("lib.dsl", "dx.npy"):
                refused(verb, (shown(a),), *given(verb, (a, word)), *(["--overwrite"] if verb == "train" else []))
                pairs += 1
check({"checkpoint", "trace", "log", "log-dir", "receipt", "keep-best", "output", "file", "dump-dir", "junit", "dump-batch"} <= found, "what writes", found)
check(pairs > 100, pairs)

# --- one file by other names ---

train = ["m.dsl", *data, "--batch", "8", "--overwrite", "--quiet"]
os.mkdir("sub")
os.link("g.st", "hard")
os.symlink("g.st", "soft")
os.symlink("sub/new", "dangling")
os.symlink("sub", "folder")
for a, b in ("g.st", "hard"), ("g.st", "soft"), ("dangling", "sub/new"), ("folder/z", "sub/z"), ("sub/../z", os.path.abspath("z")), ("not/yet/z", "not/yet/./z"):
    refused("train", ("--trace", "--checkpoint"), *train, "--checkpoint", a, "--trace", b)
    refused("train", ("--trace", "--checkpoint"), *train, "--checkpoint", b, "--trace", a)
refused("train", ("--checkpoint", "the model"), *train, "--checkpoint", "folder/../m.dsl")
refused("train", ("--trace", "--checkpoint"), *train, "--log-dir", "runs", "--checkpoint", "runs/z", "--trace", "runs/./z")
# A folder that dumps go to, and one that images come from.
os.mkdir("dumps")
shutil.copy("g.dg", "dumps/simplify.dg")
refused("opt", ("--dump-dir", "GRAPH"), "dumps/simplify.dg", "--dump-dir", "dumps")
os.mkdir("photos")
shutil.copy("x.npy", "photos/a.png")
refused("train", ("--data", "--trace"), "m.dsl", "--data", "x=photos/:resize", "--trace", "photos/a.png")
# What a file is called until it is whole is swept by who writes it next.
shutil.copy("x.npy", "z.tmp-00000000-1-1")
refused("train", ("--data", "--checkpoint"), "m.dsl", "--data", "x=z.tmp-00000000-1-1", "--checkpoint", "z")
# The file of hosts, and what the processes write.
refused("launch", ("--hosts", "--trace"), "-n", "2", "--hosts", "hosts", "--", "train", *train, "--trace", "hosts")
# Each process has a trace.
refused("train", ("--trace", "--checkpoint"), *train, "--trace", "t", "--checkpoint", "t")
# In JSON, too.
told = run("train", *train, "--json", "--checkpoint", "z", "--trace", "z")
check(told.returncode == 2 and json.loads(told.stdout)["diagnostics"][0]["message"] == "--trace and --checkpoint both name z", told.stdout)

# --- what may be ---

for words in (["train", *train, "--checkpoint", "/dev/null", "--trace", "/dev/null"],
              ["train", *train, "--checkpoint", "on.st", "--log-dir", "runs", "--dump-dir", "runs", "--trace", "runs/t.json"],
              ["train", "m.dsl", *data, "--quiet", "--epochs", "2", "--checkpoint", "on.st", "--resume"],
              ["train", "m.dsl", *data, "--quiet", "--epochs", "3", "--checkpoint", "on.st", "--resume=on.st"],
              ["train", "m.dsl", *data, "--quiet", "--epochs", "4", "--checkpoint", "on.st", "--resume", "--log", "z", "--log", "on.jsonl", "--trace", "z"],
              ["predict", "m.dsl", *data, "--checkpoint", "g.st", "--output", "p=p.csv"],
              ["predict", "m.dsl", "--data", "x=p.csv", "--data", "x=x.npy", "--checkpoint", "g.st", "--output", "p=p.csv"],
              ["compile", "m.dsl", "-o", "/dev/stdout"], ["diff", "g.dg", "g.dg"]):
    done = run(*words)
    check(done.returncode == 0, words, done.returncode, done.stderr)

# --- a batch that never comes ---

for more, says in (["--steps", "4"], "this training did steps 1 to 4"), (["--steps", "0"], "did no step"):
    done = run("train", *train, *more, "--dump-batch", "1000000")
    check(done.returncode == 0 and "warning: dump-batch: batch-1000000.npz is not written: " in done.stderr and says in done.stderr, done.stderr)
done = run("train", *train, "--steps", "4", "--dump-batch", "4")
check(done.returncode == 0 and "dump-batch" not in done.stderr and os.path.exists("batch-4.npz"), done.stderr)

# --- a model without variables ---

pathlib.Path("drawn.dsl").write_text("model drawn {\n  input x : f32[B, 2]\n  predict p = random_uniform(f32[B, 2]) + 0 * x\n}\n")
done = run("predict", "drawn.dsl", "--data", "x=x.npy")
check(done.returncode == 0 and len(done.stdout.splitlines()) == 33, done.returncode, done.stdout, done.stderr)
done = run("predict", "m.dsl", "--data", "x=x.npy")
check(done.returncode == 2 and "--checkpoint FILE says which variables to use" in done.stderr, done.stderr)

finish("%d pairs" % pairs)
