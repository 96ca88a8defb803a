"""Time per token and peak memory of a measurement of long texts in pieces, on any device.

python -m benchmarks.long_context MODEL --tokens 8192 --chunk 2048 [--device cuda] [--dtype float32]

Each length runs in a process of its own, for the peak; `--against 2048` is run in one pass first.  On a CUDA device the
peak is that of its memory.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

PROMPT = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--chunk", type=int, default=2048)
    parser.add_argument("--against", type=int, default=2048)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--one", action="store_true", help="measure one length, in this process")
    parser.add_argument("--check", action="store_true", help="compare the pieces with one pass as well")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options)))
        return
    here = ["--device", options.device, "--dtype", options.dtype, "--one"]
    runs = {
        f"{options.against} in one pass": ["--tokens", options.against, "--chunk", options.against],
        f"{options.tokens} in pieces of {options.chunk}": ["--tokens", options.tokens, "--chunk", options.chunk],
    }
    if options.check:
        runs[f"{options.tokens} in one pass"] = ["--tokens", options.tokens, "--chunk", options.tokens]
    found = {}
    for name, arguments in runs.items():
        command = [sys.executable, "-m", "benchmarks.long_context", options.model, *map(str, arguments), *here]
        found[name] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        seconds, base, peak = (found[name][key] for key in ("seconds", "base", "peak"))
        print(f"2 x {name}: {seconds * 1e3:.2f} ms a token, peak {peak:.2f} GB, of which {base:.2f} before the run")
    if options.check:
        pieces, whole = (np.array(found[name]["last"]) for name in list(runs)[1:])
        print(f"largest relative difference of distances in the last layer: {np.max(np.abs(pieces / whole - 1)):.1e}")


def one(options: argparse.Namespace) -> dict[str, object]:
    """Return seconds of processor or, on a device, wall time a token, memory before and at its peak, distances."""
    import torch

    from relaymodel.networks.huggingface import load
    from relaymodel.networks.protocol import measure

    network = load(options.model, dtype=options.dtype, device=options.device, chunk=options.chunk)
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, network.vocabulary, (2, PROMPT))
    after = rng.integers(0, network.vocabulary, options.tokens - PROMPT)
    device = torch.device(options.device)
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    base = peak(device)
    begun = clock()
    measured = measure(network, (a, b, after))
    seconds = (clock() - begun) / options.tokens
    last = measured.euclidean[0, -1].tolist()
    return {"seconds": seconds, "base": base, "peak": peak(device), "last": last}


def peak(device: object) -> float:
    """Return the most memory used so far, in GB."""
    import torch

    if device.type == "cuda":  # type: ignore[attr-defined]
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
