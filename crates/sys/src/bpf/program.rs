//! The programs that run in the kernel at each page fault, fork, exec and end of a thread: a
//! record goes into a ring if the process is one of those that are followed. Written as
//! instructions: they are few, and no BPF compiler is needed then.
//!
//! ```text
//!  stack, from r10 down:  -4 a key;  -48 the record: time, address, thread and process,
//!                                        processor, kind, other thread and process
//!  r6: arguments of the tracepoint;  r7: process << 32 | thread;  r8: a page's hash
//! ```
use super::fault_filter::{
    BITMAPS_OFFSET, BITMAP_BYTES, BIT_SHIFT, FILTER_BITS, GOLDEN_RATIO_64, LEFT_OUT_OFFSET,
    SHARE_OFFSET,
};

/// Bytes of a record.
pub const RECORD_BYTES: i32 = 40;
const RECORD_OFFSET: i16 = -48;
const KEY_OFFSET: i16 = -4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracepointKind {
    Fault = 1,
    Fork,
    Exec,
    Exit,
}

/// An instruction (struct bpf_insn).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BpfInsn {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// What is filled in when the programs are loaded: descriptors of their maps and where members lie in the
/// kernel's structures.
#[derive(Clone, Copy, Debug)]
pub struct ProgramRelocations {
    /// Of processes that are followed: a hash table by process.
    pub followed: i32,
    pub ring: i32,
    /// Records that found no room: an array of one.
    pub lost: i32,
    /// A [`super::FaultFilter`]'s: an array of one.
    pub filter: i32,
    /// task_struct.pid, tgid and signal; signal_struct.live.
    pub task_pid_offset: i32,
    pub task_tgid_offset: i32,
    pub task_signal_offset: i32,
    pub signal_live_offset: i32,
}

/// Functions of the kernel.
const BPF_FUNC_MAP_LOOKUP_ELEM: i32 = 1;
const BPF_FUNC_MAP_UPDATE_ELEM: i32 = 2;
const BPF_FUNC_MAP_DELETE_ELEM: i32 = 3;
const BPF_FUNC_KTIME_GET_NS: i32 = 5;
const BPF_FUNC_GET_SMP_PROCESSOR_ID: i32 = 8;
const BPF_FUNC_GET_CURRENT_PID_TGID: i32 = 14;
const BPF_FUNC_PROBE_READ_KERNEL: i32 = 113;
const BPF_FUNC_RINGBUF_OUTPUT: i32 = 130;
const BPF_RB_NO_WAKEUP: i32 = 1;

/// A program under construction.
struct BpfAssembler {
    code: Vec<BpfInsn>,
    /// Jumps to the end.
    out: Vec<usize>,
}

impl BpfAssembler {
    fn push(&mut self, code: u8, to: u8, from: u8, offset: i16, value: i32) {
        self.code.push(BpfInsn {
            code,
            registers: to | from << 4,
            offset,
            value,
        });
    }

    fn mov_reg(&mut self, to: u8, from: u8) {
        self.push(0xBF, to, from, 0, 0);
    }

    fn mov_imm(&mut self, to: u8, value: i32) {
        self.push(0xB7, to, 0, 0, value);
    }

    fn add_imm(&mut self, to: u8, value: i32) {
        self.push(0x07, to, 0, 0, value);
    }

    fn call(&mut self, function: i32) {
        self.push(0x85, 0, 0, 0, function);
    }

    fn load_map_fd(&mut self, to: u8, descriptor: i32) {
        self.push(0x18, to, 1, 0, descriptor);
        self.push(0, 0, 0, 0, 0);
    }

    fn load_u64(&mut self, to: u8, from: u8, offset: i16) {
        self.push(0x79, to, from, offset, 0);
    }

    fn load_u32(&mut self, to: u8, from: u8, offset: i16) {
        self.push(0x61, to, from, offset, 0);
    }

    fn store_u64(&mut self, offset: i16, from: u8) {
        self.push(0x7B, 10, from, offset, 0);
    }

