//! A shell script that pins the threads of processes that run already.
use super::placed_processes;
use hither_profile::Placement;

/// `sh SCRIPT PID...`; `command` pins the thread `$tid` to the PU `$3`, which is the
/// kernel's number. The kernel lists threads in order of their creation; that of their ids is
/// another when ids have wrapped around.
pub fn write(placement: &Placement, command: &str) -> Result<String, String> {
    let processes = placed_processes::placed_processes(placement);
    if processes.is_empty() {
        return Err(placed_processes::NO_THREAD.to_owned());
    }
    let count = processes.len();
    let mut out = format!(
        "#!/bin/sh\n\
         # Pins the threads of running processes: sh SCRIPT PID...\n\
         # PIDs: {count}, of the processes in order of their start.\n\
         # A thread is found by its order of creation among the threads that live.\n\
         pin() {{\n\
         \ttid=$(ls -U \"/proc/$1/task\" | sed -n \"$2p\")\n\
         \tif [ -z \"$tid\" ]; then\n\
         \t\techo \"process $1 has no thread $2\" >&2\n\
         \t\texit 1\n\
         \tfi\n\
         \t{command} || exit 1\n\
         }}\n\
         if [ $# -ne {count} ]; then\n\
         \techo \"usage: sh $0 PID... ({count})\" >&2\n\
         \texit 2\n\
         fi\n"
    );
    for (number, process) in (1..).zip(&processes) {
        for (thread, place) in &process.placed {
            out += &format!(
                "pin \"${{{number}}}\" {} {}\n",
                thread + 1,
                place.os_index()
            );
        }
    }
    Ok(out)
}
