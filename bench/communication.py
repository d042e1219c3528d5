"""Does who shares with whom depend on how a program was traced? Traces programs alone, beside a load, with
--sample and with --oracle.

    communication.py HITHER FOLDER [THREADS...]   every executable in FOLDER, run there without arguments (a
                            program, or a script that ends in `exec program arguments`), with each
                            number of threads in OMP_NUM_THREADS; by default 4, 8 and 16

Prints a row per program, number of threads and way of tracing: C_H and C_H between pairs, C_A, R_comm, slices,
the correlation of the matrix with that of the program traced alone (NaN where all cells are alike), and the
verdict on threads. The load is eight processes that spin. The oracle calls a function at each access; where it
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


def verdict(told):
    if told["verdict"]["threads_undecided"]:
        return "cannot tell"
    return "yes" if told["verdict"]["thread_mapping"] else "no"


def rows(hither, program, threads, folder, profile):
    alone = None
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
        c = told["communication"]
        print(f"{name}{c['heterogeneity']:>7.0f}{c['heterogeneity_pairs']:>7.0f}{c['amount']:>14,.0f}{c['ratio']:>9.2g}"
              f"{len(told['slices']):>7}{correlation(alone, told):>7.3f}  {verdict(told)}", flush=True)


def main():
    if len(sys.argv) < 3 or not all(n.isdigit() for n in sys.argv[3:]):
        sys.exit(__doc__)
    hither, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    counts = [int(n) for n in sys.argv[3:]] or [4, 8, 16]
    print(f"{'program':<16}{'T':>3}  {'traced':<7}{'C_H':>7}{'pairs':>7}{'C_A':>14}{'R_comm':>9}{'slices':>7}{'corr':>7}"
          "  threads")
    with tempfile.TemporaryDirectory(prefix="hither-communication-") as scratch:
        for program in programs_in(folder):
            for threads in counts:
                rows(hither, program, threads, folder, os.path.join(scratch, "profile.hither"))


if __name__ == "__main__":
    main()