    fn store_u32(&mut self, offset: i16, from: u8) {
        self.push(0x63, 10, from, offset, 0);
    }

    fn load_u8(&mut self, to: u8, from: u8, offset: i16) {
        self.push(0x71, to, from, offset, 0);
    }

    fn load_imm64(&mut self, to: u8, value: u64) {
        self.push(0x18, to, 0, 0, value as u32 as i32);
        self.push(0, 0, 0, 0, (value >> 32) as u32 as i32);
    }

    fn shift_right(&mut self, to: u8, bits: i32) {
        self.push(0x77, to, 0, 0, bits);
    }

    fn exit(&mut self) {
        self.out.push(self.code.len());
        self.push(0x05, 0, 0, 0, 0);
    }

    fn stack_address(&mut self, to: u8, offset: i16) {
        self.mov_reg(to, 10);
        self.add_imm(to, offset.into());
    }

    /// To the end if r0 is 0, or is not.
    fn exit_if(&mut self, zero: bool) {
        self.out.push(self.code.len());
        self.push(if zero { 0x15 } else { 0x55 }, 0, 0, 0, 0);
    }

    /// Looks the key up: r0 is its value's address or 0.
    fn map_lookup(&mut self, map: i32) {
        self.load_map_fd(1, map);
        self.stack_address(2, KEY_OFFSET);
        self.call(BPF_FUNC_MAP_LOOKUP_ELEM);
    }

    /// Reads `size` bytes at r3 of the kernel's memory to the stack.
    fn probe_read_kernel(&mut self, to: i16, size: i32) {
        self.stack_address(1, to);
        self.mov_imm(2, size);
        self.call(BPF_FUNC_PROBE_READ_KERNEL);
        self.exit_if(false);
    }

    fn finish(mut self) -> Vec<BpfInsn> {
        let end = self.code.len();
        for at in self.out.drain(..) {
            self.code[at].offset = (end - at - 1) as i16;
        }
        self.mov_imm(0, 0);
        self.push(0x95, 0, 0, 0, 0);
        self.code
    }
}

/// The program for a kind of record.
pub fn assemble(kind: TracepointKind, around: &ProgramRelocations) -> Vec<BpfInsn> {
    let mut a = BpfAssembler {
        code: Vec::new(),
        out: Vec::new(),
    };
    // Most processes are not followed: leave at once.
    a.mov_reg(6, 1);
    a.call(BPF_FUNC_GET_CURRENT_PID_TGID);
    a.mov_reg(7, 0);
    a.mov_reg(1, 7);
    a.shift_right(1, 32);
    a.store_u32(KEY_OFFSET, 1);
    a.map_lookup(around.followed);
    a.exit_if(true);
    a.mov_imm(1, 0);
    a.store_u64(RECORD_OFFSET + 8, 1);
    a.store_u64(RECORD_OFFSET + 32, 1);
    match kind {
        TracepointKind::Fault => {
            a.load_u64(1, 6, 0);
            a.store_u64(RECORD_OFFSET + 8, 1);
            emit_filter(&mut a, around);
        }
        TracepointKind::Fork => emit_fork(&mut a, around),
        TracepointKind::Exec => {}
        TracepointKind::Exit => emit_exit(&mut a, around),
    }
    a.store_u64(RECORD_OFFSET + 16, 7);
    a.call(BPF_FUNC_KTIME_GET_NS);
    a.store_u64(RECORD_OFFSET, 0);
    a.call(BPF_FUNC_GET_SMP_PROCESSOR_ID);
    a.store_u32(RECORD_OFFSET + 24, 0);
    a.mov_imm(1, kind as i32);
    a.store_u32(RECORD_OFFSET + 28, 1);
    a.load_map_fd(1, around.ring);
    a.stack_address(2, RECORD_OFFSET);
    a.mov_imm(3, RECORD_BYTES);
    a.mov_imm(4, BPF_RB_NO_WAKEUP);
    a.call(BPF_FUNC_RINGBUF_OUTPUT);
    a.exit_if(true);
    // No room.
    a.mov_imm(1, 0);
    a.store_u32(KEY_OFFSET, 1);
    a.map_lookup(around.lost);
    a.exit_if(true);
    a.mov_imm(1, 1);
    a.push(0xDB, 0, 1, 0, 0);
    a.finish()
}

