"""Does `hither map` do harm where no policy is named? Traces programs, places them on machines that need not be
there, and has `hither sim` compare what is written with what the system does.

    harmless.py HITHER FOLDER [--machines A,B] [--threads N,N] [--seeds N] [--accesses N] [--warm-up SHARE]
                            [--profiles DIR]

Every executable in FOLDER (a program, or a script that ends in `exec program arguments`) is run there without
arguments, with each number of threads in OMP_NUM_THREADS (8), once with `hither trace --bursts` and once without
options. Both profiles are placed on each machine. Placements by either are played over the recording of the first,
in whole windows, beside the system with each of its seeds (3), the threads spread and packed, and `locality` with its
pages. A quarter of each window warms the caches (or --warm-up). DIR keeps profiles; those that are there are not
traced again.

Prints a row per program, machine and profile: seconds that `map` took, or processor time by number of processors where
that is less, what it wrote, its predicted time by that of the system with the interval of 95 % (1 where everything is
left to the system), the fastest of the others and its time, and what is wrong:
    LOSES      surely slower than the system: by more than the interval
    slower     slower by 1 % or more, within the interval
    misses     everything is left to the system, and the fastest of the others surely gains, by more than twice the interval
    stat       without a recording: `hither stat` says that there is something to gain and nothing is bound, or the reverse
    SLOW       `map` took longer than 20 s
Ends with status 1 where a row loses, disagrees with stat or is slow."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from measure import programs_in

MACHINES = "xeon-e5-2650x2,xeon-x7550x4,epyc-9654x2-nps4"
OTHERS = ("scatter", "compact", "scatter+most-access", "locality+most-access")
WAYS = {"bursts": ["--bursts"], "plain": []}
LIMIT = 20  # seconds that a placement may take
PATIENCE = 900  # seconds that one step may take


def run(command, **options):
    """Standard output; ends everything where it failed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False,
                          text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    return done.stdout


def trace(hither, program, threads, options, profile):
    """Traces a program, unless that was done before."""
    if os.path.isdir(profile):
        return
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive", OMP_DYNAMIC="false")
    # The program's own status is not ours to judge.
    subprocess.run([hither, "trace", "--quiet", "-o", profile, *options, "--", program], cwd=os.path.dirname(program),
                   env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=False)
    if not os.path.exists(os.path.join(profile, "profile.json")):
        sys.exit(f"{program} left no profile")


def write_placement(hither, profile, machine, file):
    """The default placement, None where nothing is bound; its name and how long it took."""
    start, before = time.monotonic(), os.times()
    run([hither, "map", profile, "--topology", machine, "-o", file])
    after = os.times()
    # Other work on the machine is not ours.
    worked = after.children_user + after.children_system - before.children_user - before.children_system
    took = min(time.monotonic() - start, worked / os.cpu_count())
    with open(file, encoding="utf-8") as text:
        placement = json.load(text)
    policy = placement["policy"]
    bound = any(phase["threads"] or phase["pages"] for phase in placement["phases"])
    parts = [policy["threads"], policy["data"]] if bound else ["left"]
    return (file if bound else None), "+".join(part for part in parts if part), took


def may_gain(hither, profile, machine):
    verdict = json.loads(run([hither, "stat", profile, "--topology", machine, "--json"]))["verdict"]
    return any(verdict[f"{what}_{how}"] for what, how in (("thread", "mapping"), ("data", "mapping"),
                                                          ("threads", "undecided"), ("data", "undecided")))


def compare(hither, profile, machine, files, options):
    """Times by that of the system, and halves of the intervals, of each file and of the others."""
    command = [hither, "sim", profile, "--topology", machine, "--policy", ",".join(("os",) + OTHERS), "--json",
               "--no-keep", "--quiet", "--seeds", str(options.seeds), "--accesses", options.accesses,
               "--warm-up", options.warm_up]
    for file in files:
        command += ["-p", file]
    placements = json.loads(run(command))["comparisons"][0]["placements"]

    def time_of(placement):
        ratio = placement["relative"]["time"]
        return ratio["value"], ratio["half_width"] if ratio["half_width"] is not None else float("inf")
    by_file = {p["file"]: time_of(p) for p in placements if p["file"]}
    return by_file, {p["name"]: time_of(p) for p in placements if not p["file"] and p["name"] != "os"}


def judge(written, ratio, half, best, took, agrees):
    """What is wrong with a row."""
    wrong = []
    if written and ratio - half > 1:
        wrong.append("LOSES")
    elif written and ratio >= 1.01:
        wrong.append("slower")
    if not written and 1 - best[0] > max(2 * best[1], 0.01):
        wrong.append("misses")
    if not agrees:
        wrong.append("stat")
    if took > LIMIT:
        wrong.append("SLOW")
    return wrong


def rows(hither, program, threads, machine, profiles, folder, options):
    """Prints a row for each way of tracing; how many are wrong beyond doubt."""
    made = {way: write_placement(hither, profile, machine, os.path.join(folder, f"{way}.place.json"))
            for way, profile in profiles.items()}
    files = [file for file, _, _ in made.values() if file]
    by_file, others = compare(hither, profiles["bursts"], machine, files, options)
    name, best = min(others.items(), key=lambda other: other[1][0])
    bad = 0
    for way, (file, policy, took) in made.items():
        ratio, half = by_file[file] if file else (1.0, 0.0)
        agrees = way == "bursts" or may_gain(hither, profiles[way], machine) == bool(file)
        wrong = judge(file, ratio, half, best, took, agrees)
        bad += any(word != "slower" and word != "misses" for word in wrong)
        print(f"{os.path.basename(program):<12}{threads:>3}  {machine:<18}{way:<8}{took:>5.1f}  {policy:<28}"
              f"{ratio:>6.3f} +- {half:<6.3f}{name:<22}{best[0]:>6.3f} +- {best[1]:<6.3f} {' '.join(wrong)}", flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hither", type=os.path.abspath)
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("--machines", default=MACHINES)
    parser.add_argument("--threads", default="8")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--accesses", default="24M")
    parser.add_argument("--warm-up", default="0.25")
    parser.add_argument("--profiles", type=os.path.abspath)
    options = parser.parse_args()
    print(f"{'program':<12}{'T':>3}  {'machine':<18}{'profile':<8}{'s':>5}  {'written':<28}{'time / os':<16}"
          f"{'best other':<22}{'time / os':<16} wrong")
    bad = 0
    with tempfile.TemporaryDirectory(prefix="hither-harmless-") as scratch:
        kept = options.profiles or scratch
        os.makedirs(kept, exist_ok=True)
        for program in programs_in(options.folder):
            for threads in options.threads.split(","):
                profiles = {way: os.path.join(kept, f"{os.path.basename(program)}-{threads}-{way}.hither") for way in WAYS}
                for way, profile in profiles.items():
                    trace(options.hither, program, threads, WAYS[way], profile)
                for machine in options.machines.split(","):
                    bad += rows(options.hither, program, threads, machine, profiles, scratch, options)
                if not options.profiles:
                    for profile in profiles.values():
                        shutil.rmtree(profile)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
