# SPDX-License-Identifier: Apache-2.0
"""The attack as a whole: kinds and their shares, workers that may crash, what is printed."""
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import time
import traceback

# kind: its share, where it lives, what it is
KINDS = {
    "model": (24, "check_models", "check_model", "random models: machine code, interpreter, numpy, JAX, towers, strategies"),
    "xla": (4, "check_xla", "check_xla", "random models, exported to StableHLO: XLA against numpy, for one tower and for three"),
    "update": (4, "updates", "check_update", "optimizers, schedules and first values, by their formulas"),
    "placed": (24, "texts", "check_placed", "mutants of placed graphs: what the certificate accepts is computed"),
    "source": (24, "texts", "check_source", "mutants of sources"),
    "data": (10, "files", "check_data", "data files that lie: IDX, npy, npz, CSV, safetensors, gzip, images"),
    "checkpoint": (6, "files", "check_checkpoint", "checkpoints that lie"),
    "kill": (2, "kills", "check_kill", "SIGKILL, SIGTERM and SIGINT at any time, resumed to the bit"),
    "processes": (1, "processes", "check_processes", "tasks as processes that die, stop, are slow, cannot write; to the bit"),
    "inject": (6, "world", "check_inject", "calls that fail: memory, reads, writes, threads, by a preloaded library"),
    "limit": (3, "world", "check_limit", "resource limits: ulimit -v -f -n -s"),
}
IN_PROCESS = ("model", "xla", "update", "placed", "source")
CPU_SECONDS = 120  # one case, of the processor's time; a busy machine does not lengthen it
GROWTH = 4 << 30  # bytes that one case may need


def sanitized(library):
    """Python can't load a library that wants a sanitizer's runtime."""
    with open(library, "rb") as f:
        raw = f.read()
    return b"__asan_init" in raw or b"__tsan_init" in raw


def beside(dgc):
    """The library of a tool in a build folder."""
    return os.path.join(os.path.dirname(dgc), "libdgc.so")


class Tools:
    """What a case needs: the tool, the library, a folder; and where it notes what it is about to do."""

    def __init__(self, dgc, source, work, jax, log):
        self.dgc, self.source, self.work, self.log = dgc, source, work, log
        self.store, self.kept = {}, []
        self.library = beside(dgc)
        self.jax = None
        self.sanitized = sanitized(self.library)
        if jax:
            import jax as j
            j.config.update("jax_enable_x64", True)
            j.config.update("jax_platforms", "cpu")
            j.config.update("jax_disable_most_optimizations", True)  # each model is compiled to run once
            import jax.scipy.special  # noqa: F401
            self.jax = j

    @property
    def lib(self):
        import binding
        return self.cached("lib", lambda: binding.load(self.library))

    def cached(self, key, make):
        if key not in self.store:
            self.store[key] = make()
        return self.store[key]

    def say(self, text):
        """Read again if this process dies."""
        with open(self.log, "w", errors="backslashreplace") as f:
            f.write(text)

    def keep(self, paths):
        self.kept = paths

    def has(self, option):
        from process import run
        return option in self.cached("help", lambda: run([self.dgc, "train", "--help"]).out)


def one(tools, seed, kind, index):
    """(whether something was found, a word or its text)"""
    import importlib

    from process import Found
    module, function = KINDS[kind][1:3]
    tools.kept = []
    try:
        return None, getattr(importlib.import_module(module), function)(tools, seed, index)
    except Found as e:
        for path in tools.kept:
            shutil.copy(path, os.path.join(os.path.dirname(tools.log), f"{kind}-{index}-{os.path.basename(path)}"))
        return e.kind, str(e)
    except Exception:
        return "attack", traceback.format_exc()[-3000:]


def work(pipe, dgc, source, folder, jax, log, seed):
    """A process that runs cases until it is told no more, or dies of one."""
    import warnings
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.setdefault("XDG_CACHE_HOME", os.path.join(folder, "cache"))
    os.environ["NO_COLOR"] = "1"
    import numpy as np
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    import process
    tools = Tools(dgc, source, folder, jax, log)
    process.sanitized = tools.sanitized
    while True:
        case = pipe.recv()
        if case is None:
            return
        pipe.send(one(tools, seed, *case))


