"""Are fetches what a private cache misses? Traces programs and plays what was recorded through the
simulator's private caches.

    fetches.py HITHER FOLDER [THREADS...]   every executable in FOLDER, run there without arguments (a
                            program, or a script that ends in `exec program arguments`), with each
                            number of threads in OMP_NUM_THREADS; by default 1 and 2

One run gives both figures: `hither trace --full` counts fetches and records every access, which
takes about two bytes of disk each. `hither sim` plays the accesses on two processors of 96 cores, each
with an L2 of 1 MiB, the cache that fetches stand for, and without prefetchers.

Prints a row per program and number of threads: accesses, fetches, misses of the private caches, fetches
per miss, and of the misses those of capacity (the line had been there and was evicted, what else
differs from cache to cache) and of coherence (another thread had written it). `error` is the standard
error of fetches as one line in 64 is followed: 8 / sqrt(fetches). Rows whose ratio is farther than
10 % from 1 are marked, and counted in the exit status."""
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import programs_in

TOPOLOGY = "epyc-9654x2-nps4"
MACHINE_FILE = Path(__file__).resolve().parent.parent / "testdata/machines/epyc-9654x2.toml"
MOST_ACCESSES = "4000M"  # recorded and simulated; bytes of a recording as well
LIMIT = 600  # seconds that one step may take
OFF = 0.1


def run(command, **options):
    """Standard output, or None where it failed or took too long."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT, check=False,
                              **options)
    except subprocess.TimeoutExpired:
        return None
    return None if done.returncode else done.stdout


def private_misses(hither, profile, machine):
    """Misses of the L2 by kind, and how many accesses were played."""
    told = run([hither, "sim", profile, "--topology", TOPOLOGY, "--machine", machine, "--policy", "scatter",
                "--accesses", MOST_ACCESSES, "--json"])
    if told is None:
        return None
    level = json.loads(told)["comparisons"][0]["placements"][0]["amounts"]["levels"][1]
    return {kind: level[kind] for kind in ("cold", "capacity", "invalidation", "replication")}


def row(hither, program, threads, folder, scratch):
    name = f"{os.path.basename(program):<16}{threads:>3}"
    profile = os.path.join(scratch, "profile.hither")
    shutil.rmtree(profile, ignore_errors=True)
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive", OMP_DYNAMIC="false")
    # The program's own status is not ours to judge.
    subprocess.run([hither, "trace", "--quiet", "--full", "--max-size", MOST_ACCESSES, "-o", profile, "--",
                    program], cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT,
                   check=False)
    told = run([hither, "stat", "--json", profile])
    misses = told and private_misses(hither, profile, os.path.join(scratch, "machine.toml"))
    if not misses:
        return f"{name}  could not be traced and simulated", True
    summary = json.loads(told)["run"]
    fetches, lines = summary["fetches"], sum(misses.values())
    ratio = fetches / lines if lines else math.inf
    coherence = misses["invalidation"] + misses["replication"]
    missed = abs(ratio - 1) > OFF
    return (f"{name}{summary['reads'] + summary['writes']:>14,}{fetches:>12,}{lines:>12,.0f}{ratio:>7.2f}"
            f"{8 / math.sqrt(max(fetches, 1)):>7.1%}{misses['capacity']:>12,.0f}{coherence:>11,.0f}"
            f"  {'OFF' if missed else ''}").rstrip(), missed


def main():
    if len(sys.argv) < 3 or not all(n.isdigit() for n in sys.argv[3:]):
        sys.exit(__doc__)
    hither, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    counts = [int(n) for n in sys.argv[3:]] or [1, 2]
    print(f"{'program':<16}{'T':>3}{'accesses':>14}{'fetches':>12}{'misses':>12}{'ratio':>7}{'error':>7}"
          f"{'capacity':>12}{'coherence':>11}")
    off = 0
    with tempfile.TemporaryDirectory(prefix="hither-fetches-") as scratch:
        machine = re.sub(r"(?m)^prefetch = .*\n", "", MACHINE_FILE.read_text(encoding="utf-8"))
        Path(scratch, "machine.toml").write_text(machine, encoding="utf-8")
        for program in programs_in(folder):
            for threads in counts:
                try:
                    text, missed = row(hither, program, threads, folder, scratch)
                except subprocess.TimeoutExpired:
                    text, missed = f"{os.path.basename(program):<16}{threads:>3}  took too long", True
                print(text, flush=True)
                off += missed
    sys.exit(1 if off else 0)


if __name__ == "__main__":
    main()
