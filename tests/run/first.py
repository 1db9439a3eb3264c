#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""First steps: first.py DGC SAMPLES SOURCE. Every command of docs/tutorial.md is run and does what stands behind it; dgc new and
dgc doctor; what is said to who comes with words of other libraries; origins in docs."""
import json
import os
import pathlib
import re
import shutil
import subprocess

from checks import check, dgc, finish, others

root = pathlib.Path(others[0])
os.environ["PATH"] = os.path.dirname(dgc) + ":" + os.environ["PATH"]

# The commands of the tutorial, in their order and in one shell each. Behind "# exit N" one must end so; lines that follow
# a command, up to "...", are in what it prints, but for numbers.
text = (root / "docs/tutorial.md").read_text()
folder, commands = os.getcwd(), 0
for block in re.findall(r"^```\n(\$ .*?)^```$", text, re.M | re.S):
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, *wanted = part.splitlines()
        code = int((re.findall(r"# exit (\d)$", command) or [0])[0])
        done = subprocess.run(["bash", "-c", "cd %s && %s; code=$?; pwd >%s/where; exit $code" % (folder, command, os.getcwd())],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        folder = pathlib.Path("where").read_text().strip()
        printed = [re.sub(r"[-\d.]+", "N", line.rstrip()) for line in done.stdout.decode().splitlines()]
        check(done.returncode == code, command, "exit", done.returncode, done.stdout.decode())
        for line in wanted:
            if line != "...":
                check(re.sub(r"[-\d.]+", "N", line.rstrip()) in printed, command, "does not print", line, "but", done.stdout.decode())
        commands += 1
check(commands >= 12, "commands", commands)


# Every origin in README and docs is in what it is said to be in.
origins = 0
for page in (root / "README.md", *sorted((root / "docs").glob("*.md"))):
    for name, file, line in re.findall(r"[(;] ?([\w.]+), (\w+\.dsl):(\d+)", page.read_text()):
        library = root / "frontend/lib" / file
        if not library.exists():
            continue
        above = [re.match(r"(?:layer|function|optimizer) (\w+)", text) for text in library.read_text().splitlines()[:int(line)]]
        origins += 1
        check([m.group(1) for m in above if m][-1:] == [name.split(".")[-1]], page.name, name, file, line)
check(origins >= 8, "origins", origins)


def run(*arguments, env=None):
    return subprocess.run([dgc, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)


# dgc new: a folder that is its own, or nothing.
check(run("new", "deep/first").returncode == 3, "no folder above it")
check(run("new", "one").returncode == 0 and run("test", "one").returncode == 0, "new")
before = sorted((p.name, p.read_bytes()) for p in pathlib.Path("one").iterdir())
check(len(before) == 5 and run("new", "one").returncode == 2, "it is there")
check(before == sorted((p.name, p.read_bytes()) for p in pathlib.Path("one").iterdir()), "it has changed")
for name in ("9x", "", "a b", "a;b", "..", "."):
    check(run("new", name).returncode == 2, name)
model = pathlib.Path("one/one.dsl")
model.write_text(model.read_text().replace("rate = 0.02", "rate = 0.0"))
done = run("test", "one")
check(done.returncode == 4 and b"accuracy is" in done.stdout and b"which is less than 0.9" in done.stdout, done.stdout)

# dgc doctor.
found = json.loads(run("doctor", "--json").stdout)
states = {f["what"]: f["state"] for f in found["found"]}
check(found["ok"] and states["kernels"] == "ok" and states["machine"] == "ok", found)
check({"cache", "GPU", "MPI", "huge pages"} < set(states), states)
bare = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME", "DGC_CACHE")}
check(b"cache        not there" in run("doctor", env=bare).stdout, "no cache")
says = run("doctor", env=dict(bare, XDG_CACHE_HOME=os.path.abspath("not/there"))).stdout
check(b"cache        ok" in says and os.listdir("not/there/dgc"), "a cache makes its folders", says)
check(os.stat("not").st_mode & 0o777 == 0o700, "for this user alone")
os.mkdir("open")
os.mkdir("open/dgc")
os.chmod("open/dgc", 0o777)
check(b"not this user's alone" in run("doctor", env=dict(bare, XDG_CACHE_HOME=os.path.abspath("open"))).stdout, "a cache that others may write")

# Of a launcher whose library dgc has no module for it does not say that all is there.
os.mkdir("alone")
for part in (pathlib.Path(dgc), *pathlib.Path(dgc).parent.glob("libdgc.so.?")):
    shutil.copy(part, "alone")
lone = subprocess.run(["alone/dgc", "doctor", "--json"], capture_output=True, text=True,
                      env=dict(os.environ, LD_LIBRARY_PATH=os.path.abspath("alone")))
states = {f["what"]: f["state"] for f in json.loads(lone.stdout)["found"]}
check(states["MPI"] == "not there", lone)

# Messages as JSON, of every verb that has it: one object, whatever is wrong.
verbs = re.findall(r"^  ([a-z]+) ", run("--help").stdout.decode(), re.M)
having = [v for v in verbs if "--json" in run("help", v).stdout.decode()]
check({"check", "compile", "opt", "train", "eval", "predict", "bench", "inspect", "checkpoint", "report", "verify", "diff", "explain", "trace",
       "test", "new", "doctor", "devices"} <= set(having), having)
words = {"explain": ["nowhere.dsl", "x"], "diff": ["nowhere.dg", "nowhere.dg"], "checkpoint": ["show", "nowhere"], "report": ["nowhere", "-o", "r.html"],
         "eval": ["nowhere.dsl", "--checkpoint", "x"], "predict": ["nowhere.dsl", "--checkpoint", "x"], "new": ["nowhere/x"]}
for verb in having:
    for arguments in (words.get(verb, ["nowhere.dsl"]), ["--no-such-option"]):
        if verb in ("devices", "doctor", "doc", "test") and arguments[0][:2] != "--":
            continue
        done = run(verb, *arguments, "--json")
        lines = done.stdout.decode().splitlines()
        said = json.loads(lines[0]) if len(lines) == 1 else {}
        check(done.returncode in (1, 2, 3) and said.get("diagnostics") and said["diagnostics"][0]["severity"] == "error", verb, arguments, done)
run("compile", "one/one.dsl", "--devices", "cpu:0-1", "--emit", "placed", "-o", "placed.dg")
claims = json.loads(run("verify", "one/one.dsl", "--entry", "train", "--devices", "cpu:0-1", "--json").stdout)
check(claims["ok"] and claims["claims"] == run("verify", "one/one.dsl", "--entry", "train", "--devices", "cpu:0-1").stdout.decode().splitlines(), claims)

# Words of other libraries.
MODEL = "use nn\nmodel m() {\n  input x : %s[B, 4]\n  h = nn.dense(x, 2%s)\n%s  train mean(h) with %s\n}\n"
for arguments, word, here in [
    (("float32", "", "", "sgd(rate = 1)"), "float32", "f32"), (("int", "", "", "sgd(rate = 1)"), "int", "i32"),
    (("f32", ", activation = None", "", "sgd(rate = 1)"), "None", "none"), (("f32", "", "", "sgd(lr = 1)"), "lr", "rate"),
    (("f32", "", "", "adam(learning_rate = 1)"), "learning_rate", "rate"), (("f32", "", "  k = keras.x\n", "sgd(rate = 1)"), "keras", "use nn"),
    (("f32", "", "  k = tf.nn.relu(x)\n", "sgd(rate = 1)"), "tf", "is `relu`"),
]:
    pathlib.Path("word.dsl").write_text(MODEL % arguments)
    done = run("check", "word.dsl", "--json")
    said = json.loads(done.stdout)["diagnostics"]
    notes = [n for d in said if "`%s`" % word in d["message"] for n in d.get("notes", [])]
    good = any(n.get("fix") == {"replace": word, "with": here} for n in notes) or any(here in n["message"] for n in notes if " " in here)
    check(good, word, said)

# What is to be written in place of tf.distribute's symbols is there.
page = (root / "docs/tf_distribute.md").read_text()
helps = run("help", "train").stdout.decode() + run("help", "launch").stdout.decode()
known = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", helps, re.M))
check(set(re.findall(r"--[a-z][a-z-]+", page)) <= known, set(re.findall(r"--[a-z][a-z-]+", page)) - known)
# Messages that are explained are messages.
sources = "".join(p.read_text() for f in ("frontend", "session", "tools", "runtime", "ir", "passes", "base") for p in (root / f).rglob("*.c"))
sources = re.sub(r'"\s*"', "", sources)
explained = re.findall(r"^\| `([^`]*)`", (root / "docs/troubleshooting.md").read_text(), re.M)
check(len(explained) > 10 and all(m in sources for m in explained), [m for m in explained if m not in sources])
language = (root / "docs/language.md").read_text()
for word in ("tower_count()", "tower_id()", "all_gather(", "synchronization(on_read)", "aggregation("):
    check(word in page and word in language, word)
for name in re.findall(r"--(?:strategy|cross-device) ([a-z_]+)", page):
    check(name in (root / "ir/strategies.def").read_text() + (root / "ir/cross_device.def").read_text(), name)
finish()
