"""One run of a program under a tool: CPU time, wall time, memory, exit status.

CPU time is that of the process and all its descendants. Memory is the largest sum, over
the processes of the run, of anonymous and shared memory, each shared page counted once,
looked at 10 times a second.
"""
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

OURS = ("hither", "hither-sample", "hither-bursts")
TOOLS = {  # name -> command in front of the program; {hither}, {out} are filled in
    "native": [],
    "hither": ["{hither}", "trace", "-q", "-o", "{out}", "--"],
    "hither-sample": ["{hither}", "trace", "--sample", "-q", "-o", "{out}", "--"],
    "hither-bursts": ["{hither}", "trace", "--bursts", "10ms/100s", "-q", "-o", "{out}", "--"],
    "valgrind": ["valgrind", "-q", "--tool=none"],
    "callgrind": ["valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=/dev/null"],
    "lackey": ["valgrind", "-q", "--tool=lackey", "--trace-mem=yes", "--log-file=/dev/null"],
    "qemu": ["qemu-x86_64"],
}


def programs_in(folder):
    """Paths of the executables in a folder, in order: programs, or scripts that start them."""
    entries = (e for e in os.scandir(folder) if e.is_file() and os.access(e.path, os.X_OK))
    programs = sorted(e.path for e in entries)
    if not programs:
        sys.exit(f"{folder} has no executables: put programs there, or scripts that start them")
    return programs


def session_members(session):
    """Process ids of a session."""
    members = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path("/proc", entry, "stat").read_text()
        except OSError:
            continue
        fields = stat.rpartition(")")[2].split()  # state ppid pgrp session ...
        if int(fields[3]) == session and fields[0] != "Z":
            members.append(int(entry))
    return members


def memory_of(pid):
    """Anonymous and shared bytes of a process, shared pages divided among their users."""
    try:
        text = Path("/proc", str(pid), "smaps_rollup").read_text()
    except OSError:
        return 0  # it has just ended
    fields = dict(line.split(":", 1) for line in text.splitlines()[1:] if ":" in line)
    kib = sum(int(fields.get(name, "0 kB").split()[0]) for name in ("Pss_Anon", "Pss_Shmem"))
    return kib * 1024


class Watcher(threading.Thread):
    """Follows a session's memory until told to stop; ends it after the time limit."""

    def __init__(self, session, limit):
        super().__init__(daemon=True)
        self.session, self.limit = session, limit
        self.peak, self.timed_out, self.done = 0, False, threading.Event()

    def run(self):
        start = time.monotonic()
        while not self.done.wait(0.1):
            members = session_members(self.session)
            self.peak = max(self.peak, sum(map(memory_of, members)))
            if time.monotonic() - start > self.limit:
                self.timed_out = True
                for pid in members:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass


def run_once(tool, program, threads, hither, limit):
    """Runs a program under a tool for at most `limit` seconds; what it cost, as a dictionary."""
    with tempfile.TemporaryDirectory(prefix="bench-trace-") as folder:
        out = Path(folder, "profile.hither")
        front = [word.format(hither=hither, out=out) for word in TOOLS[tool]]
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive", OMP_DYNAMIC="false")
        with open(Path(folder, "output"), "w+b") as output:
            start = time.monotonic()
            process = subprocess.Popen(
                front + program, env=env, cwd=folder, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            watcher = Watcher(process.pid, limit)
            watcher.start()
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.monotonic() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            watcher.done.set()
            watcher.join()
            output.seek(max(0, os.fstat(output.fileno()).st_size - 500))
            tail = output.read().decode(errors="replace").strip()
        result = {
            "tool": tool, "program": Path(program[0]).name, "threads": threads,
            "cpu": usage.ru_utime + usage.ru_stime, "wall": wall, "memory": watcher.peak,
            "status": process.returncode, "timed_out": watcher.timed_out, "tail": tail,
        }
        if tool in OURS and not watcher.timed_out:
            result.update(read_profile(out))
        return result


def read_profile(out):
    """What the profile says of its own cost."""
    try:
        meta = json.loads(Path(out, "profile.json").read_text())
    except OSError as error:
        return {"no_profile": str(error)}
    size = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
    return {"collector": meta["cost"]["collector_cpu"] / 1e9, "duration": meta["duration"] / 1e9,
            "profile_bytes": size}


def failure(result):
    """A sentence on what went wrong, or None."""
    if result["timed_out"]:
        return None  # shown in the table as slower than the limit
    where = "{program} with {threads} threads under {tool}".format(**result)
    if result["status"] != 0:
        return f"{where} ended with {result['status']}: {result['tail'][-300:]}"
    if "no_profile" in result:
        return f"{where} left no profile: {result['no_profile']}"
    return None


def reap():
    """Waits for those that outlived their parents, who have become our children."""
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass


def machine():
    info = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        info.setdefault(name.strip(), value.strip())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": info.get("model name", "unknown"), "processors": os.cpu_count(),
            "memory_gib": round(memory / (1 << 30), 1), "kernel": platform.release(),
            "load": os.getloadavg()[0], "date": time.strftime("%Y-%m-%d %H:%M")}
