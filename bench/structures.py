"""Are accesses on the right structure, and are its name and the headline right? Traces programs as
usual and with --oracle, which looks the address of each access up, and compares the structures.

    structures.py HITHER FOLDER    every executable in FOLDER, run there without arguments: a program,
                            or a script that ends in `exec program arguments`

Prints a row per program. Of its structures with more than 1 % of the accesses: those within 5 % of
the oracle's count (right) and the others (wrong), those that the oracle does not have (invented),
those that no line of a source says anything about (unnamed). Then whether the headline, the first
finding, is true, and the headline itself. A program that spins does so more or less often from run
to run: its rows differ though nothing is wrong.

What somebody has read in the source stands in PROGRAM.expected beside the program:

    structure colidx        a structure of this name has more than 1 % of the accesses
    headline caches         the headline contains these words

Structures that are expected and not found are listed below the row; without a line on the
headline the column says `-`."""
import json
import os
import subprocess
import sys
import tempfile

from measure import programs_in

SMALL, OFF = 0.01, 0.05


def shares(hither, program, folder, options, out):
    """Share of the accesses by structure, and which have no source; stacks are one, since waiting
    is on them."""
    command = [hither, "trace", "--quiet", "-o", out, *options, "--", program]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    told = subprocess.run([hither, "stat", "--json", "-n", "100000", out], capture_output=True, text=True, check=False)
    if told.returncode:
        return None
    stat = json.loads(told.stdout)
    total = sum(t["reads"] + t["writes"] for t in stat["threads"]) or 1
    sums, unnamed = {}, set()
    for s in stat["structures"]:
        key = ("stacks", "") if s["kind"] == "stack" else (s["name"], f"{s['file']}:{s['line']}")
        sums[key] = sums.get(key, 0) + (s["reads"] + s["writes"]) / total
        if s["kind"] != "stack" and not s["file"] and not s["name"].startswith("constants of "):
            unnamed.add(key)
    return sums, unnamed


def headline(hither, profile):
    report = subprocess.run([hither, "report", "--json", profile], capture_output=True, text=True, check=False)
    try:
        findings = json.loads(report.stdout)["findings"]
    except (ValueError, KeyError):
        return ""
    return findings[0]["title"] if findings else ""


def expected(program):
    """What PROGRAM.expected says: names of structures, and words of the headline or None."""
    names, words = [], None
    try:
        with open(program + ".expected", encoding="utf-8") as file:
            lines = [line.split(None, 1) for line in file if line.strip() and not line.startswith("#")]
    except FileNotFoundError:
        return names, words
    for line in lines:
        kind, text = line[0], line[-1].strip()
        if len(line) < 2 or kind not in ("structure", "headline"):
            sys.exit(f"{program}.expected: `{' '.join(line)}` is not `structure NAME` or `headline WORDS`")
        if kind == "structure":
            names.append(text)
        else:
            words = text
    return names, words


def row(hither, program, folder, scratch):
    name = os.path.basename(program)
    names, words = expected(program)
    both = []
    for options in [], ["--oracle"]:
        out = os.path.join(scratch, f"{name}-{len(both)}.hither")
        both.append(shares(hither, program, folder, options, out))
    if None in both:
        return f"{name:<16} could not be traced"
    (fast, unnamed), (oracle, _) = both
    large = [n for n in set(fast) | set(oracle) if max(fast.get(n, 0), oracle.get(n, 0)) > SMALL]
    right = [n for n in large if abs(fast.get(n, 0) - oracle.get(n, 0)) <= OFF * oracle.get(n, 0)]
    invented = [n for n in large if oracle.get(n, 0) == 0]
    counts = len(large), len(right), len(large) - len(right), len(invented), len(unnamed & set(large))
    first = headline(hither, os.path.join(scratch, f"{name}-0.hither"))
    true = "-" if words is None else "true" if words in first else "false"
    missing = [n for n in names if n not in {key[0] for key in large}]
    told = [f"{name:<16}" + "".join(f"{n:>9}" for n in counts) + f"{true:>10}  {first}"]
    return "\n".join(told + [f"{'':<16} no structure {n}" for n in missing])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    hither, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    columns = "> 1 %", "right", "wrong", "invented", "unnamed"
    print(f"{'program':<16}" + "".join(f"{c:>9}" for c in columns) + f"{'headline':>10}  first finding")
    with tempfile.TemporaryDirectory() as scratch:
        for program in programs_in(folder):
            print(row(hither, program, folder, scratch), flush=True)


if __name__ == "__main__":
    main()