/// To the end for a fault on a page that the filter leaves out; r1 is the address, r8 the page's hash.
fn emit_filter(a: &mut BpfAssembler, around: &ProgramRelocations) {
    a.mov_reg(8, 1);
    a.shift_right(8, 12);
    a.mov_reg(2, 7);
    a.shift_right(2, 32);
    a.push(0x67, 2, 0, 0, 40);
    a.push(0xAF, 8, 2, 0, 0);
    a.load_imm64(3, GOLDEN_RATIO_64);
    a.push(0x2F, 8, 3, 0, 0);
    a.mov_imm(1, 0);
    a.store_u32(KEY_OFFSET, 1);
    a.map_lookup(around.filter);
    a.exit_if(true);
    a.mov_reg(1, 8);
    a.shift_right(1, 32);
    a.load_u32(2, 0, SHARE_OFFSET);
    // At most the share: over the next sixteen.
    a.push(0xBD, 1, 2, 16, 0);
    a.shift_right(8, BIT_SHIFT);
    a.push(0x57, 8, 0, 0, FILTER_BITS as i32 - 1);
    a.mov_reg(3, 8);
    a.shift_right(3, 3);
    a.push(0x0F, 3, 0, 0, 0);
    a.load_u8(4, 3, BITMAPS_OFFSET);
    a.add_imm(3, BITMAP_BYTES);
    a.load_u8(5, 3, BITMAPS_OFFSET);
    a.push(0x4F, 4, 5, 0, 0);
    a.push(0x57, 8, 0, 0, 7);
    a.push(0x7F, 4, 8, 0, 0);
    a.push(0x57, 4, 0, 0, 1);
    // The page was taken: over the next three.
    a.push(0x55, 4, 0, 3, 0);
    a.mov_imm(1, 1);
    a.push(0xDB, 0, 1, LEFT_OUT_OFFSET, 0);
    a.exit();
}

/// The child's thread and process; what a followed process makes is followed.
fn emit_fork(a: &mut BpfAssembler, around: &ProgramRelocations) {
    for (to, member) in [
        (RECORD_OFFSET + 32, around.task_pid_offset),
        (RECORD_OFFSET + 36, around.task_tgid_offset),
    ] {
        a.load_u64(3, 6, 8);
        a.add_imm(3, member);
        a.probe_read_kernel(to, 4);
    }
    a.load_u32(1, 10, RECORD_OFFSET + 36);
    a.store_u32(KEY_OFFSET, 1);
    a.load_map_fd(1, around.followed);
    a.stack_address(2, KEY_OFFSET);
    a.stack_address(3, KEY_OFFSET);
    a.mov_imm(4, 0);
    a.call(BPF_FUNC_MAP_UPDATE_ELEM);
}

/// With its last thread a process is followed no more, before its number is given out again.
fn emit_exit(a: &mut BpfAssembler, around: &ProgramRelocations) {
    a.load_u64(3, 6, 0);
    a.add_imm(3, around.task_signal_offset);
    a.probe_read_kernel(RECORD_OFFSET + 32, 8);
    a.load_u64(3, 10, RECORD_OFFSET + 32);
    a.add_imm(3, around.signal_live_offset);
    a.probe_read_kernel(RECORD_OFFSET + 32, 4);
    a.load_u32(1, 10, RECORD_OFFSET + 32);
    // Not the last one: over the next five.
    a.push(0x55, 1, 0, 5, 0);
    a.load_map_fd(1, around.followed);
    a.stack_address(2, KEY_OFFSET);
    a.call(BPF_FUNC_MAP_DELETE_ELEM);
}
