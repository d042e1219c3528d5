//! Following processes, for `run` and `auto`: what /proc says of them, job control, launching
//! the program, system calls in it, processor time.
pub mod affinity_reply;
pub mod cpu_time;
pub mod job_control;
pub mod launch;
pub mod pinning;
pub mod proc_maps;
pub mod procfs;
pub mod remote_syscall;
