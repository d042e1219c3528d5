#!/usr/bin/env python3
"""What tracing costs: programs run natively and under hither, valgrind and qemu, in turn.

Every round runs a program once with each tool, one after the other, so that a change of
the machine's speed meets all of them; ratios are of medians over the rounds. The tools
of others are slow and serve for comparison only: they run in the first round alone, and
not for longer than FOREIGN_LIMIT times native.

From hither's CPU time that of its collector, which runs outside the program, is
subtracted; it is shown beside it, and the column `all` leaves it in.
"""
import argparse
import json
import os
import shutil
import statistics
import sys
from pathlib import Path

from measure import OURS, TOOLS, failure, machine, run_once

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
# Targets: CPU time against native, median over programs, by threads.
FULL_LIMIT = {2: 5.0, 8: 5.0, 64: 7.0}
SAMPLE_LIMIT = 1.8
WORST_LIMIT = 10.0
MEMORY_SHARE, MEMORY_FIXED = 0.35, 64 * MIB  # of the program's own, and on top
COLLECTOR_LIMIT = 0.05  # of a core
PROFILE_LIMIT = 80e6 / 600  # bytes per second of run
# Arguments of the kernels with --quick: a second or so each; ratios then include start-up.
QUICK = {
    "cg": ["20000", "40", "5"], "is": ["20", "60"], "mg": ["6", "100"], "ft": ["6", "60"],
    "sp": ["48", "60"], "lu": ["48", "30"], "ep": ["25"],
}
FOREIGN_LIMIT = 50  # how many times native's wall time the tools of others get


def middle(results, key):
    values = [r[key] for r in results if key in r and not r["timed_out"] and failure(r) is None]
    return statistics.median(values) if values else None


def summarise(runs, native):
    """Medians of one tool on one program, against native; None where nothing ran."""
    cpu, own = middle(runs, "cpu"), middle(native, "cpu")
    if any(r["timed_out"] for r in runs):
        return {"timed_out": True, "ratio": float("inf"), "all": float("inf")}
    if cpu is None or not own:
        return None
    collector, duration = middle(runs, "collector"), middle(runs, "duration")
    row = {"cpu": cpu, "all": cpu / own, "ratio": (cpu - (collector or 0)) / own, "wall": middle(runs, "wall"),
           "memory": middle(runs, "memory")}
    if collector is not None:
        extra = row["memory"] - middle(native, "memory")
        limit = MEMORY_SHARE * middle(native, "memory") + MEMORY_FIXED
        row.update(collector=collector / duration if duration else 0.0, extra=extra, extra_limit=limit,
                   profile=middle(runs, "profile_bytes"),
                   profile_rate=middle(runs, "profile_bytes") / max(duration, 1e-3))
    return row


def cell(row, key, form="{:.2f}", scale=1.0):
    if row is None:
        return "-"
    if row.get("timed_out"):
        return "too slow" if key == "ratio" else "-"
    return "-" if row.get(key) is None else form.format(row[key] / scale)


def print_table(threads, tools, table):
    """One line per program, for one number of threads."""
    print(f"\n{threads} threads: CPU time against native; memory in MiB; collector in % of a core; profile in MB")
    head = ["program", "native s"]
    for tool in tools[1:]:
        head += [tool, "all"] if tool in OURS else [tool]
    head += ["memory", "extra", "limit", "collector", "profile"]
    lines = [head]
    for program, rows in table.items():
        full = rows.get("hither") or rows.get("hither-sample")
        line = [program, cell(rows["native"], "cpu")]
        for tool in tools[1:]:
            line += [cell(rows[tool], "ratio")] + ([cell(rows[tool], "all")] if tool in OURS else [])
        line += [cell(rows["native"], "memory", "{:.0f}", MIB), cell(full, "extra", "{:.0f}", MIB),
                 cell(full, "extra_limit", "{:.0f}", MIB), cell(full, "collector", "{:.1f}", 0.01),
                 cell(full, "profile", "{:.2f}", 1e6)]
        lines.append(line)
    lines.append(["median", ""])
    for tool in tools[1:]:
        for key in ("ratio", "all") if tool in OURS else ("ratio",):
            values = [rows[tool][key] for rows in table.values() if rows[tool] and key in rows[tool]]
            lines[-1].append("{:.2f}".format(statistics.median(values)) if values else "-")
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(head))]
    for line in lines:
        print("  ".join(text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in enumerate(zip(line, widths))))


