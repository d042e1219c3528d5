"""Are accesses on the right source line? Traces programs as usual and with --oracle, which looks at each
access, and compares where the accesses of the run are.

    lines.py HITHER FOLDER  every executable in FOLDER, run there without arguments: a program,
                            or a script that ends in `exec program arguments`

Prints a row per program: the share of its accesses that is on another line than the oracle has it on, and in
another function, medians of three runs; then by how much two runs of the oracle differ, which is no fault of
the samples: programs that spin do so more or less often from run to run (OMP_WAIT_POLICY=passive helps)."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

from measure import programs_in

RUNS = 3


def shares(hither, program, folder, options, out):
    """Share of the accesses by line, and by function."""
    command = [hither, "trace", "--quiet", "-o", out, *options, "--", program]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    told = subprocess.run([hither, "stat", "--json", "-n", "100000", out], capture_output=True, text=True, check=True)
    found = json.loads(told.stdout)["lines"]
    total = sum(line["reads"] + line["writes"] for line in found) or 1
    by_line, by_function = {}, {}
    for line in found:
        share = (line["reads"] + line["writes"]) / total
        key = (line["file"], line["function"], line["line"])
        by_line[key] = by_line.get(key, 0) + share
        by_function[key[:2]] = by_function.get(key[:2], 0) + share
    return by_line, by_function


def elsewhere(one, other):
    """The share that one has elsewhere than the other."""
    return sum(abs(one.get(key, 0) - other.get(key, 0)) for key in one.keys() | other.keys()) / 2


def main():
    hither, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    print(f"{'program':<24} {'lines':>8} {'functions':>10} {'oracle':>8}")
    for program in programs_in(folder):
        with tempfile.TemporaryDirectory() as scratch:
            def run(number, *options):
                out = os.path.join(scratch, f"{number}.hither")
                return shares(hither, program, folder, options, out)

            exact, again = run("exact", "--oracle"), run("again", "--oracle")
            runs = [run(number) for number in range(RUNS)]
            off = [statistics.median(elsewhere(r[at], exact[at]) for r in runs) for at in (0, 1)]
            print(f"{os.path.basename(program):<24} {off[0]:>8.3f} {off[1]:>10.3f} {elsewhere(exact[0], again[0]):>8.3f}", flush=True)


if __name__ == "__main__":
    main()
