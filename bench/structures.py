"""Are accesses on the right structure? Traces programs as usual and with --oracle, which looks
the address of each access up, and compares the structures.

    structures.py HITHER FOLDER    every executable in FOLDER, run there without arguments: a program,
                            or a script that ends in `exec program arguments`

Prints a row per program: its structures with more than 1 % of the accesses; of them within 5 %
of the oracle's count; those that the oracle does not have; the share of all accesses that no
structure has; and the first finding, to be held against the source. A program that spins does
so more or less often from run to run: its rows differ though nothing is wrong."""
import json
import os
import subprocess
import sys
import tempfile

SMALL, OFF = 0.01, 0.05


def shares(hither, program, folder, options, out):
    """Share of the accesses by structure; stacks are one, since waiting is on them."""
    command = [hither, "trace", "--quiet", "-o", out, *options, "--", program]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    told = subprocess.run([hither, "stat", "--json", "-n", "100000", out], capture_output=True, text=True, check=False)
    if told.returncode:
        return None
    stat = json.loads(told.stdout)
    total = sum(t["reads"] + t["writes"] for t in stat["threads"]) or 1
    sums = {}
    for s in stat["structures"]:
        name = "stacks" if s["kind"] == "stack" else f"{s['name']} {s['file']}:{s['line']}"
        sums[name] = sums.get(name, 0) + (s["reads"] + s["writes"]) / total
    return sums


def headline(hither, profile):
    report = subprocess.run([hither, "report", "--json", profile], capture_output=True, text=True, check=False)
    try:
        findings = json.loads(report.stdout)["findings"]
    except (ValueError, KeyError):
        return ""
    return findings[0]["title"] if findings else ""


def row(hither, program, folder, scratch):
    name = os.path.basename(program)
    both = []
    for options in [], ["--oracle"]:
        out = os.path.join(scratch, f"{name}-{len(both)}.hither")
        both.append(shares(hither, program, folder, options, out))
    if None in both:
        return f"{name:<16} could not be traced"
    fast, oracle = both
    large = [n for n in set(fast) | set(oracle) if max(fast.get(n, 0), oracle.get(n, 0)) > SMALL]
    right = [n for n in large if abs(fast.get(n, 0) - oracle.get(n, 0)) <= OFF * oracle.get(n, 0)]
    invented = [n for n in large if oracle.get(n, 0) == 0]
    first = headline(hither, os.path.join(scratch, f"{name}-0.hither"))
    return f"{name:<16}{len(large):>7}{len(right):>7}{len(invented):>9}{100 * (1 - sum(fast.values())):>8.1f} %  {first}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    hither, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    programs = sorted(e.path for e in os.scandir(folder) if e.is_file() and os.access(e.path, os.X_OK))
    if not programs:
        sys.exit(f"{folder} has no executables: put programs there, or scripts that start them")
    print(f"{'program':<16}{'> 1 %':>7}{'right':>7}{'invented':>9}{'unnamed':>10}  first finding")
    with tempfile.TemporaryDirectory() as scratch:
        for program in programs:
            print(row(hither, program, folder, scratch), flush=True)


if __name__ == "__main__":
    main()
