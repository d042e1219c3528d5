#!/usr/bin/env python3
"""What `hither auto` costs beside a plain start of the same program, in turn with it, and
what it sees meanwhile.

Cost: CPU time of everybody involved, hither too, as the ratio of medians with a 95 %
confidence interval (bootstrap over the pairs of runs), less what starting and ending
hither takes, which is told apart. Kept is a budget that lies above the lower end of the
interval: where machine and other programs make runs differ by more than the budget, more
cannot be said, and more runs help (--repeat).

Seen: Pearson's correlation over all pairs of threads with the program's known pattern, of
the sharing matrix summed over the run; the median over the runs. Exit status 1 where
something failed; a target that is missed only says so."""
import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import machine

ROOT = Path(__file__).resolve().parent.parent
THREADS = 8
CORRELATION = 0.8


def ring(i, j):
    return j - i in (1, THREADS - 1)


def chain(i, j):
    return j - i == 1


# Arguments of some seconds and of less than one, and the pattern.
PROGRAMS = {
    "ring": (["8", "150000", "512"], ["8", "10000", "512"], ring),
    "pipeline": (["8", "150000", "512"], ["8", "10000", "512"], chain),
    "stencil2d": (["512", "16000"], ["512", "600"], chain),
    "all_to_all": (["8", "60000", "64"], ["8", "4000", "64"], None),
    "independent": (["8", "40000", "64"], ["8", "1500", "64"], None),
}
FLAGS = "-std=gnu11 -O2 -fno-tree-vectorize -fno-tree-loop-distribute-patterns -pthread -fopenmp".split()


def cpu_of(command, folder):
    """CPU seconds of all that came of it; None where it failed."""
    def children():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before = children()
    env = dict(os.environ, OMP_NUM_THREADS=str(THREADS), OMP_WAIT_POLICY="passive")
    done = subprocess.run(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0 or "WRONG" in done.stdout:
        print(f"failed: {' '.join(command)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    return children() - before


def seen(path):
    """The sharing matrix of a run, threads in order of their ids, and how many were moved."""
    total, moved = {}, 0
    for line in Path(path).read_text().splitlines():
        line = json.loads(line)
        moved += len(line["seated"])
        for a, b, events in line["pairs"]:
            key = (min(a, b), max(a, b))
            total[key] = total.get(key, 0) + events
    tids = sorted({tid for pair in total for tid in pair})
    at = {tid: i for i, tid in enumerate(tids)}
    return {(at[a], at[b]): events for (a, b), events in total.items()}, moved


def correlation(matrix, pattern):
    pairs = [(i, j) for i in range(THREADS) for j in range(i + 1, THREADS)]
    x = [matrix.get(pair, 0.0) for pair in pairs]
    y = [float(pattern(*pair)) for pair in pairs]
    return statistics.correlation(x, y) if len(set(x)) > 1 else 0.0


def interval(plain, followed, rounds=2000):
    """Cost in per cent and its 95 % interval."""
    cost = lambda p, f: 100 * (statistics.median(f) / statistics.median(p) - 1)
    chance = random.Random(1)
    count = range(len(plain))
    costs = []
    for _ in range(rounds):
        picks = [chance.choice(count) for _ in count]
        costs.append(cost([plain[i] for i in picks], [followed[i] for i in picks]))
    costs.sort()
    return cost(plain, followed), costs[rounds // 40], costs[-rounds // 40 - 1]


def once(options, folder):
    """CPU seconds that starting and ending hither takes: a program that does nothing."""
    auto = [options.hither, "auto", "-q", "-o", "nothing", "--", "true"]
    figures = [(cpu_of(["true"], folder), cpu_of(auto, folder)) for _ in range(options.repeat)]
    return statistics.median(f - p for p, f in figures)


def measure(options, folder, name, budgets, start):
    """(budget, cost, low, high, correlation or None, threads moved) of a program."""
    full, quick, pattern = PROGRAMS[name]
    program = str(Path(folder, name))
    source = ROOT / "workloads" / f"{name}.c"
    subprocess.run(["gcc", *FLAGS, f"-DTEAM_MAX={THREADS}", "-o", program, source], check=True)
    command = [program] + (quick if options.quick else full)
    plain, followed = [], {budget: [] for budget in budgets}
    matrices = {budget: [] for budget in budgets}
    for _ in range(options.repeat):
        plain.append(cpu_of(command, folder))
        for budget in budgets:
            front = [options.hither, "auto", "-q", "--budget", f"{budget}%", "--json-lines", "lines", "-o", "profile"]
            cpu = cpu_of(front + options.option + ["--"] + command, folder)
            if cpu is None or plain[-1] is None:
                return None
            followed[budget].append(cpu - start)
            matrices[budget].append(seen(Path(folder, "lines")))
    rows = []
    for budget in budgets:
        r = None
        if pattern:
            r = statistics.median(correlation(matrix, pattern) for matrix, _ in matrices[budget])
        moved = statistics.median(moved for _, moved in matrices[budget])
        rows.append((budget, *interval(plain, followed[budget]), r, moved))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hither", default=str(ROOT / "target/release/hither"))
    parser.add_argument("--repeat", type=int, default=15, help="runs of each kind")
    parser.add_argument("--quick", action="store_true", help="short runs, to see that all works")
    parser.add_argument("--option", action="append", default=[], help="of hither auto, as --option=--sampler=move")
    parser.add_argument("--budgets", default="2,1", help="per cent")
    parser.add_argument("programs", nargs="*", default=[], help=f"of {', '.join(PROGRAMS)}")
    options = parser.parse_args()
    options.hither = str(Path(options.hither).resolve())
    budgets = [float(budget) for budget in options.budgets.split(",")]
    print(machine())
    good = True
    with tempfile.TemporaryDirectory() as folder:
        start = once(options, folder)
        print(f"starting and ending hither: {1000 * start:.0f} ms of CPU time\n")
        print("program      budget   cost  (95 % interval)     kept    correlation  threads moved")
        for name in options.programs or PROGRAMS:
            rows = measure(options, folder, name, budgets, start)
            good &= rows is not None
            for budget, cost, low, high, r, moved in rows or []:
                kept = "yes" if high <= budget else "perhaps" if low <= budget else "NO"
                seen_as = "-" if r is None else f"{r:.2f}" + ("" if r >= CORRELATION else " LOW")
                print(f"{name:12} {budget:4g} %  {cost:5.2f} %  ({low:5.2f} to {high:5.2f})  {kept:8}  {seen_as:11}  {moved:g}",
                      flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
