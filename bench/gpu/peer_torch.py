# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the same model: peer_torch.py WIDTHS BATCH STEPS ROUNDING DEVICE. A line of JSON for each way to run it. A step copies
the batch from pinned memory, trains, and waits for the device, as `dgc bench` does."""
import json
import sys
import time

import torch

from models import arguments, summary

widths, batch, steps, rounding, device, warm_up = arguments(sys.argv)
on_gpu = device == "cuda"
if on_gpu and not torch.cuda.is_available():
    print(json.dumps({"who": "PyTorch", "absent": "this PyTorch has no GPU"}))
    sys.exit()
torch.backends.cuda.matmul.allow_tf32 = rounding == "tf32"
torch.manual_seed(0)
classes = widths[-1] == 10


def build():
    layers = []
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        layers += [torch.nn.Linear(a, b)] + ([torch.nn.ReLU()] if i < len(widths) - 2 else [])
    net = torch.nn.Sequential(*layers).to(device)
    rate = torch.tensor(1e-3, device=device) if classes else 1e-3
    optimizer = (torch.optim.Adam(net.parameters(), lr=rate, capturable=on_gpu) if classes
                 else torch.optim.SGD(net.parameters(), lr=rate))
    loss = torch.nn.CrossEntropyLoss() if classes else torch.nn.MSELoss()
    return net, optimizer, loss


def measure(name, compiled):
    net, optimizer, loss_of = build()
    x_host = torch.rand(batch, widths[0])
    y_host = torch.randint(0, 10, (batch,)) if classes else torch.rand(batch, widths[-1])
    if on_gpu:
        x_host, y_host = x_host.pin_memory(), y_host.pin_memory()
    x, y = x_host.to(device, copy=True), y_host.to(device, copy=True)

    def forward_and_back():
        with torch.autocast(device, torch.bfloat16, enabled=rounding == "bf16"):
            loss = loss_of(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    train = torch.compile(forward_and_back, mode="reduce-overhead") if compiled else forward_and_back
    times = []
    for i in range(warm_up + steps):
        begin = time.perf_counter()
        x.copy_(x_host, non_blocking=True)
        y.copy_(y_host, non_blocking=True)
        train()
        if on_gpu:
            torch.cuda.synchronize()
        if i >= warm_up:
            times.append(1e3 * (time.perf_counter() - begin))
    print(json.dumps({"who": name, "version": torch.__version__, **summary(times)}), flush=True)


measure("PyTorch", False)
try:
    measure("PyTorch, compiled with CUDA graphs", True)
except Exception as e:  # no compiler on this machine, or a version that cannot
    print(json.dumps({"who": "PyTorch, compiled with CUDA graphs", "absent": str(e).splitlines()[0]}))
