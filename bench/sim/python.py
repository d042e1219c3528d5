"""python.py FILE: plays the accesses of a file (see touch.c) on pycachesim's caches.

The caches of one X7550 core: pycachesim knows one core, inclusive levels, no coherence. Its
fastest way is used: runs of reads and of writes, each handed over at once as a list.
"""
import array
import itertools
import json
import os
import sys
import time

from cachesim import Cache, CacheSimulator, MainMemory

WRITE = 1 << 63


def caches():
    memory = MainMemory()
    last = Cache("L3", 12288, 24, 64, "LRU")
    memory.load_to(last)
    memory.store_from(last)
    second = Cache("L2", 512, 8, 64, "LRU", store_to=last, load_from=last)
    first = Cache("L1", 64, 8, 64, "LRU", store_to=second, load_from=second)
    return CacheSimulator(first, memory)


def main():
    words = array.array("Q")
    with open(sys.argv[1], "rb") as file:
        words.fromfile(file, os.path.getsize(sys.argv[1]) // words.itemsize)
    runs = [(bool(write), [a & ~WRITE for a in run])
            for write, run in itertools.groupby(words, key=lambda a: a & WRITE)]
    simulator = caches()
    start = time.perf_counter()
    for write, run in runs:
        if write:
            simulator.store(run, length=8)
        else:
            simulator.load(run, length=8)
    seconds = time.perf_counter() - start
    first = next(iter(simulator.stats()))
    print(json.dumps({"accesses": len(words), "seconds": seconds, "misses": first["MISS_count"]}))


if __name__ == "__main__":
    main()
