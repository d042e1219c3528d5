#!/usr/bin/env python3
"""How fast accesses are simulated: ours, cachegrind and pycachesim on the same accesses.

Programs are recorded with 64 threads (`hither trace --bursts`), and each stream of
bench/sim/streams.rs has as many; both are written to a file as their threads take turns. Ours
plays them on 4 x X7550, coherent caches of 32 cores, without timing and with it. Of the
others, which know one core, cachegrind sees a program that makes the accesses of the file
(bench/sim/touch.c), and pycachesim is handed them (bench/sim/python.py).

Every round runs each tool once, one after the other; figures are of medians over the rounds,
in processor time. From cachegrind's the same program's under valgrind without a tool is
subtracted; what it counts includes a read of the list for each access, in its favour.
"""
import argparse
import array
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from measure import machine

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "bench/sim"
PROGRAMS = ("ondes", "stencil2d", "is")
STREAMS = ("resident", "stencil", "stream", "shared", "random")
MIB = 1 << 20
WRITE = 1 << 63
PYTHON_PACKAGE = "pycachesim==0.3.1"
# Targets: M accesses/s on one core, MiB beyond what the caches model.
LIMITS = {"untimed": 15.0, "timed": 8.0}
MEMORY_LIMIT = 64
CACHEGRIND = ["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file={out}", "--I1=32768,8,64",
              "--D1=32768,8,64", "--LL=16777216,16,64"]


def refuse(sentence):
    print(f"bench/sim.py: {sentence}", file=sys.stderr)
    sys.exit(2)


def timed(command, **more):
    """Runs it; its output, processor seconds and most memory held, or the sentence of its failure."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    output = process.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        refuse(f"{' '.join(map(str, command))} ended with {process.returncode}: {output.strip()[-300:]}")
    return output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def build_ours():
    """The benchmark's executable."""
    cargo = os.environ.get("CARGO", "cargo")
    build = subprocess.run(
        [cargo, "bench", "--package", "hither-model", "--bench", "sim", "--no-run", "--message-format=json"],
        cwd=ROOT, stdout=subprocess.PIPE, check=False)
    if build.returncode != 0:
        refuse("the benchmark does not build")
    found = [m["executable"] for m in map(json.loads, build.stdout.splitlines())
             if m.get("executable") and m["target"]["name"] == "sim"]
    return found[-1]


def record(program, folder):
    """The profile of a program's 64 threads."""
    profile = folder / f"{program}.hither"
    timed([ROOT / "target/release/hither", "trace", "-q", "--bursts", "-o", profile, "--",
           ROOT / "target/workloads" / program], env=dict(os.environ, OMP_NUM_THREADS="64"))
    return profile


