"""Does who shares with whom depend on how a program was traced? Traces programs alone, beside a load, with
--sample and with --oracle.

    communication.py HITHER FOLDER [--papers FILE] [THREADS...]   every executable in FOLDER, run there without arguments (a
                            program, or a script that ends in `exec program arguments`), with each
                            number of threads in OMP_NUM_THREADS; by default 4, 8 and 16

Prints a row per program, number of threads and way of tracing: C_H, C_H residual of all events and of the
coherence events, C_A, R_comm, slices, the correlation of the matrix with that of the program traced alone (NaN
where all cells are alike), and the verdict on threads. FILE has lines of a program's name, or how it begins, and
the papers' verdict, which is printed beside. The load is eight processes that spin. The oracle calls a function at each access; where it
takes longer than ten minutes its row says so."""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

from measure import programs_in

WAYS = {"alone": [], "load 8": [], "sample": ["--sample"], "oracle": ["--oracle"]}
LOAD = 8
LIMIT = 600  # seconds that a traced run may take


def summary(hither, program, threads, folder, options, profile):
    """What `hither stat` says of a traced run; None if it took too long or left nothing."""
    shutil.rmtree(profile, ignore_errors=True)
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive", OMP_DYNAMIC="false")
    try:
        # The program's own status is not ours to judge.
        subprocess.run([hither, "trace", "--quiet", "-o", profile, *options, "--", program], cwd=folder, env=env,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return None
    told = subprocess.run([hither, "stat", "--json", profile], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False)
    return None if told.returncode else json.loads(told.stdout)


def correlation(a, b):
    """Pearson's, of the cells above the diagonal."""
    n = max(len(a["threads"]), len(b["threads"]))
    cells = [{(i, j): events for i, j, events in of["matrix"]} for of in (a, b)]
    pairs = [[c.get((i, j), 0) for i in range(n) for j in range(i + 1, n)] for c in cells]
    means = [sum(p) / max(1, len(p)) for p in pairs]
    x, y = ([v - mean for v in p] for p, mean in zip(pairs, means))
    scale = math.sqrt(sum(v * v for v in x) * sum(v * v for v in y))
    return sum(v * w for v, w in zip(x, y)) / scale if scale else math.nan


def expected_verdicts(path):
    """Name or beginning of a name -> verdict."""
    with open(path, encoding="utf-8") as file:
        return dict(line.split(None, 1) for line in file.read().splitlines() if len(line.split()) > 1)


def verdict(told):
    if told["verdict"]["threads_undecided"]:
        return "cannot tell"
    return "yes" if told["verdict"]["thread_mapping"] else "no"


def rows(hither, program, threads, folder, profile, papers):
    alone = None
    said = next((v for name, v in papers.items() if os.path.basename(program).startswith(name)), "")
    for way, options in WAYS.items():
        name = f"{os.path.basename(program):<16}{threads:>3}  {way:<7}"
        spinning = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(LOAD if way == "load 8" else 0)]
        try:
            told = summary(hither, program, threads, folder, options, profile)
        finally:
            for process in spinning:
                process.kill()
                process.wait()
        if told is None:
            print(f"{name}  took too long, or left no profile", flush=True)
            continue
        alone = alone or told
        c, coherence = told["communication"], told["coherence"] or {"heterogeneity_residual": math.nan}
        print(f"{name}{c['heterogeneity']:>7.0f}{c['heterogeneity_residual']:>7.0f}"
              f"{coherence['heterogeneity_residual']:>7.0f}{c['amount']:>14,.0f}{c['ratio']:>9.2g}"
              f"{len(told['slices']):>7}{correlation(alone, told):>7.3f}  {verdict(told):<12}{said}", flush=True)


def main():
    given, papers = sys.argv[1:], {}
    if "--papers" in given[:-1]:
        at = given.index("--papers")
        papers = expected_verdicts(given[at + 1])
        del given[at:at + 2]
    if len(given) < 2 or not all(n.isdigit() for n in given[2:]):
        sys.exit(__doc__)
    hither, folder = os.path.abspath(given[0]), os.path.abspath(given[1])
    counts = [int(n) for n in given[2:]] or [4, 8, 16]
    print(f"{'program':<16}{'T':>3}  {'traced':<7}{'C_H':>7}{'resid':>7}{'coher':>7}{'C_A':>14}{'R_comm':>9}{'slices':>7}{'corr':>7}"
          f"  {'threads':<12}{'papers' if papers else ''}")
    with tempfile.TemporaryDirectory(prefix="hither-communication-") as scratch:
        for program in programs_in(folder):
            for threads in counts:
                rows(hither, program, threads, folder, os.path.join(scratch, "profile.hither"), papers)


if __name__ == "__main__":
    main()
