#!/usr/bin/env python3
"""What `hither auto` costs beside a plain start of the same program, in turn with it, and
what it sees meanwhile.

Cost: CPU time of everybody involved, hither too, as the ratio of medians with a 95 %
confidence interval (bootstrap over the pairs of runs), less what starting and ending
hither takes, with the reading of symbols for the profile, which is measured with a short
run and told apart. Kept is a budget that lies above the lower end of the interval: where
machine and other programs make runs differ by more than the budget, more cannot be said,
and more runs help (--minutes, --repeat).

Seen: Pearson's correlation over all pairs of threads with the program's known pattern, of
the sharing matrix summed over the run; the median over the runs. Exit status 1 where
something failed; a target that is missed only says so.

With --folder, of the executables there, which are run without arguments: their patterns are the
communication and the coherence events that `hither trace` sees of the same program, and the cost is all
of it, start and end too. Communication counts all accesses to what others access, also those of a thread that waits
for a flag; coherence events are what placing threads can save."""
import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import machine, programs_in

ROOT = Path(__file__).resolve().parent.parent
THREADS = 8
CORRELATION = 0.8
LEAST = 3


def ring(i, j):
    return j - i in (1, THREADS - 1)


def chain(i, j):
    return j - i == 1


# Arguments of some seconds and of well below one, and the pattern.
PROGRAMS = {
    "ring": (["8", "150000", "512"], ["8", "10000", "512"], ring),
    "pipeline": (["8", "150000", "512"], ["8", "10000", "512"], chain),
    "stencil2d": (["512", "40000"], ["512", "2500"], chain),
    "all_to_all": (["8", "60000", "64"], ["8", "4000", "64"], None),
    "independent": (["8", "40000", "64"], ["8", "5000", "64"], None),
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


def known(pattern):
    """The weight of each pair of threads by a pattern."""
    return {(i, j): float(pattern(i, j)) for i in range(THREADS) for j in range(i + 1, THREADS)}


def traced(command, folder, options):
    """The weight of each pair of threads by a trace: of communication and of coherence events."""
    if cpu_of([options.hither, "trace", "-q", "-o", "traced", "--"] + command, folder) is None:
        sys.exit(1)
    stat = subprocess.run([options.hither, "stat", "--json", "traced.hither"], cwd=folder, check=True,
                          capture_output=True, text=True)
    stat = json.loads(stat.stdout)
    threads = len(stat["threads"])
    pairs = [(i, j) for i in range(threads) for j in range(i + 1, threads)]
    for rows in stat["matrix"], stat["coherence"]["matrix"]:
        weights = {(i, j): float(weight) for i, j, weight in rows}
        yield {pair: weights.get(pair, 0.0) for pair in pairs}


def correlation(matrix, pattern):
    x = [matrix.get(pair, 0.0) for pair in pattern]
    y = list(pattern.values())
    return statistics.correlation(x, y) if len(set(x)) > 1 and len(set(y)) > 1 else 0.0


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


class Program:
    """A program and what its runs were like, plain and followed."""

    def __init__(self, name, command, patterns, folder, budgets):
        self.name, self.command, self.patterns, self.folder = name, command, patterns, folder
        self.plain, self.followed = [], {budget: [] for budget in budgets}
        self.matrices = {budget: [] for budget in budgets}
        self.start = 0.0

    @staticmethod
    def ours(name, folder, options, budgets):
        full, quick, pattern = PROGRAMS[name]
        program = str(Path(folder, name))
        source = ROOT / "workloads" / f"{name}.c"
        subprocess.run(["gcc", *FLAGS, f"-DTEAM_MAX={THREADS}", "-o", program, source], check=True)
        command = [program] + (quick if options.quick else full)
        made = Program(name, command, [known(pattern)] if pattern else [], folder, budgets)
        idle = [program] + quick
        auto = [options.hither, "auto", "-q", "--json-lines", "lines", "-o", "nothing", "--"]
        figures = [(cpu_of(idle, folder), cpu_of(auto + idle, folder)) for _ in range(9)]
        made.start = statistics.median(f - p for p, f in figures)
        return made

    @staticmethod
    def theirs(path, folder, options, budgets):
        return Program(Path(path).name, [path], list(traced([path], folder, options)), folder, budgets)

    def round(self, options):
        """A run of each kind, in turn; whether all went well."""
        plain = cpu_of(self.command, self.folder)
        followed = []
        for budget in self.followed:
            front = [options.hither, "auto", "-q", "--budget", f"{budget}%", "--json-lines", "lines", "-o", "profile"]
            followed.append((budget, cpu_of(front + options.option + ["--"] + self.command, self.folder)))
            if followed[-1][1] is not None:
                self.matrices[budget].append(seen(Path(self.folder, "lines")))
        if plain is None or any(cpu is None for _, cpu in followed):
            return False
        self.plain.append(plain)
        for budget, cpu in followed:
            self.followed[budget].append(cpu - self.start)
        return True

    def rows(self):
        """(budget, cost, low, high, correlation with each pattern, threads moved)."""
        for budget, matrices in self.matrices.items():
            r = [statistics.median(correlation(matrix, pattern) for matrix, _ in matrices) for pattern in self.patterns]
            moved = statistics.median(moved for _, moved in matrices)
            yield (budget, *interval(self.plain, self.followed[budget]), r, moved)


def show(program):
    for budget, cost, low, high, r, moved in program.rows():
        kept = "yes" if high <= budget else "perhaps" if low <= budget else "NO"
        seen_as = " ".join(f"{one:.2f}" + ("" if one >= CORRELATION else " LOW") for one in r) or "-"
        print(f"{program.name:12} {budget:4g} %  {cost:5.2f} %  ({low:5.2f} to {high:5.2f})  {kept:8}  {seen_as:19}"
              f"  {moved:5g}  {statistics.median(program.plain):5.1f} s"
              f"  {program.start:.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hither", default=str(ROOT / "target/release/hither"))
    parser.add_argument("--repeat", type=int, default=40, help="runs of each kind at most")
    parser.add_argument("--minutes", type=float, default=5.5, help="no new round after so many")
    parser.add_argument("--quick", action="store_true", help="short runs, to see that all works")
    parser.add_argument("--option", action="append", default=[], help="of hither auto, as --option=--sampler=move")
    parser.add_argument("--budgets", default="2,1", help="per cent")
    parser.add_argument("--folder", type=Path, help="of programs of yours")
    parser.add_argument("programs", nargs="*", default=[], help=f"of {', '.join(PROGRAMS)}")
    options = parser.parse_args()
    options.hither = str(Path(options.hither).resolve())
    budgets = [float(budget) for budget in options.budgets.split(",")]
    print(machine())
    good = True
    with tempfile.TemporaryDirectory() as folder:
        if options.folder:
            paths = programs_in(options.folder.resolve())
            programs = [Program.theirs(path, folder, options, budgets) for path in paths]
        else:
            names = options.programs or PROGRAMS
            programs = [Program.ours(name, folder, options, budgets) for name in names]
        rounds, until = 0, time.monotonic() + 60 * options.minutes
        while good and rounds < options.repeat and (rounds < LEAST or time.monotonic() < until):
            good = all([program.round(options) for program in programs])
            rounds += 1
        print(f"{rounds} rounds of {len(programs)} programs, plain and with each budget\n")
        print("program      budget   cost  (95 % interval)     kept    correlation          moved  plain  start and end")
        for program in programs:
            if good:
                show(program)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
