# SPDX-License-Identifier: Apache-2.0
"""What the measurements share: a run of `dgc bench`, a loop that takes the time of steps, a peer that is told from
outside when its turn is, and rounds in which all take turns."""
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEAST_STEPS = 5


def environment(threads):
    """Of a peer: so many threads, on so many cores (dgc inherits these), and none of its settings but those."""
    theirs = "OPENBLAS_", "MKL_", "OMP_", "DNNL_", "ONEDNN_", "TF_"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    count = str(threads)
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1" if threads == 1 else ""
    return {**kept, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "TF_NUM_INTRAOP_THREADS": count,
            "TF_NUM_INTEROP_THREADS": count, "NPROC": count, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu",
            "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


def pin(threads):
    """This process and those it starts, to the last so many of the cores that it may use."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-threads:])


def dgc(build, model, batch, steps, threads, settings=(), **more):
    """What `dgc bench --json` says of a model, a path from the root of the sources; without a batch, with the
    model's own."""
    command = [os.path.join(build, "dgc"), "bench", os.path.join(ROOT, model), "--steps", str(steps), "--devices", "cpu:0",
               "--threads", str(threads), "--json"]
    command += ["--batch", str(batch)] if batch else []
    for setting in settings:
        command += ["--set", setting]
    run = subprocess.run(command, capture_output=True, text=True, **more)
    if run.returncode:
        sys.exit(f"{' '.join(command)}\n{run.stderr}")
    return json.loads(run.stdout)


def steps_of(seconds, step_ms):
    return max(LEAST_STEPS, min(1000, int(1e3 * seconds / max(step_ms, 1e-3))))


def median_ms(step, steps):
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def serve(step, version):
    """A peer's side: warms up, says its version, and at each line, a number of seconds, takes the median step of about
    so long."""
    step_ms = median_ms(step, LEAST_STEPS)
    print(json.dumps(version), flush=True)
    for line in sys.stdin:
        step_ms = median_ms(step, steps_of(float(line), step_ms))
        print(json.dumps(step_ms), flush=True)


class Peer:
    """A process that waits for its turn. `version` is None where it could not start, and `wrong` says why."""

    def __init__(self, command, threads):
        self.process = subprocess.Popen(command, env=environment(threads), text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.version, self.wrong = self.answer(), None
        if self.version is None:
            said = self.process.communicate()[1].strip().splitlines()
            self.wrong = said[-1] if said else "it said nothing"

    def answer(self):
        for line in self.process.stdout:
            try:
                return json.loads(line)
            except ValueError:
                pass  # what libraries print

    def turn(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        if self.version is not None:
            self.process.communicate()


def in_turn(cases, rounds):
    """`cases` names what gives milliseconds; in each round each has its turn, in an order that moves on by one. By
    name, the median of the rounds; who fails once is left out."""
    names, times = list(cases), {name: [] for name in cases}
    for r in range(rounds):
        for i in range(len(names)):
            name = names[(r + i) % len(names)]
            times[name].append(cases[name]())
    return {name: statistics.median(t) for name, t in times.items() if None not in t}
