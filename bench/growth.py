#!/usr/bin/env python3
"""Does the cost of tracing grow with the work and no faster? Traces a program (bench/growth/grow.c)
that grows in one size at a time, and prints for each size what it cost: CPU time of everybody
involved, the largest memory of hither alone, the largest that it and the target share, and how long
hither went on after the target's end. Under each table is the slope of CPU time and of memory over
the largest half of the range, both axes logarithmic: 1 is linear growth.

Memory is looked at 20 times a second. Exit status 1 where something failed; nothing is judged."""
import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from measure import machine

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
# What grows: its unit and the range, the first part of which is what --quick takes.
SIZES = {
    "length": ("x 0.1 s alone", [1, 4, 16, 64, 256]),
    "footprint": ("MiB", [64, 256, 1024, 4096]),
    "freed": ("x 40 MiB", [25, 50, 100, 200, 400, 800]),
    "blocks": ("of 1 KiB", [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000]),
    "mappings": ("in turn", [1_000, 4_000, 16_000, 40_000, 200_000]),
    "threads": ("at once", [4, 16, 64, 256, 1_000, 2_000, 4_000]),
    "sharing": ("at once, of 64 MiB", [4, 16, 64, 128, 256, 512]),
    "in-turn": ("threads", [100, 1_000, 4_000, 20_000, 100_000]),
    "processes": ("in turn", [10, 50, 200, 1_000, 5_000, 10_000]),
    "forks": ("of 1000 blocks", [50, 200, 800, 3_000]),
}
READERS = ("stat", "check", "map", "report")
# Rows of page use.
ROWS = [100_000, 1_000_000, 10_000_000, 100_000_000]


class Watcher(threading.Thread):
    """Follows the memory of one process, and of the memory files that it holds."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.own, self.shared, self.done = pid, 0, 0, threading.Event()

    def run(self):
        while not self.done.wait(0.05):
            try:
                status = Path("/proc", str(self.pid), "status").read_text()
                files = [os.stat(e.path) for e in os.scandir(f"/proc/{self.pid}/fd")
                         if os.readlink(e.path).startswith("/memfd:")]
            except OSError:
                continue  # it has just ended
            for line in status.splitlines():
                if line.startswith("RssAnon:"):
                    self.own = max(self.own, int(line.split()[1]) * 1024)
            self.shared = max(self.shared, sum(f.st_blocks * 512 for f in files))


def run(command, limit):
    """CPU seconds, the peaks of memory and what was printed, of a command that succeeded."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    watcher = Watcher(process.pid)
    watcher.start()
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.communicate()
        raise RuntimeError(f"{' '.join(command)} took longer than {limit} s") from None
    finally:
        watcher.done.set()
        watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {err.strip()[-300:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu": cpu, "own": watcher.own, "shared": watcher.shared, "out": out}


def traced(hither, program, size, n, folder, limit):
    """What it costs to trace one run, and how long hither goes on after the target's end."""
    profile = Path(folder, f"{size}-{n}.hither")
    command = [str(hither), "trace", "-q", "-o", str(profile), "--", str(program), size, str(n)]
    found = run(command, limit)
    found["after"] = time.monotonic() - int(found["out"].split()[-1]) / 1e9
    found["size"] = profile_bytes(profile)
    return found, profile


def profile_bytes(folder):
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


def slope(points):
    """Of the logarithms, by least squares over the larger half of the points."""
    logs = [(math.log(x), math.log(y)) for x, y in points if y > 0][-max(3, (len(points) + 1) // 2):]
    if len(logs) < 2:
        return float("nan")
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs))
    return (sum((x - mean_x) * (y - mean_y) for x, y in logs) /
            sum((x - mean_x) ** 2 for x, _ in logs))


def table(title, values, measure):
    """Prints the figures of `measure` for each value; False where one failed."""
    print(f"\n{title}")
    print(f"{'':>10}{'CPU s':>9}{'hither MiB':>12}{'shared MiB':>12}{'after s':>9}{'profile MiB':>13}")
    rows = []
    for n in values:
        try:
            found = measure(n)
        except RuntimeError as error:
            print(f"{n:>10}  failed: {error}", flush=True)
            return False
        rows.append((n, found))
        print(f"{n:>10}{found['cpu']:>9.2f}{found['own'] / MIB:>12.1f}{found['shared'] / MIB:>12.1f}"
              f"{found['after']:>9.2f}{found['size'] / MIB:>13.2f}", flush=True)
    slopes = [slope([(n, f(found)) for n, found in rows])
              for f in (lambda x: x["cpu"], lambda x: x["own"], lambda x: x["shared"], lambda x: x["after"])]
    texts = [f"{s:.2f}" if s == s else "-" for s in slopes]
    print(f"{'slope':>10}{texts[0]:>9}{texts[1]:>12}{texts[2]:>12}{texts[3]:>9}")
    return True


def readers(hither, wide, values, folder, limit):
    """What reading profiles costs by their rows of page use; False where something failed."""
    good = True
    for verb in READERS:
        def read(n, verb=verb):
            profile = Path(folder, f"{n}.hither")
            if not profile.exists():
                run([str(wide), str(profile), str(n)], limit)
            extra = {"report": ["-o", str(Path(folder, "page.html"))], "check": ["--max-remote", "100%"],
                     "map": ["-o", str(Path(folder, "app.place.json")), "--topology", "xeon-x7550x4"]}
            start = time.monotonic()
            found = run([str(hither), verb, *extra.get(verb, []), str(profile)], limit)
            return found | {"after": time.monotonic() - start, "size": profile_bytes(profile)}
        good &= table(f"{verb}: rows of page use in the profile; `after` is the time it took", values, read)
    return good


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help=f"what grows: {', '.join([*SIZES, 'readers'])} (default: all)")
    parser.add_argument("--quick", action="store_true", help="only the first three of each range")
    parser.add_argument("--range", metavar="N,N,...", help="these sizes in place of the usual ones")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="for one run (default 600)")
    parser.add_argument("--hither", type=Path, default=ROOT / "target/release/hither")
    parser.add_argument("--program", type=Path, default=ROOT / "target/growth/grow")
    parser.add_argument("--wide", type=Path, default=ROOT / "target/release/examples/wide")
    args = parser.parse_args()
    unknown = set(args.sizes) - set(SIZES) - {"readers"}
    if unknown:
        parser.error(f"there is no size {', '.join(sorted(unknown))}")
    return args


def main():
    args = arguments()
    about = machine()
    print("{cpu}, {processors} processors, {memory_gib} GiB, Linux {kernel}, load {load:.1f}, {date}".format(**about))
    good = True
    for size in args.sizes or [*SIZES, "readers"]:
        unit, values = ("rows", ROWS) if size == "readers" else SIZES[size]
        values = [int(n) for n in args.range.split(",")] if args.range else values[:3] if args.quick else values
        with tempfile.TemporaryDirectory(prefix="bench-growth-") as folder:
            if size == "readers":
                good &= readers(args.hither, args.wide, values, folder, args.limit)
                continue
            good &= table(f"{size} ({unit})", values,
                          lambda n, s=size, f=folder: traced(args.hither, args.program, s, n, f, args.limit)[0])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