def judgements(threads, table):
    """(what, measured, limit, unit) for each target that applies to this number of threads."""
    found = []
    for tool, limit in (("hither", FULL_LIMIT.get(threads)), ("hither-sample", SAMPLE_LIMIT)):
        rows = [r[tool] for r in table.values() if r.get(tool) and "collector" in r[tool]]
        if not rows:
            continue
        # a program that fails under the tool counts as infinitely slow
        ratios = [(r[tool] or {}).get("ratio", float("inf")) for r in table.values()]
        if limit:
            found.append((f"{tool}, median CPU", statistics.median(ratios), limit, "x"))
        found += [
            (f"{tool}, slowest program", max(ratios), WORST_LIMIT, "x"),
            (f"{tool}, collector", 100 * max(r["collector"] for r in rows), 100 * COLLECTOR_LIMIT, "% of a core"),
            (f"{tool}, profile", max(r["profile_rate"] for r in rows) * 600 / 1e6, PROFILE_LIMIT * 600 / 1e6,
             "MB in ten minutes")]
        if threads == 8:
            used = max(r["extra"] / r["extra_limit"] for r in rows)
            found.append((f"{tool}, memory", 100 * used, 100, "% of what is allowed (35 % + 64 MiB)"))
    return found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hither", default=str(ROOT / "target/release/hither"), help="program to measure")
    parser.add_argument("--kernels", type=Path, default=ROOT / "target/kernels", help="folder of our kernels")
    parser.add_argument("--programs", type=Path, help="folder of further binaries, run without arguments")
    parser.add_argument("--only", help="names of programs, by commas")
    parser.add_argument("--threads", default="2,8,64")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tools", default="native,hither,hither-sample,valgrind,qemu", help="of " + ",".join(TOOLS))
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one run")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--json", type=Path, help="file for every single run and the tables")
    return parser.parse_args()


def refuse(sentence):
    print(f"bench/trace.py: {sentence}", file=sys.stderr)
    sys.exit(2)


def choose(options):
    """Tools that are there, and programs as command lines."""
    tools = list(dict.fromkeys(["native"] + options.tools.split(",")))
    for tool in tools:
        if tool not in TOOLS:
            refuse(f"--tools: `{tool}` is none of {', '.join(TOOLS)}")
    for tool in [t for t in tools if TOOLS[t]]:
        name = TOOLS[tool][0].format(hither=options.hither, out="")
        if shutil.which(name) is None:
            if tool in OURS:
                refuse(f"--hither: {name} cannot be run; build it, or name another one")
            print(f"{name} is not installed: no column `{tool}`")
            tools.remove(tool)
    folders = [options.kernels] + ([options.programs] if options.programs else [])
    files = [f.resolve() for folder in folders for f in sorted(folder.glob("*"))
             if f.is_file() and os.access(f, os.X_OK)]
    wanted = options.only.split(",") if options.only else None
    programs = [[str(f)] + (QUICK.get(f.name, []) if options.quick and f.parent == options.kernels.resolve() else [])
                for f in files if wanted is None or f.name in wanted]
    if not programs:
        refuse(f"no programs in {', '.join(map(str, folders))}: `make -C bench/kernels` builds ours")
    return tools, programs


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main():
    options = arguments()
    options.hither = os.path.abspath(options.hither) if "/" in options.hither else options.hither
    tools, programs = choose(options)
    here, runs, report, bad = machine(), [], [], set()
    print("{cpu}, {processors} processors, {memory_gib} GiB, Linux {kernel}, load {load:.1f}, {date}".format(**here))
    for threads in map(int, options.threads.split(",")):
        table = {}
        for program in programs:
            name, mine = Path(program[0]).name, []
            for turn in range(options.repeat):
                for tool in tools:
                    if turn and tool not in OURS + ("native",):
                        continue
                    progress(f"{name}, {threads} threads, {tool}, {turn + 1}/{options.repeat}")
                    limit = options.timeout
                    if tool not in OURS and tool != "native":
                        limit = min(limit, 5 + FOREIGN_LIMIT * mine[0]["wall"])
                    mine.append(run_once(tool, program, threads, options.hither, limit))
                    if failure(mine[-1]):
                        bad.add(failure(mine[-1]))
            native = [r for r in mine if r["tool"] == "native"]
            table[name] = {t: summarise([r for r in mine if r["tool"] == t], native) for t in tools}
            runs += mine
        progress("")
        print_table(threads, tools, table)
        report.append({"threads": threads, "programs": table, "targets": judgements(threads, table)})
    print("\nTargets")
    for part in report:
        for what, measured, limit, unit in part["targets"]:
            mark = "met   " if measured <= limit else "MISSED"
            print(f"  {mark}  {part['threads']:3} threads: {what}: {measured:.2f} of at most {limit:.1f} {unit}")
    for sentence in sorted(bad):
        print(f"failed: {sentence}")
    if options.json:
        study = {"machine": here, "quick": options.quick, "tables": report, "runs": runs}
        options.json.write_text(json.dumps(study, indent=1))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
