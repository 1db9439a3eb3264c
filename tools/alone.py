#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one test: alone.py SECONDS COMMAND ARGUMENTS...

Whatever the test has started ends with it. What is still running ten seconds later is named and killed, and the test has
failed: it would take the processors from the next ones. At its limit it says what runs, kills all of it, and exits with 124.
What the machine does to a test takes nothing from the limit: while it stands still, as virtual ones do, and while the test
waits for a processor that others have. The last line of stderr says which processor time the test and all that it started
took; tools/summary.py reads it.
"""
import ctypes
import os
import resource
import signal
import sys
import time

GRACE, MOMENT = 10, 2  # seconds: to end; no single wait counts for more
PR_SET_CHILD_SUBREAPER = 36
HEARD = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def parents():
    """Of each process that is no zombie: its parent."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                    state, parent = f.read().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state not in "ZX":
                found[int(name)] = int(parent)
    return found


def descendants():
    of, found = parents(), [os.getpid()]
    for process in found:
        found += [p for p, parent in of.items() if parent == process]
    return found[1:]


def demand():
    """Whether a thread of them has a processor or waits for one, and the processor time that they have had, in seconds."""
    wants, ticks = False, 0
    for process in descendants():
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{thread}/stat", encoding="utf-8", errors="replace") as f:
                    wants |= f.read().rpartition(")")[2].split()[0] == "R"
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as f:
                ticks += sum(map(int, f.read().rpartition(")")[2].split()[11:15]))
        except OSError:
            continue
    return wants, ticks / os.sysconf("SC_CLK_TCK")


def describe(process):
    """Its words, its state, and where its threads are in the kernel."""
    try:
        with open(f"/proc/{process}/cmdline", encoding="utf-8", errors="replace") as f:
            words = f.read().replace("\0", " ").strip()
        threads = []
        for thread in sorted(os.listdir(f"/proc/{process}/task")):
            with open(f"/proc/{process}/task/{thread}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
            with open(f"/proc/{process}/task/{thread}/wchan", encoding="utf-8", errors="replace") as f:
                where = f.read()
            ticks = int(fields[11]) + int(fields[12])
            threads.append(f"{fields[0]} {where if where != '0' else '-'} {ticks / os.sysconf('SC_CLK_TCK'):.2f} s")
    except OSError:
        return f"  {process}: it has ended"
    return f"  {process}: {words[:1000]}\n    threads: {', '.join(threads)}"


def reap(child, code):
    """Takes what has ended; returns the test's exit code, None before its end."""
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if process == 0:
            return code
        if process == child:
            code = os.waitstatus_to_exitcode(status)
            code = 128 - code if code < 0 else code


def wait(child, code, seconds, over):
    """Until over(code), a signal, or that many seconds have run; returns the code and the signal."""
    spent, last, used = 0, time.monotonic(), 0
    while not over(code) and spent < seconds:
        heard = signal.sigtimedwait(HEARD, 0.2 if code is not None else min(MOMENT, seconds))
        now = time.monotonic()
        passed, last = min(now - last, MOMENT), now
        if code is None:
            before, (wants, used) = used, demand()
            passed = min(passed, max(used - before, 0)) if wants else passed
        spent += passed
        code = reap(child, code)
        if heard and heard.si_signo != signal.SIGCHLD:
            return code, heard.si_signo
    return code, None


def kill(child, code):
    while descendants():
        for process in descendants():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        code, _ = wait(child, code, 1, lambda _: not descendants())
    return code


def run():
    limit, command = float(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    child = os.posix_spawnp(command[0], command, os.environ, setsigmask=[])
    code, told = wait(child, None, limit, lambda code: code is not None)
    if code is None:
        print(f"FAILED: {'ended by a signal' if told else f'no end after {limit:.0f} s'}; what ran:", flush=True)
        print("\n".join(map(describe, descendants())), flush=True)
        kill(child, None)
        return 128 + told if told else 124
    code, _ = wait(child, code, GRACE, lambda _: not descendants())
    if left := descendants():
        print("FAILED: the test has ended, and left behind:")
        print("\n".join(map(describe, left)), flush=True)
        kill(child, code)
        return code or 1
    return code


def main():
    code = run()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"processor seconds: {used.ru_utime + used.ru_stime:.2f}", file=sys.stderr, flush=True)
    return code


sys.exit(main())
