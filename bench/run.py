#!/usr/bin/env python3
"""What `hither run` costs beside a plain start of the same program, in turn with it:
CPU time of programs that compute, microseconds for each thread created, and for each
mapping that is stopped at. Medians; CPU time is that of everybody involved, hither too.
Exit status 1 where something failed; a target that is missed only says so.

Threads that are bound cannot get out of each other's way, nor of whatever else runs, by
whomever they are bound. So what following costs is measured with a rule that binds none,
and beside it, not judged, threads bound by hither against threads bound by libgomp."""
import argparse
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import machine, reap

ROOT = Path(__file__).resolve().parent.parent
CPU_LIMIT = 1.0  # per cent
THREAD_LIMIT = 60.0  # us for each thread created
MMAP_LIMIT = 30.0  # us for each mmap stopped at
THREADS, ROUNDS, MAPPINGS = 256, 20, 2000
PR_SET_CHILD_SUBREAPER = 36
# Arguments that make a run take some seconds on one core; with --quick less than one.
KERNELS = {
    "cg": (["20000", "60", "50"], ["20000", "40", "2"]), "ft": (["6", "500"], ["5", "10"]),
    "is": (["20", "500"], ["18", "20"]), "mg": (["6", "250"], ["5", "30"]),
    "sp": (["48", "400"], ["24", "30"]), "lu": (["48", "150"], ["24", "15"]), "ep": (["28"], ["22"]),
}


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command):
    """CPU seconds of all that came of it, and what it printed; None where it failed."""
    before = children_cpu()
    env = dict(os.environ, OMP_NUM_THREADS=str(os.cpu_count()), OMP_WAIT_POLICY="passive", OMP_DYNAMIC="false")
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    reap()
    if done.returncode != 0:
        print(f"failed: {' '.join(command)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    return children_cpu() - before, done.stdout


def in_turn(repeat, commands, figure):
    """Medians of `figure` of the commands, run in turn; None where one failed."""
    figures = [[] for _ in commands]
    for _ in range(repeat):
        for command, found in zip(commands, figures):
            result = run(command)
            if result is None:
                return None
            found.append(figure(*result))
    return [statistics.median(found) for found in figures]


def placement(program, hither, folder):
    """One that has a region for every mapping of `calls map`, on the node that there is."""
    matrix = Path(folder, "m.csv")
    matrix.write_text("0,1\n1,0\n")
    subprocess.run([hither, "map", "--matrix", matrix, "-o", Path(folder, "base")], check=True, capture_output=True)
    placed = json.loads(Path(folder, "base.place.json").read_text())
    placed["processes"][0]["executable"] = str(program)
    placed["regions"] = [
        {"kind": "mmap", "process": 0, "thread": 0, "ordinal": i, "size": 1 << 20, "file": "", "file_offset": 0}
        for i in range(MAPPINGS)]
    placed["phases"][0]["pages"] = [{"region": i, "runs": [[0, 256, 0]]} for i in range(MAPPINGS)]
    path = Path(folder, "calls.place.json")
    path.write_text(json.dumps(placed))
    return str(path)


def measure_calls(options, folder):
    """(what, microseconds plain, followed, limit or None) for each kind of call."""
    calls = Path(folder, "calls")
    source = Path(__file__).parent / "run" / "calls.c"
    subprocess.run(["gcc", "-O2", "-pthread", "-o", calls, source], check=True)
    rule = [options.hither, "run", "-q", "--policy", "compact", "--"]
    placed = [options.hither, "run", "-q", "-p", placement(calls, options.hither, folder), "--"]
    unplaced = [options.hither, "run", "-q", "--threads-only", "-p", placed[4], "--"]
    cases = [
        (f"thread created, {THREADS} x {ROUNDS}", rule, ["threads", str(THREADS), str(ROUNDS)], THREADS * ROUNDS,
         THREAD_LIMIT),
        ("mmap of a placed region", placed, ["map", str(MAPPINGS)], MAPPINGS, MMAP_LIMIT),
        ("mmap and munmap of one", placed, ["mapunmap", str(MAPPINGS)], MAPPINGS, None),
        ("mmap with threads only", unplaced, ["map", str(MAPPINGS)], MAPPINGS, None)]
    for what, front, arguments, count, limit in cases:
        command = [str(calls)] + arguments
        both = in_turn(options.repeat, (command, front + command), lambda _, out: int(out) / 1e3)
        yield what, None if both is None else [us / count for us in both], limit


def measure_kernels(options):
    """(name, CPU seconds plain, followed, bound by libgomp and by hither) for each program."""
    units = sorted(os.sched_getaffinity(0))
    places = ",".join(f"{{{unit}}}" for unit in units)
    bound = ["env", "OMP_PROC_BIND=true", f"OMP_PLACES={places}"]
    followed = [options.hither, "run", "-q", "--policy", "local", "--"]
    pinned = [options.hither, "run", "-q", "--policy", "compact", "--"]
    for name, (full, quick) in KERNELS.items():
        program = options.kernels / name
        if not program.exists() or (options.only and name not in options.only.split(",")):
            continue
        command = [str(program)] + (quick if options.quick else full)
        yield name, in_turn(options.repeat, [front + command for front in ([], followed, bound, pinned)],
                            lambda cpu, _: cpu)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hither", default=str(ROOT / "target/release/hither"), help="program to measure")
    parser.add_argument("--kernels", type=Path, default=ROOT / "target/kernels", help="folder of our kernels")
    parser.add_argument("--only", help="names of kernels, by commas")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--json", type=Path, help="file for the medians")
    return parser.parse_args()


def main():
    options = arguments()
    if not os.access(options.hither, os.X_OK):
        print(f"bench/run.py: {options.hither} cannot be run; build it, or name another by --hither", file=sys.stderr)
        return 2
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    here, targets, figures, failed = machine(), [], {}, False
    print("{cpu}, {processors} processors, {memory_gib} GiB, Linux {kernel}, load {load:.1f}, {date}".format(**here))
    print(f"\n{'CPU seconds':32}{'plain':>10}{'followed':>10}{'more':>10}{'libgomp':>12}{'hither binds':>14}")
    ratios = []
    for name, four in measure_kernels(options):
        failed |= four is None
        if four:
            ratios.append(100 * (four[1] / four[0] - 1))
            figures[name] = four
            print(f"{name:32}{four[0]:10.2f}{four[1]:10.2f}{ratios[-1]:9.2f}%{four[2]:12.2f}{four[3]:14.2f}",
                  flush=True)
    if ratios:
        targets.append(("CPU time of what computes, median", statistics.median(ratios), CPU_LIMIT, "%"))
    print(f"\n{'microseconds for each':32}{'plain':>10}{'followed':>10}{'more':>10}")
    with tempfile.TemporaryDirectory(prefix="bench-run-") as folder:
        for what, both, limit in measure_calls(options, folder):
            failed |= both is None
            if both:
                figures[what] = both
                print(f"{what:32}{both[0]:10.2f}{both[1]:10.2f}{both[1] - both[0]:10.2f}", flush=True)
                if limit:
                    targets.append((what, both[1] - both[0], limit, "us"))
    print("\nTargets")
    for what, measured, limit, unit in targets:
        print(f"  {'met   ' if measured <= limit else 'MISSED'}  {what}: {measured:.2f} of at most {limit:.0f} {unit}")
    if options.json:
        options.json.write_text(json.dumps({"machine": here, "medians": figures}, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
