#!/usr/bin/env python3
"""Does the cost of hither grow with the work and no faster? Traces a program (bench/growth/grow.c)
that grows in one size at a time, and prints for each size what it cost: CPU time of everybody
involved, the largest memory of hither alone, the largest that it and the target share, and how long
hither went on after the target's end. Under each table is the slope of CPU time and of memory over
the largest half of the range, both axes logarithmic: 1 is linear growth. Sizes called run-... are
of `hither run`, and what the program takes without it is beside them.

Sizes called auto-... are of `hither auto`, each a minute: what it cost in per cent of the program's
processor time, by its own account and measured (hither's processes alone), and of how many of the
program's pages it learned something.

Memory is looked at 20 times a second. Exit status 1 where something failed; nothing is judged."""
import argparse
import ctypes
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from measure import machine, reap

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
    "apart": ("at once, that share lines of the C library only", [4, 16, 64, 256, 1_000, 2_000, 4_000]),
    "working": ("at once, each busy for a while", [4, 16, 64, 256, 1_000, 2_000, 4_000]),
    "sharing": ("at once, of 64 MiB", [4, 16, 64, 128, 256, 512]),
    "in-turn": ("threads", [100, 1_000, 4_000, 20_000, 100_000]),
    "processes": ("in turn", [10, 50, 200, 1_000, 5_000, 10_000]),
    "forks": ("of 1000 blocks", [50, 200, 800, 3_000]),
}
# What `run` is shown with: by a rule, or by a placement of a trace of the same.
RUN_SIZES = {
    "run-threads": ("threads", "at once, by a rule", [250, 500, 1_000, 2_000, 4_000]),
    "run-placed": ("apart", "threads at once, by a placement", [250, 500, 1_000, 2_000, 4_000]),
    "run-in-turn": ("in-turn", "threads, by a rule", [1_000, 4_000, 16_000]),
    "run-forks": ("forks", "by a rule", [1_000, 2_500, 5_000, 10_000]),
    "run-mapped": ("mapped", "mappings bound", [1_000, 2_500, 5_000, 10_000, 20_000]),
    "run-copies": ("copies", "mappings, of 300 forks", [125, 250, 500, 1_000, 2_000]),
    "run-pages": ("reserved", "pages bound", [10_000, 100_000, 1_000_000, 10_000_000]),
}
AUTO_SIZES = {
    "auto-footprint": ("swept", "MiB, by 8 threads", [64, 256, 1024, 4096, 12_288]),
    "auto-threads": ("sweepers", "threads, 512 MiB", [2, 8, 32, 128, 512]),
}
PR_SET_CHILD_SUBREAPER = 36
READERS = ("stat", "check", "map", "report")
# Rows of page use.
ROWS = [100_000, 1_000_000, 10_000_000, 100_000_000]
ALL = [*SIZES, *RUN_SIZES, *AUTO_SIZES, "readers"]


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
        reap()
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


def placement(args, size, n, folder):
    """The options of `run` that have a run of this size placed."""
    kind, unit, _ = RUN_SIZES[size]
    if "rule" in unit:
        return ["--policy", "compact"]
    profile, place = Path(folder, "app.hither"), Path(folder, "app.place.json")
    if kind == "reserved":
        run([str(args.wide), str(profile), "4000", str(args.program)], args.limit)
    else:
        run([str(args.hither), "trace", "-q", "-o", str(profile), "--", str(args.program), kind, str(n)], args.limit)
    run([str(args.hither), "map", "--force", "--policy", "compact+most-access", "-o", str(place), str(profile)],
        args.limit)
    if kind == "reserved":
        # More than a node could hold: none of it is written.
        told = json.loads(place.read_text())
        told["regions"][0]["size"] = n * 4096
        told["phases"][0]["pages"][0]["runs"] = [[0, n, 0]]
        place.write_text(json.dumps(told))
    return ["-p", str(place)]


