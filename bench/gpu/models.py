"""What is measured: the same two models for everybody. A row: name, dgc's source, widths of the layers, the batch."""
CASES = [
    ("perceptron", "samples/perceptron.dsl", [784, 512, 512, 10], 128),
    ("perceptron", "samples/perceptron.dsl", [784, 512, 512, 10], 4096),
    ("wide", "bench/gpu/wide.dsl", [4096, 4096, 4096, 4096, 4096], 4096),
]
WARM_UP = 20


def summary(times):
    """Milliseconds: the median, and the quarter and three quarters of the sorted times."""
    times = sorted(times)
    n = len(times)
    return {"step_ms": times[n // 2], "low_ms": times[n // 4], "high_ms": times[3 * n // 4]}
