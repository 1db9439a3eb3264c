#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps on CPUs: dgc, PyTorch (as it is, and compiled), JAX and TensorFlow (graphs, XLA, and
MirroredStrategy on two logical CPUs), in turn in one run: peers.py BUILD [--only MODEL ...] [--who NAME ...]
[--precision f32|bf16] [--threads N] [--rounds N] [--seconds S] [--python PYTHON] [--also BUILD ...]

The models are those of bench/cpu/cases.py, as good users of each library write them. A step takes a batch from the
host's memory, trains, and reads the loss. Each peer is a process that compiles, warms up and waits for its turns; a
turn is as many steps as take about --seconds, a figure the median of the rounds' medians. All are pinned to as many
cores as there are threads. A ratio is dgc's time over that of the best peer; the floor is the time that the step's
floating point operations take at the peak of f32 that `dgc bench` measures after each of its turns: bfloat16 has
none, its units being another matter. The roof is what all parts of a step take, one by one, at the peak of their type
or at the memory's speed (`share of roof` of `dgc bench`).

Without --python a virtual environment with bench/cpu/requirements.txt is made in ~/.cache/dgc-peers, once (PyTorch's
packages are several GB). --also names other builds of dgc, of older commits say. Who cannot do a row is named after
it, with the reason."""
import argparse
import os
import statistics
import subprocess
import sys

from rounds import LEAST_STEPS, ROOT, Peer, dgc, in_turn, pin, steps_of

HERE = os.path.join(ROOT, "bench", "cpu")
sys.path.append(HERE)
from cases import CASES

PEERS = {"torch": ("peer_torch.py", "eager"), "torch compiled": ("peer_torch.py", "compiled"), "jax": ("peer_jax.py", "jit"),
         "tf": ("peer_tensorflow.py", "graph"), "tf xla": ("peer_tensorflow.py", "xla"),
         "tf mirrored": ("peer_tensorflow.py", "mirrored")}


def environment():
    """The Python that has the peers."""
    home, wanted = os.path.expanduser("~/.cache/dgc-peers"), os.path.join(HERE, "requirements.txt")
    python, complete = os.path.join(home, "bin", "python"), os.path.join(home, "complete")
    if not os.path.exists(complete):
        print(f"installing the peers in {home}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--only-binary", ":all:", "-r", wanted], check=True)
        open(complete, "w").close()
    return python


class Row:
    def __init__(self, o, case, precision, threads):
        self.o, self.case, self.precision, self.threads, self.said = o, case, precision, threads, []
        self.settings = case.settings + ((f"precision={precision}",) if case.bf16 else ())

    def bench(self, build, steps):
        return dgc(build, self.case.source, self.case.batch, steps, self.threads, self.settings)

    def dgc_turn(self, build, step_ms):
        def turn():
            said = self.bench(build, steps_of(self.o.seconds, step_ms))
            if build == self.o.build:
                self.said.append(said)
            return said["step_ms"]
        return turn

    def run(self):
        peers = {}
        for name, (script, how) in PEERS.items():
            if name in self.o.who and (how != "mirrored" or self.threads > 1):
                command = [self.o.python, os.path.join(HERE, script), self.case.name, how, self.precision, str(self.threads)]
                peers[name] = Peer(command, self.threads)
        turns = {name: lambda p=p: p.turn(self.o.seconds) for name, p in peers.items() if p.version}
        for build in [self.o.build] + self.o.also:
            name = "dgc" if build == self.o.build else build
            turns[name] = self.dgc_turn(build, self.bench(build, LEAST_STEPS)["step_ms"])
        times = in_turn(turns, self.o.rounds)
        for peer in peers.values():
            peer.close()
        return times, {name: p.wrong for name, p in peers.items() if p.wrong}

    def roof_ms(self):
        return statistics.median(s["roof_ms"] for s in self.said)

    def floor_ms(self):
        """None of bfloat16."""
        peak = statistics.median(s["peak_gflops"] for s in self.said)
        return 1e3 * self.said[0]["gflop"] / peak if self.precision == "f32" else None


def show(row, o):
    times, wrong = row.run()
    ours, theirs, floor = times["dgc"], [times[n] for n in PEERS if n in times], row.floor_ms()
    cells = [row.case.name, row.precision, str(row.threads)]
    cells += [f"{times[n]:.3f}" if n in times else "–" for n in ["dgc"] + o.also + o.who]
    cells += [f"{ours / min(theirs):.2f}" if theirs else "–", f"{floor / ours:.0%}" if floor else "–",
              f"{row.roof_ms() / ours:.0%}"]
    print("| " + " | ".join(cells) + " |", flush=True)
    for name, why in wrong.items():
        print(f"{row.case.name}: {name}: {why}", file=sys.stderr)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", metavar="BUILD")
    p.add_argument("--also", action="append", default=[], metavar="BUILD")
    p.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="MODEL")
    p.add_argument("--who", nargs="*", choices=PEERS, default=list(PEERS), metavar="NAME")
    p.add_argument("--precision", nargs="+", choices=("f32", "bf16"), default=["f32", "bf16"])
    p.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--python")
    o = p.parse_args()
    o.python = o.python or (environment() if o.who else sys.executable)
    names = ["model", "precision", "threads", "dgc"] + o.also + o.who + ["ratio", "of floor", "of roof"]
    print("| " + " | ".join(names) + " |\n|---|---|" + "---:|" * (len(names) - 2), flush=True)
    for threads in o.threads:
        cores = os.sched_getaffinity(0)
        pin(threads)
        for case in map(CASES.get, o.only):
            for precision in o.precision:
                if precision == "f32" or case.bf16:
                    show(Row(o, case, precision, threads), o)
        os.sched_setaffinity(0, cores)


if __name__ == "__main__":
    main()
