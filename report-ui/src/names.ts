// What threads and processes are called.
import { base } from "./format";
import type { Structure, Subject } from "./model";

/// `rank 2`, or `P3` for processes that are no rank of an MPI job.
export function processName(subject: Subject, process: number): string {
  const rank = subject.processes[process]?.rank;
  return rank == null ? `P${process}` : `rank ${rank}`;
}

/// `rank 2`, `13 processes`
export function processNames(subject: Subject, processes: number[]): string {
  return processes.length === 1 ? processName(subject, processes[0]) : `${processes.length} processes`;
}

/// The row of a structure, by its number in the profile.
export function structureOf(subject: Subject, object: number | null): Structure | undefined {
  return subject.structures.rows.find((row) => row.objects.some((number) => number === object));
}

/// A thread's number and, where they tell more, its process and its name.
export function threadName(subject: Subject, thread: number): string {
  const { name, process } = subject.threads[thread];
  const own = subject.processes.length > 1 ? `${processName(subject, process)}: ` : "";
  const executable = subject.processes[process]?.executable ?? "";
  // OpenMP threads are all named after the program, which tells nothing.
  const known = name && base(executable) !== name;
  return `${own}${thread}${known ? ` ${name}` : ""}`;
}

/// `0-3, 8`
export function ranges(numbers: number[]): string {
  const sorted = [...numbers].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let end = i;
    while (sorted[end + 1] === sorted[end] + 1) end += 1;
    parts.push(end > i ? `${sorted[i]}\u2013${sorted[end]}` : String(sorted[i]));
    i = end + 1;
  }
  return parts.join(", ");
}
