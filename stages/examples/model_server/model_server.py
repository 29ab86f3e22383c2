"""A model server that survives a dead worker: model_server.py [--device cuda:0] [--name model-server]
The loader owns the weights; two workers map them read-only and keep the caches of recent requests in a pool. One worker is killed."""
import argparse
import collections
import multiprocessing
import os
import signal
import time

import carousel
try:
    import torch as library
except ImportError:
    import numpy as library

WIDTH, TOKENS, KEPT = 1024, 64, 4   # of the weights; per request; requests whose caches a worker keeps
WEIGHTS, CACHE = 4 * WIDTH * WIDTH, 4 * TOKENS * WIDTH


def floats(memory, *shape):
    return memory.tensor(shape, library.float32) if library.__name__ == "torch" else memory.array(shape, "f4")


def load(weights, names):
    block = weights.allocate(WEIGHTS, 0)
    matrix = floats(block, WIDTH, WIDTH)
    for row in range(WIDTH):   # stands for a file of many GB
        matrix[row] = library.cos(library.arange(WIDTH) * (row + 1)) * 2 / WIDTH ** 0.5
    print(f"loader {os.getpid()}: the weights are loaded, sum {float(matrix.sum()):.3f}", flush=True)   # the sum waits for the GPU
    names.put(block.share())
    signal.pause()   # the weights stay while this process lives


def serve(weights, caches, names, requests, answers):
    with names.lease(60) as lease:
        shared = weights.open_share(lease.value)
        lease.requeue()   # for the next worker
    matrix, kept = floats(shared, WIDTH, WIDTH), collections.deque()
    for task in requests:   # each pass commits its task; the death of this process returns it to the queue
        if len(kept) == KEPT:
            kept.popleft().free()
        kept.append(caches.allocate(CACHE, 10))
        tokens = floats(kept[-1], TOKENS, WIDTH)
        tokens[0] = (task.value % 5 + 1) / 5
        for n in range(1, TOKENS):
            tokens[n] = library.tanh(matrix @ tokens[n - 1])
        answers.put((os.getpid(), task.value, float(tokens.sum())))
        del tokens


def died(death):
    print(f"worker {death.pid} is dead: {death.block_count} blocks are free again, {death.tasks} request is served again", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", default="cpu"), p.add_argument("--name", default="model-server")
    a = p.parse_args()
    gpu = None if a.device == "cpu" else int(a.device.removeprefix("cuda:"))
    with carousel.Space(a.name, device=gpu, create=carousel.SpaceSize("32M", None if gpu is None else "64M")) as space:
        kind = "cpu" if gpu is None else "cuda"
        weights, caches = space.pool("weights", WEIGHTS, device=kind), space.pool("caches", 16 * CACHE, device=kind)
        names, requests, answers = space.queue("names", 1, 32), space.work_queue("requests", 64, "q"), space.queue("answers", 64, "qqd")

        def start(function, *arguments):   # processes that survive each other; `kill -9` any of the workers
            process = multiprocessing.get_context("spawn").Process(target=function, args=arguments, daemon=True)
            process.start()
            return process.pid
        start(load, weights, names)
        victim, survivor = (start(serve, weights, caches, names, requests, answers) for _ in range(2))
        fresh, killed, submitted, values, gap, last = 0, 0.0, 0, {}, 0.0, {}
        served = collections.Counter()
        with space.on_peer_death(died):
            while served[fresh] < 20:
                while submitted < len(values) + 8:
                    requests.submit(submitted)
                    submitted += 1
                pid, request, value = answers.get(60)
                served[pid] += 1
                values[request] = value
                now = time.monotonic()
                if pid == survivor and fresh:
                    gap = max(gap, now - last[pid])
                last[pid] = now
                if not fresh and pid == survivor and served[victim] > KEPT and served[pid] > KEPT:
                    os.kill(victim, signal.SIGKILL)
                    killed, fresh = now, start(serve, weights, caches, names, requests, answers)
                if pid == fresh and served[pid] == 1:
                    print(f"worker {pid} is new: its first answer came {now - killed:.1f} s after the kill", flush=True)
            while len(values) < submitted:
                _, request, value = answers.get(60)
                values[request] = value
        equal = all(value == values[request % 5] for request, value in values.items())
        print(f"worker {survivor} served {served[survivor]} requests, at most {1000 * gap:.0f} ms apart after the kill")
        print(f"{submitted} requests, {len(values)} answered; equal requests had {'equal' if equal else 'DIFFERENT'} answers")


if __name__ == "__main__":
    main()
