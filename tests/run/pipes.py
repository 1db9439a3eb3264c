#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data through pipes, read once and used as often as that of files; and data larger than the memory that there is.

pipes.py DGC SAMPLES [WHOLE]: without WHOLE, a sanitizer is in it, which takes terabytes of address space."""
import gzip
import json
import os
import pty
import resource
import signal
import struct
import subprocess
import sys
import threading

from checks import check, dgc, finish

MODEL = """model m() {
  input x : f32[B, 2]
  input y : f32[B]
  var w : f32[2] = 0
  var b : f32[] = 0
  z = sum(x * w, axis = 1) + b
  train mean(square(z - y)) with sgd(0.01)
  predict z = z
}
"""
open("m.dsl", "w").write(MODEL)
table = "a,b,c\n" + "".join("%d,%g,%g\n" % (i % 7, i / 16, i % 5 - 2.5) for i in range(500))
open("t.csv", "w").write(table)
open("t.csv.gz", "wb").write(gzip.compress(table.encode()))


def npy(rows, columns):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, columns)
    head += " " * (117 - len(head)) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode()


def run(*words, given=None, **more):
    given = given.encode() if isinstance(given, str) else given
    done = subprocess.run([dgc, *words], input=given, stdin=subprocess.DEVNULL if given is None else None, capture_output=True, **more)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def trained(x, y, given=None, name="c", env=None, more=()):
    code, _, err = run("train", "m.dsl", "--data", "x=" + x, "--data", "y=" + y, "--epochs", "3", "--batch", "64", "--overwrite",
                       "--checkpoint", name, *more, given=given, env={**os.environ, **(env or {})})
    check(code == 0, x, y, err)
    return open(name, "rb").read() if code == 0 else err


def refused(got, words, *what):
    code, out, err = got
    check(code in (1, 2) and out == "" and words in err and err.count("error:") == 1, *what, code, out, err)


want = trained("t.csv:1-2", "t.csv:c")
packed = open("t.csv.gz", "rb").read()
check(trained("-:1-2", "-:c", table) == want, "one table for both inputs, over three epochs")
check(trained("-:1-2", "t.csv:c", packed) == want, "compressed")
check(trained("-:1-2", "-:c", table, env={"DGC_DATA_MEMORY": "1000"}) == want, "more than may lie in memory")
check(trained("/dev/stdin:1-2", "/dev/stdin:c", table) == want, "by its other name")
os.mkfifo("pipe")
writer = threading.Thread(target=lambda: open("pipe", "w").write(table))
writer.start()
check(trained("pipe:1-2", "pipe:c") == want, "a FIFO")
writer.join()
for text in ("x=-:1-2", "x=-:a", "x=-"):
    code, out, err = run("predict", "m.dsl", "--data", text, "--checkpoint", "c", given="a,b\n1,2\n")
    check((code == 0) == (text != "x=-:a"), text, err)
    check("reading standard input to its end" in err, text, err)
code, out, err = run("predict", "m.dsl", "--data", "x=-", "--checkpoint", "c", "--quiet", given=npy(2, 2) + struct.pack("<4f", 1, 2, 3, 4))
check(code == 0 and len(out.splitlines()) == 3 and err == "", "npy", err)
evaluated = run("eval", "m.dsl", "--data", "x=-:1-2", "--data", "y=-:3", "--checkpoint", "c", "--json", given=table)
check(json.loads(evaluated[1]) == json.loads(run("eval", "m.dsl", "--data", "x=t.csv:1-2", "--data", "y=t.csv:3", "--checkpoint", "c",
                                                  "--json")[1]), "evaluated", evaluated)

# --- what cannot be ---
predict = ("predict", "m.dsl", "--checkpoint", "c", "--data")
refused(run(*predict, "x=-", given=""), "nothing has come through it", "nothing")
refused(run(*predict, "x=-", given="\0\1\2"), "error: ", "no data")
refused(run(*predict, "x=-", given=packed[:40]), "cannot decompress", "no gzip")
refused(run(*predict, "x=-:9", given="some words\n"), "has 1 column, so there is no ':9'; it is read as a table, and a text is a file that is called .txt", "windows")
refused(run(*predict, "x=-", given=npy(2**40, 2)), "its header says", "a header that lies")
refused(run(*predict, "x=pipe", timeout=60), "cannot read pipe: nobody has opened it to write for 10 seconds", "nobody writes")
refused(run(*predict, "x=-", given=table, env={**os.environ, "DGC_DATA_MEMORY": "10", "TMPDIR": "/dev/null"}), "takes no file", "nowhere to keep it")
refused(run("predict", "m.dsl", "--checkpoint", "c", "--data", "-", given=table), "which input is read from -?", "without a name")
code, _, err = run(*predict, "x=-", given=bytes(10000), env={**os.environ, "DGC_DATA_MEMORY": "10"},
                   preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))))
check(code in (1, 3) and "TMPDIR names a folder with more room" in err, "no room", code, err)
with open("named.dsl", "w") as f:  # a model may not read standard input
    f.write(MODEL.replace("}\n", "", 1).rstrip("}\n") + '\n  data test {\n    x = "-"\n  }\n}\n')
check(run("predict", "named.dsl", "--checkpoint", "c", given="1,2\n")[0] == 1, "a model names it")
ours, theirs = pty.openpty()
terminal = subprocess.run([dgc, *predict, "x=-"], stdin=theirs, capture_output=True, text=True, timeout=60)
check(terminal.returncode == 1 and "it is a terminal" in terminal.stderr, "a terminal", terminal.stderr)
# Who waits for what does not come ends when asked to.
waits = subprocess.Popen([dgc, "train", "m.dsl", "--data", "x=-", "--data", "y=t.csv:c"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
check("reading standard input" in waits.stderr.readline(), "says what it waits for")
waits.stdin.write("1,2\n")
waits.stdin.flush()
waits.send_signal(signal.SIGTERM)
try:
    check(waits.wait(60) == -signal.SIGTERM, "dies of the signal", waits.returncode, waits.stderr.read())
except subprocess.TimeoutExpired:
    check(False, "waits on")
    waits.kill()

# --- larger than memory: 8 GB of zeros, of which the disk has none ---
if len(sys.argv) > 3:
    rows, columns, room = 1 << 20, 2048, 3 << 30
    with open("large.npy", "wb") as f:
        f.write(npy(rows, columns))
        f.truncate(128 + 4 * rows * columns)
    open("large.dsl", "w").write("model m() {\n  input x : f32[B, 2048]\n  var w : f32[2048, 1] = ones()\n"
                                 "  train mean(square(x @ w - 1)) with sgd(0.01)\n  predict z = x @ w\n}\n")
    done = subprocess.run([dgc, "train", "large.dsl", "--data", "x=large.npy", "--batch", "64", "--steps", "20", "--json"], capture_output=True,
                          text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)))
    check(done.returncode == 0 and json.loads(done.stdout)["training"]["step"] == 20, "8 GB in 3", done.stderr)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    check(peak < 600000, "at most 600 MB were resident", peak)
finish()
