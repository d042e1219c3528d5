//! Which processing units a thread may run on, by the kernel's numbers and for any
//! number of them (cpu_set_t ends at 1024).
use std::fmt;
use std::io;

/// Processing units, as sched_setaffinity(2) takes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask(Vec<u64>);

/// Bytes that no kernel's mask exceeds (CONFIG_NR_CPUS is 8192 at most).
const BYTES_MAX: usize = 1 << 13;

impl Mask {
    /// One processing unit.
    #[must_use]
    pub fn one(cpu: u32) -> Self {
        let mut words = vec![0; cpu as usize / 64 + 1];
        words[cpu as usize / 64] = 1 << (cpu % 64);
        Mask(words)
    }

    /// The mask that thread `tid` has; 0 is this one.
    ///
    /// # Errors
    /// ESRCH when there is no such thread.
    pub fn of(tid: i32) -> io::Result<Self> {
        let mut words = vec![0u64; 128];
        loop {
            match get(tid, &mut words) {
                Ok(bytes) => {
                    words.truncate(bytes.div_ceil(8));
                    while words.last() == Some(&0) {
                        words.pop();
                    }
                    return Ok(Mask(words));
                }
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) && words.len() * 8 < BYTES_MAX => {
                    words.resize(words.len() * 2, 0);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the mask to thread `tid`.
    ///
    /// # Errors
    /// EINVAL when it may run on none of the units, ESRCH when it is gone, EPERM.
    pub fn give(&self, tid: i32) -> io::Result<()> {
        let bytes = self.0.len() * 8;
        // SAFETY: the kernel reads `bytes` bytes, which the vector has.
        let got =
            unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, bytes, self.0.as_ptr()) };
        match got {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    #[must_use]
    pub fn has(&self, cpu: u32) -> bool {
        let word = self.0.get(cpu as usize / 64).copied().unwrap_or(0);
        word >> (cpu % 64) & 1 == 1
    }

    /// The units in increasing order.
    pub fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        let words = u32::try_from(self.0.len()).unwrap_or(0);
        (0..words * 64).filter(|&cpu| self.has(cpu))
    }

    /// The first `length` bytes, as the kernel stores a mask.
    #[must_use]
    pub fn bytes(&self, length: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.0.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.resize(length, 0);
        bytes
    }
}

/// What sched_getaffinity(2) answers for thread `tid` when asked with a place of `length`
/// bytes: how many of them it fills.
///
/// # Errors
/// As the kernel's.
pub fn length(tid: i32, length: usize) -> io::Result<usize> {
    let mut words = vec![0u64; length.min(BYTES_MAX).div_ceil(8)];
    if !length.is_multiple_of(8) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    get(tid, &mut words)
}

fn get(tid: i32, words: &mut [u64]) -> io::Result<usize> {
    let bytes = words.len() * 8;
    // SAFETY: the kernel writes at most `bytes` bytes, which the slice has.
    let got = unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, bytes, words.as_mut_ptr()) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// As the kernel writes lists: `0-3,8`.
impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.cpus().peekable();
        let mut comma = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            write!(f, "{comma}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        let check = |words: &[u64], expected: &str| {
            assert_eq!(Mask(words.to_vec()).to_string(), expected);
        };
        check(&[], "");
        check(&[0b1], "0");
        check(&[0b1_0000_1111], "0-3,8");
        check(&[1 << 63, 0b11], "63-65");
        assert_eq!(Mask::one(70).to_string(), "70");
        assert_eq!(Mask::one(1).bytes(16)[..2], [2, 0]);
    }

    #[test]
    fn a_mask_given_is_the_mask_got() {
        let tid = nix::unistd::gettid().as_raw();
        let before = Mask::of(tid).expect("mask");
        let cpu = before.cpus().last().expect("a unit");
        Mask::one(cpu).give(tid).expect("give");
        assert_eq!(Mask::of(0).expect("mask"), Mask::one(cpu));
        before.give(tid).expect("give back");
        assert_eq!(Mask::of(0).expect("mask"), before);
        assert!(Mask::of(i32::MAX - 1).is_err());
    }

    #[test]
    fn the_kernels_answer_by_length() {
        assert!(length(0, 3).is_err());
        let most = length(0, BYTES_MAX).expect("length");
        assert!(most.is_multiple_of(8) && most > 0);
        assert_eq!(length(0, most).expect("length"), most);
    }
}
