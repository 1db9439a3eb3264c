# SPDX-License-Identifier: Apache-2.0
"""Tasks as processes, and one of them dies, stops, is slow, is another program, or cannot write: nobody waits for longer
than --timeout, no checkpoint is lost or half there, and what goes on from it ends with the bits of a run that nothing
happened to. Faults come at a message of MPI, a wait or another call, by number (tests/support/inject.c), not at a time; half of
the runs send all by MPI (`apart`), the others read each other's memory."""
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from kills import prepared
from process import Found, limits, run

TOWERS, STEPS = 4, 120
# Where a task stops or goes, others are to give it up soon. Elsewhere a busy machine may take its time.
SOON, NEVER = 2, 200
# A run takes a second, and some more where a task is slow or stuck; who is still there then hangs.
PATIENCE = 600
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_btl": "self,vader", "OMPI_MCA_plm_rsh_agent": "/bin/false"}


# Half of the cases train the model that kills.py makes, the others samples.
OWN = ["long.dsl", "--data", "x=x.npy", "--data", "y=y.npy", "--batch", "10"]
SAMPLES = {"digits": ["--rows", "0:512", "--eval-rows", "0:64", "--batch", "64"], "words": ["--batch", "32"],
           "lenet": ["--rows", "0:64", "--eval-rows", "0:64", "--batch", "16"]}


def trains(dgc, model):
    """What is behind "train" for a model."""
    if model not in SAMPLES:
        return OWN
    return [os.path.join(os.path.dirname(dgc), "samples", model + ".dsl"), *SAMPLES[model]]


def command(dgc, path, tasks, *more, timeout=NEVER):
    spread = []
    start = ["env", "DGC_SHARED=off", dgc] if tasks.get("apart") else [dgc]
    if "ps" in tasks:
        spread = ["--cluster", f"worker={tasks['worker']};ps={tasks['ps']}", "--strategy", tasks["strategy"]]
    spread += ["--staleness", "free"] if tasks.get("free") else []
    return [*start, "train", *tasks["model"], "--quiet", "--towers", str(TOWERS), "--steps", str(STEPS), "--checkpoint", path,
            "--checkpoint-every", "3", "--timeout", str(timeout), *spread, *more]


def whole(tools, folder, model):
    """The checkpoint of one process that ends by itself."""
    def make():
        path = os.path.join(folder, f"whole4.{model}.safetensors")
        if os.path.exists(path):
            os.remove(path)
        e = run(command(tools.dgc, path, {"model": trains(tools.dgc, model)}), cwd=folder)
        if e.code:
            raise RuntimeError(f"{e.command}: {e.err}")
        with open(path, "rb") as f:
            return f.read()
    return tools.cached(f"whole4.{model}", make)


def launchers(dgc):
    """The ways to start processes here: Open MPI's, and MPICH's of the Python that runs this."""
    beside = os.path.dirname(dgc)
    found = []
    mpirun = shutil.which("mpirun")
    if mpirun and os.path.exists(os.path.join(beside, "dgc-mpi.so")):
        found.append(mpirun)
    mpich = os.path.join(os.path.dirname(sys.executable), "mpiexec.hydra")
    if os.path.exists(mpich) and os.path.exists(os.path.join(beside, "dgc-mpi-abi.so")):
        found.append(mpich)
    return found


def why_none(dgc):
    """Why there is nothing to attack; None: there is."""
    if not os.path.exists(os.path.join(os.path.dirname(dgc), "tests", "run", "inject.so")):
        return "tests/run/inject.so is not built"
    if not launchers(dgc):
        return "MPI is not installed, or was not when dgc was built"
    return None


def other_build(tools, folder):
    """A dgc of the same version that another compiler is said to have built."""
    def make():
        place = os.path.join(folder, "other")
        shutil.rmtree(place, ignore_errors=True)
        os.mkdir(place)
        beside = os.path.dirname(tools.dgc)
        for name in os.listdir(beside):
            path = os.path.join(beside, name)
            if os.path.isfile(path) and (name in ("dgc", "dgc-mpi.so", "dgc-mpi-abi.so") or name.startswith("libdgc.so")):
                shutil.copy(path, os.path.join(place, name))
                with open(os.path.join(place, name), "r+b") as f:
                    raw = f.read()
                    f.seek(0)
                    f.write(raw.replace(b"compiler: ", b"compiled: "))
        return os.path.join(place, "dgc")
    return tools.cached("other", make)