def build_touch(folder):
    """The program for cachegrind to watch; None where there is no valgrind or C compiler."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None or shutil.which("valgrind") is None:
        print("valgrind or a C compiler is not installed: no column `cachegrind`")
        return None
    program = folder / "touch"
    timed([compiler, "-O2", "-o", program, SOURCES / "touch.c"])
    return program


def build_python(folder):
    """A Python that has pycachesim; None where it cannot be installed."""
    python = folder / "venv/bin/python"
    has = [python, "-c", "import cachesim"]
    if python.exists() and subprocess.run(has, capture_output=True, check=False).returncode == 0:
        return python
    steps = [[sys.executable, "-m", "venv", folder / "venv"],
             [python, "-m", "pip", "install", "--quiet", PYTHON_PACKAGE]]
    for step in steps:
        if subprocess.run(step, capture_output=True, check=False).returncode != 0:
            print(f"{PYTHON_PACKAGE} cannot be installed: no column `pycachesim`")
            return None
    return python


def span(file):
    """The lowest address of a list, and the bytes from there to the end of the highest.

    Read in parts: what this process holds counts as held by those it starts, too."""
    low, high = WRITE, 0
    with open(file, "rb") as source:
        while part := source.read(1 << 19):
            addresses = [a & ~WRITE for a in array.array("Q", part)]
            low, high = min(low, *addresses), max(high, *addresses)
    return low & ~4095, high + 8 - (low & ~4095)


def run_ours(program, stream, accesses):
    output, _, _ = timed([program, "--json", "--brief", "--accesses", accesses, stream])
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [{"tool": r["mode"], "rate": r["accesses"] / r["seconds"], "memory": r["rss"]} for r in rows]


def run_cachegrind(program, file, where, folder):
    """Data accesses that cachegrind counted, by the time that it took more than valgrind alone."""
    out = folder / "cachegrind.out"
    options = [word.format(out=out) for word in CACHEGRIND]
    command = [program, file, *map(hex, where)]
    _, alone, _ = timed(["valgrind", "-q", "--tool=none", *command])
    _, watched, memory = timed(["valgrind", "-q", *options, *command])
    lines = dict(line.split(":", 1) for line in out.read_text().splitlines() if ": " in line)
    counts = dict(zip(lines["events"].split(), map(int, lines["summary"].split())))
    return {"tool": "cachegrind", "rate": (counts["Dr"] + counts["Dw"]) / max(watched - alone, 1e-3), "memory": memory}


def run_python(python, file):
    output, _, memory = timed([python, SOURCES / "python.py", file])
    row = json.loads(output.splitlines()[-1])
    return {"tool": "pycachesim", "rate": row["accesses"] / row["seconds"], "memory": memory}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    everything = ",".join(PROGRAMS + STREAMS)
    parser.add_argument("--streams", default=everything, help=f"programs and streams of {everything}")
    parser.add_argument("--accesses", type=int, default=8_000_000, help="of each; ours plays whole windows of programs")
    parser.add_argument("--python-accesses", type=int, default=1_000_000, help="the first of them, for pycachesim")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--scaling", action="store_true", help="also what more accesses and more caches cost")
    parser.add_argument("--json", type=Path, help="file for every single run")
    return parser.parse_args()


def measure(stream, options, tools, folder):
    """Every run of one stream."""
    ours, touch, python = tools
    file, start = folder / "accesses", folder / "first-accesses"
    name, stream = stream, record(stream, folder) if stream in PROGRAMS else stream
    timed([ours, "--write", stream, options.accesses, file])
    where = span(file)
    with open(file, "rb") as source:
        start.write_bytes(source.read(8 * options.python_accesses))
    runs = []
    for turn in range(options.repeat):
        if sys.stderr.isatty():
            print(f"\r\033[K{name}, {turn + 1}/{options.repeat}", end="", file=sys.stderr, flush=True)
        runs += run_ours(ours, stream, options.accesses)
        if touch:
            runs.append(run_cachegrind(touch, file, where, folder))
        if python:
            runs.append(run_python(python, start))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    file.unlink()
    start.unlink()
    return [dict(run, stream=name) for run in runs]


def table(runs, key, scale, pick):
    """By stream and tool: what `pick` makes of a figure of the runs."""
    cells = {}
    for run in runs:
        cells.setdefault(run["stream"], {}).setdefault(run["tool"], []).append(run[key] / scale)
    return {stream: {tool: pick(values) for tool, values in row.items()} for stream, row in cells.items()}


def print_speeds(speeds):
    tools = list(dict.fromkeys(tool for row in speeds.values() for tool in row))
    others = [t for t in tools if t not in LIMITS]
    head = [f"{'M accesses/s':12}"] + [f"{t:>10}" for t in tools] + [f"{m} / {o}".rjust(20) for o in others for m in LIMITS]
    print("\n" + "  ".join(head))
    for stream, row in speeds.items():
        cells = [f"{stream:12}"] + [f"{row[t]:10.2f}" for t in tools]
        cells += [f"{row[m] / row[o]:20.1f}" for o in others for m in LIMITS]
        print("  ".join(cells))


def print_memory(memory):
    tools = list(dict.fromkeys(tool for row in memory.values() for tool in row))
    print("\n" + "  ".join([f"{'most MiB':12}"] + [f"{t:>10}" for t in tools]))
    for stream, row in memory.items():
        print("  ".join([f"{stream:12}"] + [f"{row[t]:10.0f}" for t in tools]))


def print_targets(speeds, memory):
    print("\nTargets")
    for stream, row in speeds.items():
        for mode, limit in LIMITS.items():
            mark = "met   " if row[mode] >= limit else "MISSED"
            print(f"  {mark}  {stream}, {mode}: {row[mode]:.1f} of at least {limit:.0f} M accesses/s")
    most = max(row[mode] for row in memory.values() for mode in LIMITS)
    mark = "met   " if most <= MEMORY_LIMIT else "MISSED"
    print(f"  {mark}  memory: {most:.0f} of at most {MEMORY_LIMIT} MiB, what the caches model included")


def main():
    options = arguments()
    streams = options.streams.split(",")
    for stream in streams:
        if stream not in PROGRAMS + STREAMS:
            refuse(f"--streams: `{stream}` is none of {', '.join(PROGRAMS + STREAMS)}")
    if options.accesses < options.python_accesses or options.python_accesses < 64 or options.repeat < 1:
        refuse("--accesses must be at least --python-accesses, that at least 64, and --repeat at least 1")
    folder = ROOT / "target/bench-sim"
    folder.mkdir(parents=True, exist_ok=True)
    tools = (build_ours(), build_touch(folder), build_python(folder))
    here = machine()
    print("{cpu}, {processors} processors, {memory_gib} GiB, Linux {kernel}, load {load:.1f}, {date}".format(**here))
    runs = [run for stream in streams for run in measure(stream, options, tools, folder)]
    speeds = table(runs, "rate", 1e6, statistics.median)
    memory = table(runs, "memory", MIB, max)
    print_speeds(speeds)
    print_memory(memory)
    print_targets(speeds, memory)
    if options.scaling:
        print()
        subprocess.run([tools[0], "--accesses", str(options.accesses), *(s for s in streams if s in STREAMS)], check=False)
    if options.json:
        options.json.write_text(json.dumps({"machine": here, "runs": runs}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