class Worker:
    def __init__(self, options, number):
        self.options, self.number, self.process, self.cases = options, number, None, 0
        self.log = os.path.join(options.keep, f"last.{number}")
        self.folder = os.path.join(options.work, str(number))
        os.makedirs(self.folder, exist_ok=True)

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        o = self.options
        self.process = context.Process(target=work, args=(other, o.dgc, o.source, self.folder, o.jax, self.log, o.seed))
        self.process.start()
        other.close()
        self.cases = 0

    def give(self, case):
        if self.process is None:
            self.start()
        self.case, self.cases = case, self.cases + 1
        self.began, self.cpu, self.size = time.monotonic(), self.used(), self.memory()
        self.pipe.send(case)

    def used(self):
        try:
            with open(f"/proc/{self.process.pid}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError):
            return 0.0

    def memory(self):
        try:
            with open(f"/proc/{self.process.pid}/statm") as f:
                return int(f.read().split()[1]) * resource.getpagesize()
        except (OSError, IndexError):
            return 0

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None

    def wait(self, seconds):
        """The answer, or None if there is none yet."""
        if self.pipe.poll(seconds):
            try:
                answer = self.pipe.recv()
            except EOFError:
                self.process.join()
                code, self.process = self.process.exitcode, None
                return "crash", f"the process ended with {code}; it was about to try:\n{self.last()}"
            if self.cases >= 400:
                self.stop()
            return answer
        why = None
        if self.used() - self.cpu > CPU_SECONDS:
            why = ("long", f"more than {CPU_SECONDS} s of a processor")
        elif self.memory() - self.size > GROWTH:
            why = ("memory", f"more than {GROWTH >> 30} GiB")
        elif time.monotonic() - self.began > 900 and self.case[0] in IN_PROCESS:
            why = ("hang", "no end after 900 s")
        if why:
            self.stop()
            return why[0], f"{why[1]}; it was about to try:\n{self.last()}"
        return None

    def last(self):
        try:
            with open(self.log) as f:
                return f.read()[:6000]
        except OSError:
            return ""


def schedule(kinds):
    """Kinds without end, each as often as its share says, evenly spread."""
    due = {k: 1.0 / KINDS[k][0] for k in kinds}
    counts = dict.fromkeys(kinds, 0)
    while True:
        k = min(due, key=lambda name: (due[name], name))
        due[k] += 1.0 / KINDS[k][0]
        yield k, counts[k]
        counts[k] += 1


class Report:
    def __init__(self, options):
        self.options, self.tries, self.found, self.notes, self.began = options, {}, [], {}, time.monotonic()

    def add(self, case, answer):
        kind, index = case
        self.tries[kind] = self.tries.get(kind, 0) + 1
        wrong, text = answer
        if wrong is None:
            for word in text.split(", "):
                self.notes[kind, word] = self.notes.get((kind, word), 0) + 1
            return
        self.found.append((kind, wrong))
        self.clear()
        print(f"FOUND {kind} {index}: {text}\nrepeat: tools/attack --only {self.options.seed}:{kind}:{index}\n", flush=True)
        with open(os.path.join(self.options.keep, f"{kind}-{index}.txt"), "w", errors="backslashreplace") as f:
            f.write(text)

    def clear(self):
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)

    def progress(self, last):
        n, seconds = sum(self.tries.values()), time.monotonic() - self.began
        line = f"{n} tried, {len(self.found)} found, {60 * n / max(seconds, 1):.0f} a minute, now {last[0]} {last[1]}"
        if sys.stderr.isatty():
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
        elif seconds > getattr(self, "told", 0) + 60:
            self.told = seconds
            print(line, file=sys.stderr, flush=True)

    def table(self):
        self.clear()
        print(f"{'kind':<12}{'tried':>7}{'found':>7}  of these")
        for kind in KINDS:
            if kind in self.tries:
                wrong = [w for k, w in self.found if k == kind]
                words = sorted((-n, w) for (k, w), n in self.notes.items() if k == kind)
                told = ", ".join(f"{-n} {w}" for n, w in words[:5]) if kind != "update" else ""
                told += "".join(f"; {wrong.count(w)} {w.upper()}" for w in sorted(set(wrong)))
                print(f"{kind:<12}{self.tries[kind]:>7}{len(wrong):>7}  {told}")
        print(f"{sum(self.tries.values()) - len(self.found)} passed, {len(self.found)} failed")


def campaign(options):
    """Runs it; gives the exit code."""
    report = Report(options)
    for number in (signal.SIGINT, signal.SIGTERM):  # in the background too
        signal.signal(number, signal.default_int_handler)
    cases = iter(options.only) if options.only else schedule(options.kinds)
    workers = [Worker(options, i) for i in range(options.jobs)]
    given, busy = 0, []
    try:
        while True:
            for w in workers:
                late = options.seconds and time.monotonic() - report.began > options.seconds
                if w not in busy and given < options.count and not late:
                    case = next(cases, None)
                    if case is None:
                        given = options.count
                        break
                    w.give(case)
                    busy.append(w)
                    given += 1
            if not busy:
                break
            for w in list(busy):
                answer = w.wait(0.02 if len(busy) > 1 else 0.2)
                if answer is not None:
                    report.add(w.case, answer)
                    busy.remove(w)
                    report.progress(w.case)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    finally:
        for w in workers:
            w.stop()
    report.table()
    return 1 if report.found else 0
