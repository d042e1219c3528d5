"""Drives an interactive shell on a terminal of its own: jobs.py SCENARIO COMMAND...

COMMAND is what stands in front of each program: nothing, or `hither run ... --`. Prints
what the shell and the programs said, without what differs from run to run; the scenarios
are those below."""
import os
import pty
import re
import select
import sys
import time

PATIENCE = 120
PROMPT = "@> "


class Shell:
    """A bash with job control; what it prints is read as it comes."""

    def __init__(self):
        self.text = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(PS1=PROMPT, PS2="", TERM="dumb")
            os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        self.expect(PROMPT)

    def expect(self, wanted):
        """Waits until `wanted` was printed; returns what came before it and it, and forgets both."""
        end = time.monotonic() + PATIENCE
        while wanted not in self.text:
            if time.monotonic() > end:
                sys.exit(f"{wanted!r} did not come; there is {self.text!r}")
            if select.select([self.terminal], [], [], 1)[0]:
                try:
                    self.text += os.read(self.terminal, 4096).decode(errors="replace").replace("\r", "")
                except OSError:
                    sys.exit(f"the shell ended; it said {self.text!r}")
        before, self.text = self.text.split(wanted, 1)
        return before + wanted

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def do(self, line):
        """A whole command, with what it prints until the next prompt."""
        self.type(line + "\n")
        self.expect("\n")
        return self.expect(PROMPT)[:-len(PROMPT)].strip()

    def start(self, line):
        self.type(line + "\n")
        self.expect("\n")


def wait_for(done):
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            sys.exit("what was waited for did not come")
        time.sleep(0.02)


def count():
    try:
        with open("count") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def continued(shell):
    """Returns as soon as the job in front runs again. What stops a program before it was continued
    is forgotten by the kernel when it is, so a key that comes then does nothing."""
    own = os.getpgid(shell.pid)
    while (front := os.tcgetpgrp(shell.terminal)) == own or state_of(front) == "T":
        time.sleep(0.0005)


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def forget():
    if os.path.exists("count"):
        os.unlink("count")


def counting():
    """Returns once the program counts; so it runs, and in front if it was to."""
    before = count()
    wait_for(lambda: count() > before)


def stands_still():
    """Whether the program does nothing for a while; it may need a moment to stop."""
    time.sleep(0.3)
    before = count()
    time.sleep(0.3)
    return count() == before


def say(*words):
    print(*words)


def kill_job(shell, signal, wait):
    """How the job ends. The shell tells of that as well, before or after."""
    lines = shell.do(f"kill -{signal} %1; {wait}; echo $?").splitlines()
    return [line for line in lines if line.isdigit()]


def tidy(text, front):
    """Without the command in front, and job lines as short as they come."""
    text = text.replace(" ".join(front) + " ", "") if front else text
    return re.sub(r"[ \t]+", " ", text).strip()


def run_interrupt(shell, front, tools):
    for key in "\x03", "\x1c":
        shell.start(f"{front}sh -c 'echo up; exec sleep 100'")
        shell.expect("up\n")
        shell.type(key)
        shell.expect(PROMPT)
        say("status", shell.do("echo $?"))


def run_caught(shell, front, tools):
    """A program that survives Ctrl-C does so followed, and so does one that ignores it."""
    shell.start(front + """bash -c 'trap "echo caught; exit 7" INT; echo up; while :; do sleep 0.1; done'""")
    shell.expect("up\n")
    shell.type("\x03")
    say("caught" in shell.expect(PROMPT), shell.do("echo $?"))
    shell.start(front + """bash -c 'trap "" INT TSTP QUIT; echo up; read line; echo "read $line"'""")
    shell.expect("up\n")
    shell.type("\x03\x1a\x1c")
    time.sleep(0.3)
    shell.type("still here\n")
    say("read still here" in shell.expect(PROMPT), shell.do("echo $?"))


def run_stop(shell, front, tools):
    forget()
    shell.start(f"{front}{tools}/notice count 150")
    counting()
    shell.type("\x1a")
    shell.expect("Stopped")
    shell.expect(PROMPT)
    say("stopped", stands_still(), tidy(shell.do("jobs"), front.split()))
    shell.start("fg")
    counting()
    shell.type("\x1a")
    shell.expect("Stopped")
    shell.expect(PROMPT)
    say("again", stands_still(), tidy(shell.do("bg"), front.split()))
    counting()
    say("waited", tidy(shell.do("wait %1; echo $?"), front.split()))


def run_restop(shell, front, tools):
    """Stopped again by the terminal just after it was continued."""
    forget()
    shell.start(f"{front}{tools}/notice count 1000000")
    counting()
    shell.type("\x1a")
    shell.expect("Stopped")
    for _ in range(10):
        shell.expect(PROMPT)
        shell.start("fg")
        continued(shell)
        shell.type("\x1a")
        shell.expect("Stopped")
    shell.expect(PROMPT)
    # The shell also continues what it terminates, which may have ended before `fg`, a failure then.
    wait = "fg; s=$?; [ $s != 1 ] || { wait %1; s=$?; }; (exit $s)"
    say(stands_still(), kill_job(shell, "TERM", wait))


def run_input(shell, front, tools):
    """Reading from the terminal: in front, and in the background, which stops it."""
    shell.start(f"{front}cat")
    shell.type("typed\n")
    shell.expect("typed\ntyped\n")
    shell.type("\x04")
    shell.expect(PROMPT)
    say("status", shell.do("echo $?"))
    shell.start(f"{front}cat &")
    shell.expect(PROMPT)
    wait_for(lambda: "Stopped" in shell.do("jobs"))
    shell.start("fg")
    shell.expect("cat\n")
    shell.type("late\n")
    shell.expect("late\nlate\n")
    shell.type("\x04")
    shell.expect(PROMPT)
    say("status", shell.do("echo $?"))


def run_kill(shell, front, tools):
    for signal in "TERM", "KILL", "HUP":
        forget()
        shell.start(f"{front}{tools}/notice count 1000000 &")
        shell.expect(PROMPT)
        counting()
        say(signal, stands_still(), kill_job(shell, signal, "wait %1"))
        say("gone", stands_still())


def run_inner(shell, front, tools):
    """An interactive shell inside, with jobs of its own."""
    forget()
    shell.start(f"{front}bash --norc --noprofile --noediting -i")
    shell.expect(PROMPT)
    shell.start(f"{tools}/notice count 1000000")
    counting()
    shell.type("\x1a")
    shell.expect("Stopped")
    shell.expect(PROMPT)
    say("stopped", stands_still())
    shell.start("fg")
    counting()
    shell.type("\x03")
    shell.expect(PROMPT)
    say("inner status", shell.do("echo $?"))
    say("left", shell.do("exit 5"), shell.do("echo $?"))


def run_pipeline(shell, front, tools):
    """Part of a job of several processes."""
    forget()
    shell.start(f"{front}{tools}/notice count 1000000 | cat")
    counting()
    shell.type("\x1a")
    shell.expect("Stopped")
    shell.expect(PROMPT)
    say("stopped", stands_still())
    shell.start("fg")
    counting()
    shell.type("\x03")
    shell.expect(PROMPT)
    say("status", shell.do("echo ${PIPESTATUS[*]} $?"))


def main():
    scenario, tools, front = sys.argv[1], sys.argv[2], sys.argv[3:]
    shell = Shell()
    globals()[f"run_{scenario}"](shell, " ".join(front) + " " if front else "", tools)
    say("groups", shell.do("jobs").strip())


if __name__ == "__main__":
    main()
