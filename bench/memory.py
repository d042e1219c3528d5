"""How much memory does tracing take? Runs programs alone and under `hither trace`, each in a
control group of its own, and compares the peaks.

    memory.py HITHER FOLDER     every executable in FOLDER, run there without arguments: a program,
                                or a script that ends in `exec program arguments`

Prints a row per program: the peak alone, the peak traced, the difference, and what may be added:
35 % of the program's own peak and 64 MiB. A control group counts all memory of its processes,
of the kernel for them, and of files that they read or write first: program, tracer, hither, the
naming at the end and the profile. Each run is done once before, so that files are read already.

Needs root."""
import os
import subprocess
import sys
import tempfile

from measure import programs_in

MIB = 1 << 20
SHARE, FIXED = 0.35, 64 * MIB
ROOT = "/sys/fs/cgroup"


def memory_groups():
    """The folder in which groups can be made, and the file of a group that holds its peak."""
    if os.path.isdir(f"{ROOT}/memory"):  # version 1 of control groups
        return f"{ROOT}/memory", "memory.max_usage_in_bytes"
    return ROOT, "memory.peak"


class Group:
    """A control group while it is needed."""

    def __init__(self):
        parent, self.peak_file = memory_groups()
        self.path = tempfile.mkdtemp(prefix="hither-memory-", dir=parent)
        if not os.path.exists(os.path.join(self.path, self.peak_file)):
            self.remove()
            raise OSError(f"{parent} has no memory controller with a {self.peak_file}")

    def enter(self):
        with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="utf-8") as members:
            members.write("0")

    def peak(self):
        with open(os.path.join(self.path, self.peak_file), encoding="utf-8") as peak:
            return int(peak.read())

    def remove(self):
        os.rmdir(self.path)


def peak_of(command, folder):
    """Peak in bytes of a command that has run once before, or None if it fails."""
    for group in (None, Group()):
        done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              preexec_fn=group and group.enter, check=False)
    try:
        return None if done.returncode else group.peak()
    finally:
        group.remove()


def row(hither, program, folder):
    name = os.path.basename(program)
    with tempfile.TemporaryDirectory() as scratch:
        profile = os.path.join(scratch, "profile.hither")
        alone = peak_of([program], folder)
        traced = peak_of([hither, "trace", "--quiet", "-o", profile, "--", program], folder)
    if alone is None or traced is None:
        return f"{name:<16}{'failed alone' if alone is None else 'failed under hither trace'}", True
    extra, limit = traced - alone, SHARE * alone + FIXED
    columns = "".join(f"{bytes_ / MIB:>9.1f}" for bytes_ in (alone, traced, extra, limit))
    return f"{name:<16}{columns}   {'met' if extra <= limit else 'MISSED'}", extra > limit


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    hither, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    print(f"{'MiB':<16}{'alone':>9}{'traced':>9}{'extra':>9}{'limit':>9}")
    missed = 0
    for program in programs_in(folder):
        try:
            text, miss = row(hither, program, folder)
        except OSError as error:
            sys.exit(f"cannot measure in a control group: {error}; run this as root")
        print(text, flush=True)
        missed += miss
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