def placed(args, size, n, folder):
    """What it costs to run a program as it is told, and by itself."""
    options = placement(args, size, n, folder)
    program = [str(args.program), RUN_SIZES[size][0], str(n)]
    plain = run(program, args.limit)
    found = run([str(args.hither), "run", "-q", *options, "--", *program], args.limit)
    found["after"] = time.monotonic() - int(found["out"].split()[-1]) / 1e9
    return found | {"size": 0, "plain": plain["cpu"]}


def observed(args, size, values, folder):
    """Prints what `auto` cost and saw for each value; False where one failed."""
    kind, unit, _ = AUTO_SIZES[size]
    print(f"\n{size} ({unit})")
    print(f"{'':>10}{'program s':>11}{'said %':>8}{'measured %':>12}{'caused':>9}{'pages known %':>15}")
    outcome = Path(folder, "auto.json")
    for n in values:
        try:
            found = run([str(args.hither), "auto", "-q", "--no-profile", "--export-json", str(outcome), "--",
                         str(args.program), kind, str(n)], args.limit)
        except RuntimeError as error:
            print(f"{n:>10}  failed: {error}", flush=True)
            return False
        told = json.loads(outcome.read_text())
        cost, program = told["cost"], int(found["out"].split()[0]) / 1e9
        said = 100 * (cost["cpu"] + cost["faulting"]) / cost["target"]
        measured = 100 * (found["cpu"] - program) / program
        known = 100 * min(1, told["memory_seen"] / told["memory"])
        print(f"{n:>10}{program:>11.2f}{said:>8.2f}{measured:>12.2f}{told['extra']:>9}{known:>15.1f}", flush=True)
    return True


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
    print(f"{'':>10}{'CPU s':>9}{'hither MiB':>12}{'shared MiB':>12}{'after s':>9}{'profile MiB':>13}{'alone s':>9}")
    rows = []
    for n in values:
        try:
            found = measure(n)
        except RuntimeError as error:
            print(f"{n:>10}  failed: {error}", flush=True)
            return False
        rows.append((n, found))
        print(f"{n:>10}{found['cpu']:>9.2f}{found['own'] / MIB:>12.1f}{found['shared'] / MIB:>12.1f}"
              f"{found['after']:>9.2f}{found['size'] / MIB:>13.2f}{found.get('plain', math.nan):>9.2f}", flush=True)
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
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help=f"what grows: {', '.join(ALL)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="only the first three of each range")
    parser.add_argument("--range", metavar="N,N,...", help="these sizes in place of the usual ones")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="for one run (default 600)")
    parser.add_argument("--hither", type=Path, default=ROOT / "target/release/hither")
    parser.add_argument("--program", type=Path, default=ROOT / "target/growth/grow")
    parser.add_argument("--wide", type=Path, default=ROOT / "target/release/examples/wide")
    args = parser.parse_args()
    unknown = set(args.sizes) - set(ALL)
    if unknown:
        parser.error(f"there is no size {', '.join(sorted(unknown))}")
    return args


def show(args, size):
    """The table of one size; False where something failed."""
    kinds = SIZES | {name: about[1:] for name, about in (RUN_SIZES | AUTO_SIZES).items()}
    unit, values = ("rows", ROWS) if size == "readers" else kinds[size]
    values = [int(n) for n in args.range.split(",")] if args.range else values[:3] if args.quick else values
    with tempfile.TemporaryDirectory(prefix="bench-growth-") as folder:
        if size == "readers":
            return readers(args.hither, args.wide, values, folder, args.limit)
        if size in AUTO_SIZES:
            return observed(args, size, values, folder)
        if size in RUN_SIZES:
            return table(f"{size} ({unit})", values, lambda n: placed(args, size, n, folder))
        return table(f"{size} ({unit})", values,
                     lambda n: traced(args.hither, args.program, size, n, folder, args.limit)[0])


def main():
    args = arguments()
    # What goes on after its parent's end, as the follower of `run`, is waited for, too.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    about = machine()
    print("{cpu}, {processors} processors, {memory_gib} GiB, Linux {kernel}, load {load:.1f}, {date}".format(**about))
    good = [show(args, size) for size in args.sizes or ALL]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