def draw_tasks(rng, model, least=1):
    n, apart = rng.randint(least, 4), rng.random() < 0.5
    strategy, servers = rng.choice(["parameter_server", "central_storage"]), rng.randint(1, 2)
    if n < 3 or n - servers < 1 or rng.random() < 0.6:
        return {"model": model, "worker": n, "apart": apart}
    free = strategy == "parameter_server" and model is not OWN and rng.random() < 0.7  # OWN has a state joined on read
    return {"model": model, "worker": n - servers, "ps": servers, "strategy": strategy, "apart": apart, "free": free}


def draw_fault(rng, n):
    """(what happens, on which task, DGC_INJECT)"""
    rank, step = rng.randrange(n), rng.randint(1, 3000)
    what = rng.choice(["kill", "kill", "exit", "stop", "slow", "disk", "saver", "wrong"])
    if what in ("kill", "exit", "stop"):
        call = "message" if rng.random() < 0.7 else "yield"
        return what, rank, f"{call}:{step}:{what}"
    if what == "slow":
        return what, rank, f"message:{step}+:slow"
    save = rng.randint(1, STEPS // 3)
    if what == "disk":
        call, how = rng.choice([("disk", "ENOSPC"), ("disk", "EIO"), ("fsync", "EIO"), ("rename", "EIO"), ("link", "EIO")])
        return what, 0, f"{call}:{save}{rng.choice(['', '+'])}:{how}"
    if what == "saver":
        return what, 0, f"{rng.choice(['disk', 'fsync', 'link', 'rename'])}:{save}:{rng.choice(['kill', 'exit', 'stop'])}"
    return what, rank, None


def sweep():
    """What processes that were killed shared has names in /dev/shm, and no library takes it away: 3 MB a run."""
    shared = [f for kind in ("mpich_shm_*", "vader_segment.*") for f in glob.glob("/dev/shm/" + kind)]
    used = set()
    for maps in glob.glob("/proc/[0-9]*/maps") if shared else []:
        try:
            with open(maps, encoding="utf-8", errors="replace") as f:
                used.update(line.split()[5] for line in f if " /dev/shm/" in line)
        except OSError:  # it has ended, or is another user's
            continue
    for path in shared:
        try:  # not what has just been made, and will be used
            if path not in used and time.time() - os.stat(path).st_mtime > 10 and os.stat(path).st_uid == os.getuid():
                os.unlink(path)
        except FileNotFoundError:
            continue


def end_all(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def execute(line, folder, what):
    """Exit code and messages; none of its processes is there then."""
    p = subprocess.Popen(line, cwd=folder, env={**os.environ, **ROOT_MAY}, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=limits(), start_new_session=True)
    try:
        err = p.communicate(timeout=PATIENCE)[1].decode(errors="replace")
    except subprocess.TimeoutExpired:
        end_all(p)
        p.communicate()
        raise Found("hang", f"no end after {PATIENCE} s, {what}: {' '.join(line)}") from None
    end_all(p)
    sweep()
    if "Sanitizer" in err or p.returncode in (-6, -11, 134, 139):
        raise Found("crash", f"ended with {p.returncode}, {what}: {' '.join(line)}\n{err[-800:]}")
    return p.returncode, err


def step_of(path):
    """The step that the checkpoint holds; 0: there is none."""
    if not os.path.exists(path):
        return 0
    with open(path, "rb") as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    return int(head["__metadata__"]["step"])


def content(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as f:
        return f.read()


def line_of(tools, launcher, tasks, path, fault=None, folder=None):
    """What starts the tasks; one of them under a fault."""
    n = tasks["worker"] + tasks.get("ps", 0)
    resume = ["--resume"] if os.path.exists(path) else []
    soon = SOON if fault and fault[0] in ("exit", "stop", "saver") else NEVER
    plain = command(tools.dgc, path, tasks, *resume, timeout=soon)
    if n == 1 and not fault:
        return plain
    if not fault:
        return [launcher, "-n", str(n), *plain]
    what, rank, inject = fault
    library = os.path.join(os.path.dirname(tools.dgc), "tests", "run", "inject.so")
    if what == "wrong":
        other = other_build(tools, folder)
        disturbed = ["env", f"LD_LIBRARY_PATH={os.path.dirname(other)}",
                     *command(other, path, tasks, *resume, timeout=soon)]
    else:
        disturbed = ["env", f"LD_PRELOAD={library}", f"DGC_INJECT={inject}", *plain]
    line = [launcher]
    for i in range(n):
        line += [":"] * (i > 0) + ["-n", "1", *(disturbed if i == rank else plain)]
    return line


def check_saved(tools, path, before, what):
    """What was saved is whole, and no older than what was there."""
    if not os.path.exists(path):
        if before:
            raise Found("lost", f"the checkpoint of step {before} is gone, {what}")
        return
    e = run([tools.dgc, "inspect", path])
    if e.code:
        raise Found("half", f"the checkpoint is damaged, {what}: {e.err[-300:]}")
    if step_of(path) < before:
        raise Found("lost", f"the checkpoint was of step {before} and is of {step_of(path)}, {what}")


def check_ended(fault, code, err, same, what):
    """Each fault has its ends, and its words; the code is that of the launcher, and MPICH's may be that of a process that
    it ended. A fault may come too late to be one, but for another program and a slow task."""
    words = {"wrong": "do not agree", "disk": "error: ", "stop": "error: "}
    kind = fault[0]
    if code < 0 or (kind == "wrong" and code == 0) or (kind == "slow" and code):
        raise Found(kind, f"ended with {code}, {what}: {err[-400:]}")
    if code and words.get(kind, "") not in err:
        raise Found(kind, f"ended with {code} and does not say why, {what}: {err[-400:]}")
    if kind == "wrong" and not same:
        raise Found(kind, f"another program has changed the checkpoint, {what}")


def is_end(path, want, free):
    """Whether it is the checkpoint of a run that has ended: of the one that is `want`, or `free`, of its last step."""
    return step_of(path) == STEPS if free else content(path) == want


def check_processes(tools, seed, index):
    rng = random.Random(f"processes:{seed}:{index}")
    found = launchers(tools.dgc)
    folder = prepared(tools)
    model = "long" if rng.random() < 0.5 else rng.choice(sorted(SAMPLES))
    want = whole(tools, folder, model)
    model = trains(tools.dgc, model)
    place = os.path.join(folder, "run")
    shutil.rmtree(place, ignore_errors=True)
    os.mkdir(place)
    path = os.path.join(place, "c.safetensors")
    words, free = [], False
    for _ in range(rng.randint(1, 3)):
        launcher, tasks = found[int(rng.random() * len(found))], draw_tasks(rng, model, 2)
        fault = draw_fault(rng, tasks["worker"] + tasks.get("ps", 0))
        line = line_of(tools, launcher, tasks, path, fault, folder)
        what = f"{fault[2] or 'another program'} on task {fault[1]}"
        tools.say(what + "\n" + " ".join(line))
        before, old = step_of(path), content(path)
        if before >= STEPS:
            break
        code, err = execute(line, folder, what)
        free |= tasks.get("free", False)
        check_saved(tools, path, before, what)
        check_ended(fault, code, err, content(path) == old, what)
        if what.partition(" ")[0].endswith(":exit") and code == 0:
            code = 1  # who goes without a word has ended well for MPICH's launcher, which ends the others
        if code == 0 and not is_end(path, want, free):
            raise Found("bits", f"another end than without the fault, {what}: {' '.join(line)}")
        words.append(("free " if tasks.get("free") else "") + (fault[0] if code else "went on"))
    tasks = draw_tasks(rng, model)
    line = line_of(tools, found[int(rng.random() * len(found))], tasks, path)
    code, err = execute(line, folder, "at the end")
    if code or not is_end(path, want, free or tasks.get("free")):
        raise Found("bits", f"another end ({code}) after {words}: {' '.join(line)}: {err[-300:]}")
    left = [n for n in os.listdir(place) if n != "c.safetensors"]
    if left:
        raise Found("litter", f"left behind after a save that ended well: {left}")
    return ", ".join(words)
