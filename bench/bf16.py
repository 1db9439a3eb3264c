#!/usr/bin/env python3
"""Training steps in bfloat16 on one thread: dgc (f32 and bf16) and PyTorch under autocast (as it is, and compiled), in turn
in one run: bf16.py BUILD [--also BUILD ...] [--steps N] [--rounds N] [--only MODEL]

The models: samples/perceptron.dsl with Adam and a batch of 1024, bench/resnet.dsl (ResNet-20, SGD with momentum) with one of 64,
bench/chars.dsl (a transformer, Adam) with 16 texts of 64 characters; a fresh batch at each step, rows made up. A figure
is the least of the rounds' median steps, as whatever else runs only adds. --also names other builds of dgc, of older commits
say. PyTorch is left out where it is not installed."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = {"perceptron": ("samples/perceptron.dsl", 1024), "resnet": ("bench/resnet.dsl", 64), "chars": ("bench/chars.dsl", 16)}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def perceptron(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return net, torch.optim.Adam(net.parameters(), 1e-3), lambda n: (torch.rand(n, 784), torch.randint(0, 10, (n,)))


def resnet(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels, filters, stride):
            super().__init__()
            self.a, self.b = nn.Conv2d(channels, filters, 3, stride, 1), nn.Conv2d(filters, filters, 3, 1, 1)
            self.norm_a, self.norm_b = nn.BatchNorm2d(filters), nn.BatchNorm2d(filters)
            self.short = nn.Conv2d(channels, filters, 1, stride) if stride > 1 else nn.Identity()

        def forward(self, x):
            y = torch.relu(self.norm_a(self.a(x)))
            return torch.relu(self.norm_b(self.b(y)) + self.short(x))
    layers, channels = [nn.Conv2d(3, 16, 3, 1, 1), nn.BatchNorm2d(16), nn.ReLU()], 16
    for filters in 16, 32, 64:
        for i in range(3):
            layers.append(Block(channels, filters, 2 if i == 0 and filters > 16 else 1))
            channels = filters
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).to(memory_format=torch.channels_last)
    data = lambda n: (torch.rand(n, 3, 32, 32).to(memory_format=torch.channels_last), torch.randint(0, 10, (n,)))
    return net, torch.optim.SGD(net.parameters(), 0.1, momentum=0.9), data


def chars(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(128), nn.LayerNorm(128)
            self.qkv, self.out = nn.Linear(128, 384, bias=False), nn.Linear(128, 128)
            self.wide, self.narrow = nn.Linear(128, 512), nn.Linear(512, 128)

        def forward(self, x):
            q, k, v = (t.view(*t.shape[:2], 4, 32).transpose(1, 2) for t in self.qkv(self.first(x)).chunk(3, -1))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(x.shape))
            return x + self.narrow(nn.functional.gelu(self.wide(self.second(x)), approximate="tanh"))

    class Chars(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.place = nn.Embedding(96, 128), nn.Parameter(torch.rand(64, 128))
            self.blocks = nn.Sequential(*[Block() for _ in range(4)], nn.LayerNorm(128), nn.Linear(128, 96))

        def forward(self, x):
            return self.blocks(self.table(x) + self.place).flatten(0, 1)
    net = Chars()
    ids = lambda n: torch.randint(0, 96, (n, 64))
    return net, torch.optim.Adam(net.parameters(), 1e-3), lambda n: (ids(n), ids(n).flatten())


def pytorch(name, steps, compiled):
    """Prints the median step in ms."""
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net, optimizer, data = {"perceptron": perceptron, "resnet": resnet, "chars": chars}[name](torch)

    def loss_of(x, y):
        with torch.autocast("cpu", torch.bfloat16):
            out = net(x)
        return torch.nn.functional.cross_entropy(out.float(), y)
    run = torch.compile(loss_of) if compiled else loss_of
    held, times = data(MODELS[name][1]), []
    for i in range(steps + 5):
        begin = time.perf_counter()
        x, y = (t.clone() for t in held)
        loss = run(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        times.append(time.perf_counter() - begin)
    print(json.dumps(1e3 * statistics.median(times[5:])))


def dgc(build, name, precision, steps):
    model, batch = MODELS[name]
    text = subprocess.run([os.path.join(build, "dgc"), "bench", os.path.join(ROOT, model), "--batch", str(batch), "--steps",
                           str(steps), "--devices", "cpu:0", "--threads", "1", "--set", "precision=" + precision, "--json"],
                          check=True, capture_output=True, text=True).stdout
    return json.loads(text)["step_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", metavar="BUILD")
    p.add_argument("--also", action="append", default=[], metavar="BUILD")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", choices=MODELS)
    p.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.peer:
        return pytorch(a.peer[0], a.steps, a.peer[1] == "compiled")
    for name in [a.only] if a.only else MODELS:
        rows = {}
        for _ in range(a.rounds):
            for build in [a.build] + a.also:
                for precision in "f32", "bf16":
                    rows.setdefault(f"{build} {precision}", []).append(dgc(build, name, precision, a.steps))
            for how in "eager", "compiled":
                run = subprocess.run([sys.executable, __file__, a.build, "--peer", name, how, "--steps", str(a.steps)],
                                     capture_output=True, text=True, env={**os.environ, **ONE_THREAD})
                if run.returncode == 0:
                    rows.setdefault(f"PyTorch autocast, {how}", []).append(json.loads(run.stdout.splitlines()[-1]))
        least = min(rows[f"{a.build} bf16"])
        for who, times in rows.items():
            print(f"{name:12} {who:40} {min(times):9.2f} ms {min(times) / least:6.2f}", flush=True)


if __name__ == "__main__":
    main()
