# SPDX-License-Identifier: Apache-2.0
"""dgc as a process: run it, and judge how it ended."""
import os
import resource
import signal
import subprocess

CODES = (0, 1, 2, 3, 4, 130, 143)
CPU_SECONDS = 60  # of the processor's time, which a busy machine does not lengthen
MEMORY = 6 << 30
sanitized = False  # then memory has no limit: shadows are large


class Found(Exception):
    """Something wrong: `kind` is one word."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Ended:
    def __init__(self, command, code, out, err):
        self.command, self.code, self.out, self.err = command, code, out, err


def limits(**wanted):
    def before():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
        for name, value in {**({} if sanitized else {"AS": MEMORY}), **wanted}.items():
            resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))
    return before


def run(command, cwd=None, env=None, timeout=600, **wanted):
    """Runs to the end; a signal is a negative code."""
    p = subprocess.Popen(command, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limits(**wanted))
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        p.kill()
        p.communicate()
        raise Found("hang", f"no end after {timeout} s: {' '.join(command)}") from None
    return Ended(command, p.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def judge(e, codes=CODES, what=""):
    """Ends with a code that the manual knows; what is not 0 says why, in few lines."""
    line = " ".join(e.command)
    if e.code < 0:
        name = signal.Signals(-e.code).name
        kind = "long" if -e.code in (signal.SIGXCPU,) else "crash"
        raise Found(kind, f"{name}{what}: {line}\n{e.err[-600:]}")
    if "Sanitizer" in e.err or "runtime error:" in e.err:
        raise Found("sanitizer", f"{line}\n{e.err[-2000:]}")
    if e.code not in codes:
        raise Found("code", f"exit code {e.code}{what}: {line}\n{e.err[-600:]}")
    if e.code not in (0, 4) and not e.err.strip():
        raise Found("silent", f"exit code {e.code} and no word{what}: {line}")
    if len(e.err) > 200000:
        raise Found("talk", f"{len(e.err)} bytes of messages{what}: {line}")
    return e
