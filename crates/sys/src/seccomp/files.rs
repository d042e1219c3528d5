//! The filter of a process that reads files and writes others.
use super::{jump, load_call_number, ret_allow, stmt, SockFilter, JMP_JEQ_K, JMP_JGE_K, RET_K};

/// What no work on files takes, and what Landlock does not stop: other programs and processes,
/// connections, whose a file is and who may use it, and settings of the machine. io_uring
/// would be a way around the filter.
const REFUSED: [libc::c_long; 77] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_chown,
    libc::SYS_fchown,
    libc::SYS_lchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_fsopen,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    libc::SYS_sethostname,
];

/// Builds the filter: these calls fail with EPERM, as does whatever comes by another table of calls (i386, x32).
#[must_use]
pub fn build_files_filter() -> Vec<SockFilter> {
    let refuse = || stmt(RET_K, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs());
    let mut program = load_call_number(refuse());
    program.extend([jump(JMP_JGE_K, X32_CALLS, 0, 1), refuse()]);
    for call in REFUSED {
        let number = u32::try_from(call).unwrap_or(u32::MAX);
        program.extend([jump(JMP_JEQ_K, number, 0, 1), refuse()]);
    }
    program.push(ret_allow());
    program
}

/// Numbers from here on are calls of x32.
const X32_CALLS: u32 = 0x4000_0000;
