# SPDX-License-Identifier: Apache-2.0
"""The limit of a test, which tools/alone.py holds: limits.py ALONE. It ends what sleeps and what computes without an
end, and leaves alone what others keep from the processors for longer than that."""
import os
import subprocess
import sys

SPIN = "import time\nwhile time.process_time() < {}: pass"


def run(seconds, *command):
    """The exit code, and what it said; where it failed itself, why."""
    r = subprocess.run([sys.executable, sys.argv[1], str(seconds), *command], capture_output=True, text=True)
    return r.returncode, r.stdout + r.stderr


def check(what, wanted, said, got):
    code, text = got
    good = code == wanted and said in text
    print(f"{'ok' if good else 'FAILED'}: {what}" + ("" if good else f": exit code {code}, not {wanted}\n{text}"))
    return good


def busy():
    """Two that keep one core busy, as often as is needed."""
    return [subprocess.Popen([sys.executable, "-c", SPIN.format(60)]) for _ in range(2)]


def main():
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    results = [check("what sleeps", 124, "no end after 1 s", run(1, "sleep", "600")),
               check("what computes for ever", 124, "no end after 1 s", run(1, sys.executable, "-c", SPIN.format(600)))]
    others = busy()
    try:
        results.append(check("what waits for a processor", 0, "",
                             run(1.5, "nice", "-n", "5", sys.executable, "-c", SPIN.format(0.6))))
    finally:
        for other in others:
            other.kill()
            other.wait()
    return not all(results)


sys.exit(main())
