//! The filter, run by a small machine of our own and by the kernel.
use super::*;

/// A call as the filter sees it.
struct Call {
    number: libc::c_long,
    architecture: u32,
    arguments: [u64; 6],
}

fn load(call: &Call, offset: u32) -> u32 {
    let low = |v: u64| u32::try_from(v & 0xffff_ffff).expect("32 bits");
    match offset {
        NR_OFFSET => u32::try_from(call.number).expect("number"),
        ARCH_OFFSET => call.architecture,
        _ => {
            let n = ((offset - 16) / 8) as usize;
            let value = call.arguments[n];
            low(if offset % 8 == 4 { value >> 32 } else { value })
        }
    }
}

fn run(program: &[SockFilter], call: &Call) -> u32 {
    let (mut at, mut a) = (0, 0u32);
    loop {
        let i = program[at];
        at += 1;
        let jump = |yes: bool| usize::from(if yes { i.jt } else { i.jf });
        match i.code {
            LD_W_ABS => a = load(call, i.k),
            JMP_JEQ_K => at += jump(a == i.k),
            JMP_JGE_K => at += jump(a >= i.k),
            JMP_JSET_K => at += jump(a & i.k != 0),
            RET_K => return i.k,
            other => panic!("operation {other:#x}"),
        }
    }
}

const SMALL: u64 = 1 << 16;

#[track_caller]
fn check(number: libc::c_long, arguments: &[u64], stops: bool) {
    let wanted = FilteredCalls {
        mappings: Some(SMALL),
        affinity: true,
        ..FilteredCalls::default()
    };
    check_with(wanted, number, arguments, stops);
}

#[track_caller]
fn check_with(wanted: FilteredCalls, number: libc::c_long, arguments: &[u64], stops: bool) {
    let mut call = Call {
        number,
        architecture: AUDIT_ARCH_X86_64,
        arguments: [0; 6],
    };
    call.arguments[..arguments.len()].copy_from_slice(arguments);
    let expected = if stops {
        libc::SECCOMP_RET_TRACE
    } else {
        libc::SECCOMP_RET_ALLOW
    };
    assert_eq!(run(&build_filter(wanted), &call), expected);
    call.architecture = 0x4000_0003;
    assert_eq!(run(&build_filter(wanted), &call), libc::SECCOMP_RET_ALLOW);
}

#[test]
fn mappings_stop_by_length_and_file() {
    let anonymous = libc::MAP_ANONYMOUS.unsigned_abs().into();
    check(libc::SYS_mmap, &[0, SMALL, 3, anonymous], true);
    check(libc::SYS_mmap, &[0, SMALL - 1, 3, anonymous], false);
    check(libc::SYS_mmap, &[0, 1 << 32, 3, anonymous], true);
    check(libc::SYS_mmap, &[0, 4096, 3, 2], true);
    check(libc::SYS_mmap, &[0x7000, 4096, 3, anonymous | 0x10], true);
    check(libc::SYS_munmap, &[0x7000, SMALL], true);
    check(libc::SYS_munmap, &[0x7000, 4096], false);
    check(libc::SYS_mremap, &[0x7000, 4096, SMALL], true);
    check(libc::SYS_mremap, &[0x7000, SMALL, 4096], true);
    check(libc::SYS_mremap, &[0x7000, 4096, 8192], false);
    check(libc::SYS_brk, &[0], true);
    check(libc::SYS_shmat, &[1], true);
    check(libc::SYS_shmdt, &[0x7000], true);
}

#[test]
fn other_calls_stop_by_what_they_ask() {
    check(libc::SYS_sched_getaffinity, &[0, 128], true);
    check(libc::SYS_sched_setaffinity, &[0, 128], true);
    check(libc::SYS_seccomp, &[1], true);
    check(libc::SYS_prctl, &[22, 2], true);
    check(libc::SYS_prctl, &[15], false);
    check(libc::SYS_ptrace, &[0], true);
    check(libc::SYS_ptrace, &[0x4206, 1], true);
    check(libc::SYS_ptrace, &[7, 1], false);
    check(libc::SYS_read, &[0, 0x7000, SMALL], false);
    check(libc::SYS_clone3, &[0], false);
    check(libc::SYS_clone, &[0x1200011], false);
    check(libc::SYS_clone, &[0x800000 | 17], true);
}

#[test]
fn code_stops_without_other_mappings() {
    let code = FilteredCalls {
        code: true,
        ..FilteredCalls::default()
    };
    check_with(code, libc::SYS_mmap, &[0, 4096, 5, 2], true);
    check_with(code, libc::SYS_mmap, &[0, 4096, 1, 2], false);
    check_with(code, libc::SYS_mmap, &[0, SMALL, 7, 0x22], false);
    check_with(code, libc::SYS_munmap, &[0, SMALL], false);
}

#[test]
fn nothing_stops_that_nobody_wants() {
    let program = build_filter(FilteredCalls::default());
    for number in [libc::SYS_mmap, libc::SYS_brk, libc::SYS_sched_getaffinity] {
        let call = Call {
            number,
            architecture: AUDIT_ARCH_X86_64,
            arguments: [0, 1 << 40, 0, 0, 0, 0],
        };
        assert_eq!(run(&program, &call), libc::SECCOMP_RET_ALLOW);
    }
}

/// Without a tracer, a call for which the filter returns SECCOMP_RET_TRACE fails with ENOSYS.
#[test]
fn the_kernel_takes_it() {
    let done = std::thread::spawn(|| {
        install_filter(&build_filter(FilteredCalls {
            mappings: Some(1 << 40),
            affinity: true,
            ..FilteredCalls::default()
        }))
        .expect("install");
        crate::affinity::CpuMask::of_thread(0)
            .expect_err("stopped")
            .raw_os_error()
    });
    assert_eq!(done.join().expect("thread"), Some(libc::ENOSYS));
}
