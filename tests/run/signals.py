#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signals: a training ends behind its step, saved, and goes on from there to the bits of one that was left alone. Anything
else ends at once, and no file is half-written. Called with the tool, the folder of the samples and the source tree."""

import os
import signal
import subprocess
import time

from checks import check, dgc, finish, model

small = ["--rows", "0:256", "--eval-rows", "0:64"]


def ignore_nothing():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)


def start(*words, setup=ignore_nothing, **more):
    return subprocess.Popen([dgc, *words], stderr=open("err", "wb"), stdout=open("out", "wb"), stdin=subprocess.DEVNULL,
                            preexec_fn=setup, **more)


def run(*words):
    return subprocess.run([dgc, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def err():
    return open("err", errors="replace").read()


def wait_for(process, text):
    """Until standard error shows the text."""
    while text not in err():
        if process.poll() is not None:
            check(False, "ended with %s before it said '%s': %s" % (process.returncode, text, err()))
            return
        time.sleep(0.02)


def texts(path):
    lines = run("inspect", path).stdout.splitlines()
    return dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))


def end(process, *numbers):
    """The signal again and again, until the process ends: how long one takes to arrive does not matter."""
    while process.poll() is None:
        for number in numbers:
            process.send_signal(number)
        time.sleep(0.05)
    return process.returncode


def train_on(name, *more):
    return ["train", model, *small, "--checkpoint", name, *more]


# --- a training ends behind its step, and goes on to the same bits ---

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU, signal.SIGUSR1):
    name = "%s.safetensors" % number.name
    two = ["--devices", "cpu:0-1", "--threads", "2"] if number == signal.SIGTERM else []
    p = start(*train_on(name, "--epochs", "100000000", *two))
    wait_for(p, "epoch 2/")
    p.send_signal(number)
    p.send_signal(number)  # timeout(1) sends it twice: one request
    check(p.wait() == -number, "%s: ended with %s: %s" % (number.name, p.returncode, err()[-300:]))
    check("dgc: %s: training ends after this step" % number.name in err(), number.name + " says what happens")
    saved = texts(name)
    check("saved: --resume %s goes on from there" % name in err(), number.name + " says how to go on: " + err()[-300:])
    check("stopped after step %s" % saved.get("step") in err(), number.name + " says the step: " + err()[-300:])
    check(open("out").read() == "", number.name + ": nothing is evaluated")
    epochs = str(int(saved["epoch"]) + 2)
    again = run(*train_on(name, "--epochs", epochs, "--resume", name))
    whole = run(*train_on("whole.safetensors", "--epochs", epochs, *two))
    check(again.returncode == 0 and whole.returncode == 0, number.name + " goes on: " + again.stderr[-300:])
    check(open(name, "rb").read() == open("whole.safetensors", "rb").read(), number.name + ": other bits")
    check(again.stdout == whole.stdout, number.name + ": other metrics")
    os.unlink("whole.safetensors")

# What the shell shows.
shell = subprocess.run(
    ["sh", "-c", '"$@" 2>err & p=$!; until grep -q "epoch 2/" err; do sleep 0.05; done; kill -TERM $p; wait $p; echo $?', "sh",
     dgc, *train_on("shell.safetensors", "--epochs", "100000000")], capture_output=True, text=True)
check(shell.stdout.strip() == "143", "the shell shows " + shell.stdout)

# Without a checkpoint there is nothing to save to.
p = start("train", model, *small, "--epochs", "100000000")
wait_for(p, "epoch 2/")
check(end(p, signal.SIGINT) == -signal.SIGINT, "without a checkpoint")
check("nothing was saved, as there is no --checkpoint FILE" in err() or "ended at once" in err(), err()[-300:])

# What nohup ignores stays ignored, and who reads the progress may go.
p = start(*train_on("ignored.safetensors", "--epochs", "40"), setup=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
p.send_signal(signal.SIGHUP)
check(p.wait() == 0, "nohup: %s" % p.returncode)
read, write = os.pipe()
p = subprocess.Popen([dgc, *train_on("pipe.safetensors", "--epochs", "40")], stderr=write, stdout=subprocess.PIPE)
os.close(write)
os.close(read)
check(p.communicate() is not None and p.returncode == 0, "a reader that has gone: %s" % p.returncode)
check(open("pipe.safetensors", "rb").read() == open("ignored.safetensors", "rb").read(), "a reader that has gone: other bits")

# --- what has no steps to lose ends at once ---

p = subprocess.Popen([dgc, "check", "-"], stdin=subprocess.PIPE, stderr=open("err", "wb"), preexec_fn=ignore_nothing)
check(end(p, signal.SIGINT) == -signal.SIGINT, "reading a model: %s" % p.returncode)

# --- however it ends, a file is whole or was never there ---

before = set(os.listdir("."))
for i in range(12):
    p = start(*train_on("killed.safetensors", "--epochs", "100000000", "--checkpoint-every", "1"))
    while not os.path.exists("killed.safetensors") and p.poll() is None:  # it is written beside the steps
        time.sleep(0.02)
    time.sleep(0.003 * i)
    end(p, signal.SIGTERM, signal.SIGINT)
    check(run("eval", model, *small, "--checkpoint", "killed.safetensors").returncode == 0, "a whole checkpoint")
    os.unlink("killed.safetensors")
left = set(os.listdir(".")) - before - {"err", "out"}
check(not left, "left behind: %s" % sorted(left))

finish()
