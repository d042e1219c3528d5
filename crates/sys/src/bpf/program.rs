//! The programs that run in the kernel at each page fault, fork, exec and end of a thread: a
//! record goes into a ring if the process is one of those that are followed. Written as
//! instructions, for they are few, and so nobody needs a compiler for them.
//!
//! ```text
//!  stack, from r10 down:  -4 a key;  -48 the record: time, address, thread and process,
//!                                        processor, kind, other thread and process
//!  r6: arguments of the tracepoint;  r7: process << 32 | thread
//! ```

/// Bytes of a record.
pub const RECORD: i32 = 40;
const AT: i16 = -48;
const KEY: i16 = -4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Fault = 1,
    Fork,
    Exec,
    Exit,
}

/// An instruction (struct bpf_insn).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// What the programs are told: descriptors of their maps and where members lie in the
/// kernel's structures.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Of processes that are followed: a hash table by process.
    pub followed: i32,
    pub ring: i32,
    /// Records that found no room: an array of one.
    pub lost: i32,
    /// task_struct.pid, tgid and signal; signal_struct.live.
    pub pid: i32,
    pub tgid: i32,
    pub signal: i32,
    pub live: i32,
}

/// Functions of the kernel.
const LOOK_UP: i32 = 1;
const UPDATE: i32 = 2;
const DELETE: i32 = 3;
const TIME: i32 = 5;
const PROCESSOR: i32 = 8;
const WHO: i32 = 14;
const READ_KERNEL: i32 = 113;
const OUTPUT: i32 = 130;
const NO_WAKEUP: i32 = 1;

/// A program under construction.
struct Assembler {
    code: Vec<Instruction>,
    /// Jumps to the end.
    out: Vec<usize>,
}

impl Assembler {
    fn push(&mut self, code: u8, to: u8, from: u8, offset: i16, value: i32) {
        self.code.push(Instruction {
            code,
            registers: to | from << 4,
            offset,
            value,
        });
    }

    fn copy(&mut self, to: u8, from: u8) {
        self.push(0xBF, to, from, 0, 0);
    }

    fn set(&mut self, to: u8, value: i32) {
        self.push(0xB7, to, 0, 0, value);
    }

    fn add(&mut self, to: u8, value: i32) {
        self.push(0x07, to, 0, 0, value);
    }

    fn call(&mut self, function: i32) {
        self.push(0x85, 0, 0, 0, function);
    }

    fn map(&mut self, to: u8, descriptor: i32) {
        self.push(0x18, to, 1, 0, descriptor);
        self.push(0, 0, 0, 0, 0);
    }

    fn load(&mut self, to: u8, from: u8, offset: i16) {
        self.push(0x79, to, from, offset, 0);
    }

    fn load_half(&mut self, to: u8, from: u8, offset: i16) {
        self.push(0x61, to, from, offset, 0);
    }

    fn store(&mut self, offset: i16, from: u8) {
        self.push(0x7B, 10, from, offset, 0);
    }

    fn store_half(&mut self, offset: i16, from: u8) {
        self.push(0x63, 10, from, offset, 0);
    }

    fn stack(&mut self, to: u8, offset: i16) {
        self.copy(to, 10);
        self.add(to, offset.into());
    }

    /// To the end if r0 is 0, or is not.
    fn leave_if(&mut self, zero: bool) {
        self.out.push(self.code.len());
        self.push(if zero { 0x15 } else { 0x55 }, 0, 0, 0, 0);
    }

    /// Looks the key up: r0 is its value's address or 0.
    fn look_up(&mut self, map: i32) {
        self.map(1, map);
        self.stack(2, KEY);
        self.call(LOOK_UP);
    }

    /// Reads `size` bytes at r3 of the kernel's memory to the stack.
    fn read_kernel(&mut self, to: i16, size: i32) {
        self.stack(1, to);
        self.set(2, size);
        self.call(READ_KERNEL);
        self.leave_if(false);
    }

    fn end(mut self) -> Vec<Instruction> {
        let end = self.code.len();
        for at in self.out.drain(..) {
            self.code[at].offset = (end - at - 1) as i16;
        }
        self.set(0, 0);
        self.push(0x95, 0, 0, 0, 0);
        self.code
    }
}

/// The program for a kind of record.
pub fn program(kind: Kind, around: &Surroundings) -> Vec<Instruction> {
    let mut a = Assembler {
        code: Vec::new(),
        out: Vec::new(),
    };
    // Nobody's affair, most of the time.
    a.copy(6, 1);
    a.call(WHO);
    a.copy(7, 0);
    a.copy(1, 7);
    a.push(0x77, 1, 0, 0, 32);
    a.store_half(KEY, 1);
    a.look_up(around.followed);
    a.leave_if(true);
    a.set(1, 0);
    a.store(AT + 8, 1);
    a.store(AT + 32, 1);
    match kind {
        Kind::Fault => {
            a.load(1, 6, 0);
            a.store(AT + 8, 1);
        }
        Kind::Fork => fork(&mut a, around),
        Kind::Exec => {}
        Kind::Exit => exit(&mut a, around),
    }
    a.store(AT + 16, 7);
    a.call(TIME);
    a.store(AT, 0);
    a.call(PROCESSOR);
    a.store_half(AT + 24, 0);
    a.set(1, kind as i32);
    a.store_half(AT + 28, 1);
    a.map(1, around.ring);
    a.stack(2, AT);
    a.set(3, RECORD);
    a.set(4, NO_WAKEUP);
    a.call(OUTPUT);
    a.leave_if(true);
    // No room.
    a.set(1, 0);
    a.store_half(KEY, 1);
    a.look_up(around.lost);
    a.leave_if(true);
    a.set(1, 1);
    a.push(0xDB, 0, 1, 0, 0);
    a.end()
}

/// The child's thread and process; what a followed process makes is followed.
fn fork(a: &mut Assembler, around: &Surroundings) {
    for (to, member) in [(AT + 32, around.pid), (AT + 36, around.tgid)] {
        a.load(3, 6, 8);
        a.add(3, member);
        a.read_kernel(to, 4);
    }
    a.load_half(1, 10, AT + 36);
    a.store_half(KEY, 1);
    a.map(1, around.followed);
    a.stack(2, KEY);
    a.stack(3, KEY);
    a.set(4, 0);
    a.call(UPDATE);
}

/// With its last thread a process is followed no more, before its number is given out again.
fn exit(a: &mut Assembler, around: &Surroundings) {
    a.load(3, 6, 0);
    a.add(3, around.signal);
    a.read_kernel(AT + 32, 8);
    a.load(3, 10, AT + 32);
    a.add(3, around.live);
    a.read_kernel(AT + 32, 4);
    a.load_half(1, 10, AT + 32);
    // Not the last one: over the next five.
    a.push(0x55, 1, 0, 5, 0);
    a.map(1, around.followed);
    a.stack(2, KEY);
    a.call(DELETE);
}
