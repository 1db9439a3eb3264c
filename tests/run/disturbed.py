#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The world fails while dgc runs: files shrink and change, compressed data lies, processes are killed, and, by the library of
tests/support/inject.c, calls of the system fail. Never a crash or a hang; exit 0 only with results that are whole, and a
file is the one from before or the new one. Called with the tool, the folder of the samples and that library."""

import fcntl
import gzip
import os
import subprocess
import time

from checks import check, dgc, finish, model, others

library, = others


def run(*words, inject=None, count=None, **variables):
    environment = dict(os.environ, **variables)
    if inject or count:
        environment["LD_PRELOAD"] = library
    if inject:
        environment["DGC_INJECT"] = inject
    if count:
        environment["DGC_INJECT_COUNT"] = count
    try:  # a hang has no end
        return subprocess.run([dgc, *words], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                              env=environment, timeout=600)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, "a hang", "", "")


def npy(path, shape, data):
    header = ("{'descr': '|u1', 'fortran_order': False, 'shape': %s, }" % (shape,)).ljust(117) + "\n"
    data = b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + data
    with gzip.open(path, "wb", 1) if path.endswith(".gz") else open(path, "wb") as f:
        f.write(data)


def pixels(rows):
    return bytes(i * 7 % 251 for i in range(rows * 784))


def read(path):
    return open(path, "rb").read() if os.path.exists(path) else None


# --- files that change while they are read ---

ROWS = 64


def write_data():
    npy("x.npy", "(%d, 28, 28)" % ROWS, pixels(ROWS))
    npy("y.npy", "(%d,)" % ROWS, bytes(i % 10 for i in range(ROWS)))


def disturb(what, memory, change):
    """Trains without end, with `change` after the second epoch."""
    write_data()
    words = ["train", model, "--data", "image=x.npy", "--data", "label=y.npy", "--eval-rows", "0:8", "--batch", "16",
             "--checkpoint", what + ".safetensors", "--epochs", "100000000"]
    with open("err", "wb") as err:
        p = subprocess.Popen([dgc, *words], stderr=err, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                             env=dict(os.environ, DGC_DATA_MEMORY=memory))
    while b"epoch 2/" not in read("err") and p.poll() is None:
        time.sleep(0.02)
    change()
    return p


def shorten(path, bytes_left):
    return lambda: os.truncate(path, bytes_left)


def overwrite():
    with open("y.npy", "r+b") as f:
        f.seek(128)
        f.write(bytes([200]) * ROWS)


for what, change, says in (("shorter", shorten("x.npy", 128 + 784), "cannot read x.npy: it has become shorter while it was read"),
                           ("empty", shorten("y.npy", 0), "cannot read y.npy: it has become shorter while it was read"),
                           ("changed", overwrite, "y.npy has changed while it was read")):
    p = disturb(what, "0", change)
    check(p.wait() == 1, "%s: ended with %s" % (what, p.returncode))
    err = read("err").decode()
    check(says in err, "%s: %s" % (what, err[-300:]))
    check("saved: --resume %s.safetensors goes on from there" % what in err, "%s: %s" % (what, err[-300:]))
    write_data()
    check(run("inspect", what + ".safetensors").returncode == 0, what + ": a whole checkpoint")
# What is in memory stays.
p = disturb("kept", "1000000", shorten("x.npy", 0))
epoch = read("err").count(b"epoch ")
while read("err").count(b"epoch ") < epoch + 3 and p.poll() is None:
    time.sleep(0.02)
p.terminate()
check(p.wait() == -15, "kept: ended with %s: %s" % (p.returncode, read("err")[-200:]))

# The same bits, wherever the data are.
write_data()
for memory in ("0", "30000", "1000000"):
    got = run("train", model, "--data", "image=x.npy", "--data", "label=y.npy", "--eval-rows", "0:8", "--batch", "16", "--quiet",
              "--epochs", "3", "--checkpoint", "m%s.safetensors" % memory, DGC_DATA_MEMORY=memory)
    check(got.returncode == 0 and read("m%s.safetensors" % memory) == read("m0.safetensors"), "other bits with " + memory)

# --- compressed data that is not what its header says ---

block = gzip.compress(bytes(1 << 24), 9)
npy("good.npy.gz", "(64, 28, 28)", pixels(64))
npy("bomb.npy.gz", "(64, 28, 28)", pixels(64))
open("bomb.npy.gz", "ab").write(block * 220)  # 3.5 GB
open("bomb.gz", "wb").write(block * 220)
npy("lies.npy.gz", "(1000000000, 28, 28)", pixels(1))
open("garbage.npy.gz", "wb").write(read("good.npy.gz") + b"garbage")
npy("joined.npy.gz", "(64, 28, 28)", pixels(20))
open("joined.npy.gz", "ab").write(gzip.compress(pixels(64)[20 * 784:]))
open("cut.npy.gz", "wb").write(read("good.npy.gz")[:-20])
for name, says in (("good.npy.gz", None), ("joined.npy.gz", None),
                   ("bomb.npy.gz", "it decompresses to more than its header says"),
                   ("bomb.gz", "its first bytes are not those of IDX"),
                   ("lies.npy.gz", "its header says"),
                   ("garbage.npy.gz", "cannot decompress garbage.npy.gz"),
                   ("cut.npy.gz", "the compressed data ends too early")):
    got = subprocess.run(["sh", "-c", 'ulimit -v 200000; exec "$@"', "sh", dgc, "inspect", name], capture_output=True, text=True)
    check(got.returncode == (1 if says else 0), "%s: %s: %s" % (name, got.returncode, got.stderr))
    check(not says or says in got.stderr, "%s: %s" % (name, got.stderr))
    check(got.stderr.count("\n") == (1 if says else 0), "%s: %s" % (name, got.stderr))

# --- what a killed process leaves ---

open("tiny.dsl", "w").write("""use nn
model tiny() {
  input x : f32[B, 4]
  input y : f32[B, 1]
  p = nn.dense(nn.dense(x, units = 8, activation = tanh), units = 1)
  train mean(square(p - y)) with adam(rate = 0.01)
  metric error = mean(abs(p - y))
  predict guess = p
}
""")
for name, columns in (("x.csv", 4), ("y.csv", 1)):
    with open(name, "w") as f:
        for row in range(24):
            f.write(",".join(str((row * 5 + c * 3) % 11 / 8) for c in range(columns)) + "\n")
DATA = ["--data", "x=x.csv", "--data", "y=y.csv", "--quiet"]
TRAIN = ["train", "tiny.dsl", *DATA, "--batch", "8", "--epochs", "2", "--checkpoint", "c.safetensors", "--overwrite"]


def temporary():
    return sorted(f for f in os.listdir(".") if ".tmp-" in f)


check(run(*TRAIN).returncode == 0, "train")
whole = read("c.safetensors")
check(run(*TRAIN, inject="rename:1:kill").returncode == -9, "killed before it was renamed")
left = temporary()
check(len(left) == 1 and read("c.safetensors") == whole, "one file is left: %s" % left)
name = left[0]
head, tail = name.split(".tmp-")
other = head + ".tmp-" + ("%08x" % (int(tail[:8], 16) ^ 1)) + tail[8:]
old = head + ".tmp-" + ("%08x" % (int(tail[:8], 16) ^ 2)) + tail[8:]
for path in (other, old, head + ".tmp-notes", "d" + name):
    open(path, "w").close()
os.utime(old, (time.time() - 200000,) * 2)
os.symlink("x.csv", head + ".tmp-00000000-1-1")
with open(name) as f:
    fcntl.flock(f, fcntl.LOCK_EX)
    check(run(*TRAIN).returncode == 0, "train beside one that writes")
    kept = {name, other, head + ".tmp-notes", "d" + name, head + ".tmp-00000000-1-1"}
    check(set(temporary()) == kept, "beside one that writes: %s, not %s" % (temporary(), sorted(kept)))
check(run(*TRAIN).returncode == 0, "train behind one that was killed")
check(set(temporary()) == kept - {name}, "behind one that was killed: %s" % temporary())
for path in temporary():
    os.unlink(path)

# --- calls that fail ---

EVAL = ["eval", "tiny.dsl", *DATA, "--checkpoint", "c.safetensors"]
PREDICT = ["predict", "tiny.dsl", *DATA, "--checkpoint", "c.safetensors", "--output", "guess=p.npy"]
HOW = {"open": "EIO EMFILE EACCES ENOMEM", "read": "EIO EINTR short", "write": "EIO ENOSPC EINTR short", "fsync": "EIO ENOSPC",
       "close": "EIO", "rename": "EIO EACCES", "link": "EIO EMFILE", "unlink": "EACCES", "stat": "EIO EACCES", "flock": "EIO",
       "mmap": "ENOMEM", "thread": "EAGAIN", "malloc": "ENOMEM", "foreign": "ENOMEM"}
MOST = int(os.environ.get("DISTURB", "6"))  # times that a call fails in one way; 0: each time

results = {}
for words in (TRAIN, EVAL, PREDICT):
    for _ in range(2):  # the second time, kernels are in the cache
        got = run(*words, count="count")
    counts = {line.split()[0]: int(line.split()[1]) for line in open("count")}
    results[words[0]] = (got.returncode, got.stdout, counts)
    check(got.returncode == 0, words[0])
good = {f: read(f) for f in ("c.safetensors", "p.npy")}
one = [w if w != "2" else "1" for w in TRAIN]
check(run(*one).returncode == 0, "one epoch")
first = read("c.safetensors")  # what a training has saved that fails after one of two
open("c.safetensors", "wb").write(whole)
check(good["c.safetensors"] == whole, "the library changes the bits")
listing = set(os.listdir("."))


def times(call, count, words):
    """Some, from the first to the last, and of a training each time that dgc asks for memory; those of other libraries not
    before dgc runs: OpenMP's ends the process then."""
    first = 100 if call == "foreign" else 1
    if MOST == 0 or count - first < MOST or (call == "malloc" and words is TRAIN):
        return range(first, count + 1)
    return sorted({first + i * (count - first) // (MOST - 1) for i in range(MOST)})


ran = 0
for words in (TRAIN, EVAL, PREDICT):
    code, out, counts = results[words[0]]
    for call, count in counts.items():
        for how in HOW.get(call, "").split():
            for k in times(call, count, words):
                got = run(*words, inject="%s:%d:%s" % (call, k, how))
                what = "%s with %s:%d:%s of %d" % (words[0], call, k, how, count)
                ran += 1
                check(got.returncode in (0, 1, 3), "%s ended with %s: %s" % (what, got.returncode, got.stderr[-300:]))
                if got.returncode == 0:
                    check(got.stdout == out, what + " prints " + got.stdout)
                else:
                    check("error: " in got.stderr and got.stderr.count("error: ") == 1, what + " says: " + got.stderr)
                    check(how != "EINTR" and how != "short", what + ", which is no failure: " + got.stderr)
                for f, data in good.items():
                    fits = read(f) == data or (got.returncode and words is TRAIN and read(f) == first)
                    check(fits, "%s, and exit code %s: %s is another" % (what, got.returncode, f))
                    if read(f) != data:
                        open(f, "wb").write(data)
                extra = set(os.listdir(".")) - listing
                check(not extra or call == "unlink", "%s leaves %s" % (what, sorted(extra)))
                for f in extra:
                    os.unlink(f)

# No memory for zlib is a failure of the system, not of the data.
npy("packed.npy.gz", "(400, 28, 28)", pixels(400))
run("inspect", "packed.npy.gz", count="count")
counts = {line.split()[0]: int(line.split()[1]) for line in open("count")}
refused = 0
for k in range(1, counts["foreign"] + 1):
    got = run("inspect", "packed.npy.gz", inject="foreign:%d:ENOMEM" % k)
    if "cannot decompress" in got.stderr:
        refused += 1
        check(got.returncode == 3 and "memory" in got.stderr, "inspect with foreign:%d ended with %s: %s" % (
            k, got.returncode, got.stderr[-300:]))
check(refused > 0, "zlib was never refused memory in %d calls" % counts["foreign"])

finish("%d runs with failing calls" % ran)
