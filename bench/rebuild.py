"""`make bench-rebuild`: processor time of a release build after one constant of the stage `trace`
changed. Changes the constant, builds, and puts the file back."""
import os
import pathlib
import re
import resource
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "crates/hither/src/trace/rank_join.rs"
CONSTANT = re.compile(r"(const \w+: Duration = Duration::from_secs\()(\d+)\)")
BUILD = [os.environ.get("CARGO", "cargo"), "build", "--release", "--package", "hither", "--quiet"]


def seconds_of_build() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(BUILD, cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    original = SOURCE.read_text(encoding="utf-8")
    changed, count = CONSTANT.subn(lambda m: f"{m[1]}{int(m[2]) + 1})", original, count=1)
    if count == 0:
        raise SystemExit(f"{SOURCE} has no constant to change")
    seconds_of_build()
    try:
        SOURCE.write_text(changed, encoding="utf-8")
        print(f"one constant of trace changed: {seconds_of_build():.1f} s of CPU (at most 60)")
    finally:
        SOURCE.write_text(original, encoding="utf-8")


main()
