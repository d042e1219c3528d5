//! The half that follows the program, in a session of its own, to the end of the last
//! process that it left behind.
use std::io::{Read, Write};

use hither_sys::proc_text::proc_field;
use hither_sys::ptrace;

use super::handover::{send_report, FollowJob, FollowReport};
use super::ptrace_engine::PtraceEngine;
use super::request::FollowRefusal;
use hither_sys::Pid;

/// Attaches to the program and stays with it. Whether it could.
pub fn follow_program(job: FollowJob) -> bool {
    let mut gate = &job.gate;
    let mut pid = [0; 4];
    if gate.read_exact(&mut pid).is_err() {
        // The front could not even fork.
        return false;
    }
    let pid = Pid::from_ne_bytes(pid);
    if let Err(error) = ptrace::seize(pid) {
        send_report(job.sink, FollowReport::Refused(why_refused(pid, &error)));
        return false;
    }
    if gate.write_all(&[0]).is_err() {
        return false;
    }
    hither_sys::launch::request_short_slice();
    PtraceEngine::new(job, pid).run();
    true
}

/// Why the program cannot be followed.
fn why_refused(pid: Pid, error: &std::io::Error) -> FollowRefusal {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tracer = proc_field(&status, "TracerPid");
    let tracer = tracer.and_then(|t| t.parse().ok()).unwrap_or(0);
    if tracer == 0 {
        return FollowRefusal::Forbidden(error.to_string());
    }
    let name = std::fs::read_to_string(format!("/proc/{tracer}/comm"));
    FollowRefusal::Traced {
        tracer: name.map_or_else(|_| "a program".to_string(), |n| n.trim().to_string()),
        pid: tracer,
    }
}
