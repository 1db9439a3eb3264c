# SPDX-License-Identifier: Apache-2.0
"""The bar of a training in a terminal: it fits on one row, whatever the width and however it changes; elsewhere there are lines."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from checks import check, dgc, finish, model, samples

SECONDS = 300  # of a machine that stands still


class Terminal:
    """A training whose standard error is a terminal: 4,000 steps an epoch, which take longer than from one bar to the next."""

    def __init__(self, columns, *more, term="xterm"):
        self.master, slave = pty.openpty()
        self.size(columns)
        self.read_all = b""
        self.process = os.fork()
        if not self.process:
            os.setsid()
            os.close(self.master)
            os.dup2(slave, 2)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(0, 1)
            os.environ["TERM"] = term
            os.environ.pop("COLUMNS", None)
            os.execv(dgc, [dgc, "train", model, "--set", "hidden=512", "--batch", "2", "--checkpoint", "c.safetensors",
                           "--overwrite", "--epochs", "1000", "--threads", "1", *more])
        os.close(slave)

    def size(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read(self):
        if not select.select([self.master], [], [], SECONDS)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.read_all += data
        return bool(data)

    def bars(self):
        return re.findall(rb"\r((?:\x1b\[\d*[AJ])*)([^\r\n\x1b]+)\x1b\[K", self.read_all)

    def wait_for(self, bars):
        """The bars of what comes now, whole ones."""
        self.read_all = b""
        while len(self.bars()) < bars and self.read():
            pass
        return [text.decode() for _, text in self.bars()]

    def end(self):
        os.kill(self.process, signal.SIGINT)
        while self.read():
            pass
        os.waitpid(self.process, 0)
        os.close(self.master)


for columns, has, lacks in ((120, ["#", "examples/s", "to go"], []), (80, ["examples/s", "to go", "loss"], []),
                            (60, ["loss", "to go"], []), (40, ["step"], ["examples/s"]), (16, ["epoch"], ["loss"])):
    t = Terminal(columns)
    bars = t.wait_for(3)
    check(len(bars) >= 3, "%d columns: no bars: %r" % (columns, t.read_all[-300:]))
    check(all(len(b) < columns for b in bars), "%d columns: a bar is too long: %r" % (columns, max(bars, key=len)))
    check(columns < 40 or re.search(r"step \d+/4000\b", bars[-1]), "%d columns: %r" % (columns, bars[-1]))
    for word in has:
        # An epoch's first bars may have nothing done.
        check(word in bars[-1] or word == "#" and "." in bars[-1], "%d columns: no %s: %r" % (columns, word, bars[-1]))
    for word in lacks:
        check(word not in bars[-1], "%d columns: %s: %r" % (columns, word, bars[-1]))
    if columns == 120:
        t.size(50)
        t.wait_for(2)  # what was on its way
        bars = t.wait_for(2)
        check(bars and all(len(b) < 50 for b in bars), "narrower: %r" % bars)
        check(b"\x1b[2A\x1b[J" in t.read_all or b"A\x1b[J" not in t.read_all, "narrower: rows that wrapped go: %r" % t.read_all[-300:])
        t.size(100)
        t.wait_for(2)
        bars = t.wait_for(2)
        check(bars and all(50 < len(b) < 100 for b in bars), "wider: %r" % bars)
    t.end()

# What there is to warn of is said while it trains, above the first bar and once; a process that is killed has said it.
data = os.path.join(samples, "data", "train-")
overlap = ["--rows", "0:256", "--eval-rows", "128:384", "--eval-data", "image=%simages.idx" % data,
           "--eval-data", "label=%slabels.idx" % data]
for term, first in (("xterm", b"\repoch 1/"), ("dumb", b"epoch 1/")):
    t = Terminal(80, *overlap, "--log-every", "1", term=term)
    while b"epoch 2/" not in t.read_all and t.read():
        pass
    os.kill(t.process, signal.SIGKILL)
    os.waitpid(t.process, 0)
    os.close(t.master)
    said = b"warning: rows 128:256, which are evaluated on, are trained on, too\r\nhelp: --rows 0:128 leaves them out\r\n"
    before = t.read_all.partition(first)[0]
    check(t.read_all.count(said) == 1 and said in before, "%s: a warning comes late: %r" % (term, t.read_all[:600]))
    check(b"\x1b" not in before, "%s: a bar before the warning: %r" % (term, before))

# With --json, too; the object at the end has it all the same, and the text does not come twice.
done = subprocess.run([dgc, "train", model, *overlap, "--steps", "2", "--json"], capture_output=True, text=True)
check(done.stderr.count("are trained on, too\n") == 1, "--json: %r" % done.stderr)
check(done.stderr.find("are trained on, too") < done.stderr.find("epoch 1"), "--json: the warning comes late: %r" % done.stderr)
diagnostics = json.loads(done.stdout).get("diagnostics", [])
check([d["message"] for d in diagnostics if "trained on, too" in d["message"]] and len(diagnostics) == 1, "--json: %r" % done.stdout)

# Where a training ends with a step, that is what the bar counts up to.
t = Terminal(80, "--steps", "100000")
bars = t.wait_for(3)
check(bars and all(re.search(r"step \d+/100000\b", b) for b in bars), "steps: %r" % bars)
t.end()

# No bar where there is no way to draw one: a line for each report.
t = Terminal(80, "--steps", "300", "--log-every", "100", term="dumb")
while t.read():
    pass
os.waitpid(t.process, 0)
text = t.read_all.decode()
check("\x1b" not in text, "dumb: %r" % text[-300:])
for step in (100, 200, 300):
    check(text.count("epoch 1/1000  step %d/300  loss" % step) == 1, "dumb: step %d: %r" % (step, text[-500:]))

# Where a line is wider than the terminal, the rest goes to further ones.
t = Terminal(40, "--steps", "200", "--log-every", "100", "--train-metrics")
while t.read():
    pass
os.waitpid(t.process, 0)
lines = re.sub("\r[^\n]*?\x1b\\[K", "", t.read_all.decode()).replace("\r", "").splitlines()
check(lines and all(len(line) <= 40 for line in lines), "40 columns: %r" % lines)
for step in (100, 200):
    text = " ".join(line.strip() for line in lines)
    check(re.search(r"epoch 1/1000 +step %d/200 +loss [0-9.]+ +accuracy [0-9.]+ +[0-9.]+ examples/s +[0-9.]+ s" % step, text),
          "40 columns: step %d: %r" % (step, text))

# What an error shows of its line fits, too; where it goes to no terminal it is always the same.
with open("long.dsl", "w") as file:
    file.write("model long {{\n  input x : f32[B]\n  predict y = {0} + unknown + {0}\n}}\n".format(" + ".join(["square(x)"] * 20)))


def shown(columns):
    """What `dgc check` says, on a terminal so wide; None: on none."""
    if columns is None:
        return subprocess.run([dgc, "check", "long.dsl"], capture_output=True, text=True, env={**os.environ, "COLUMNS": "60"}).stderr
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([dgc, "check", "long.dsl", "--color", "never"], stderr=slave, env={**os.environ, "TERM": "xterm"})
    os.close(slave)
    text = b""
    while select.select([master], [], [], SECONDS)[0]:
        try:
            text += os.read(master, 65536)
        except OSError:
            break
    process.wait()
    os.close(master)
    return text.decode().replace("\r\n", "\n")


for columns, least, most in ((None, 105, 112), (60, 55, 60), (80, 75, 80), (300, 200, 300)):
    lines = shown(columns).splitlines()
    row = next((i for i, line in enumerate(lines) if line.startswith("  3 | ")), None)
    check(row is not None and least <= len(lines[row]) <= most, "%s columns: %r" % (columns, lines))
    caret = lines[row + 1].index("^") if row is not None else 0
    check(row is not None and lines[row][caret:].startswith("unknown"), "%s columns: %r" % (columns, lines))
finish()
