//! Which processing units a thread may run on, by the kernel's numbers and for any
//! number of them (cpu_set_t ends at 1024).
use crate::errno::check;
use std::fmt;
use std::io;

/// Processing units, as sched_setaffinity(2) takes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuMask(Vec<u64>);

/// Bytes that no kernel's mask exceeds (CONFIG_NR_CPUS is 8192 at most).
const MAX_MASK_BYTES: usize = 1 << 13;

impl CpuMask {
    /// One processing unit.
    #[must_use]
    pub fn single(cpu: u32) -> Self {
        let mut words = vec![0; cpu as usize / 64 + 1];
        words[cpu as usize / 64] = 1 << (cpu % 64);
        CpuMask(words)
    }

    /// The mask that thread `tid` has; 0 is this one.
    ///
    /// # Errors
    /// ESRCH when there is no such thread.
    pub fn of_thread(tid: i32) -> io::Result<Self> {
        let mut words = vec![0u64; 128];
        loop {
            match sched_getaffinity(tid, &mut words) {
                Ok(bytes) => {
                    words.truncate(bytes.div_ceil(8));
                    while words.last() == Some(&0) {
                        words.pop();
                    }
                    return Ok(CpuMask(words));
                }
                Err(e)
                    if e.raw_os_error() == Some(libc::EINVAL)
                        && words.len() * 8 < MAX_MASK_BYTES =>
                {
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
    pub fn set_affinity(&self, tid: i32) -> io::Result<()> {
        let bytes = self.0.len() * 8;
        // SAFETY: the kernel reads `bytes` bytes, which the vector has.
        let got =
            unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, bytes, self.0.as_ptr()) };
        check(got).map(drop)
    }

    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        let word = self.0.get(cpu as usize / 64).copied().unwrap_or(0);
        word >> (cpu % 64) & 1 == 1
    }

    /// The units in increasing order.
    pub fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        let words = u32::try_from(self.0.len()).unwrap_or(0);
        (0..words * 64).filter(|&cpu| self.contains(cpu))
    }

    /// The first `length` bytes, as the kernel stores a mask.
    #[must_use]
    pub fn to_bytes(&self, length: usize) -> Vec<u8> {
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
pub fn kernel_mask_len(tid: i32, length: usize) -> io::Result<usize> {
    let mut words = vec![0u64; length.min(MAX_MASK_BYTES).div_ceil(8)];
    if !length.is_multiple_of(8) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    sched_getaffinity(tid, &mut words)
}

fn sched_getaffinity(tid: i32, words: &mut [u64]) -> io::Result<usize> {
    let bytes = words.len() * 8;
    // SAFETY: the kernel writes at most `bytes` bytes, which the slice has.
    let got = unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, bytes, words.as_mut_ptr()) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

impl FromIterator<u32> for CpuMask {
    fn from_iter<T: IntoIterator<Item = u32>>(cpus: T) -> CpuMask {
        let mut words: Vec<u64> = Vec::new();
        for cpu in cpus {
            let at = cpu as usize / 64;
            words.resize(words.len().max(at + 1), 0);
            words[at] |= 1 << (cpu % 64);
        }
        CpuMask(words)
    }
}

/// As the kernel writes lists: `0-3,8`.
impl fmt::Display for CpuMask {
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
            assert_eq!(CpuMask(words.to_vec()).to_string(), expected);
        };
        check(&[], "");
        check(&[0b1], "0");
        check(&[0b1_0000_1111], "0-3,8");
        check(&[1 << 63, 0b11], "63-65");
        assert_eq!(CpuMask::single(70).to_string(), "70");
        assert_eq!(CpuMask::from_iter([64, 3, 2]).to_string(), "2-3,64");
        assert_eq!(CpuMask::single(1).to_bytes(16)[..2], [2, 0]);
    }

    #[test]
    fn a_mask_given_is_the_mask_got() {
        let tid = nix::unistd::gettid().as_raw();
        let before = CpuMask::of_thread(tid).expect("mask");
        let cpu = before.cpus().last().expect("a unit");
        CpuMask::single(cpu).set_affinity(tid).expect("give");
        assert_eq!(CpuMask::of_thread(0).expect("mask"), CpuMask::single(cpu));
        before.set_affinity(tid).expect("give back");
        assert_eq!(CpuMask::of_thread(0).expect("mask"), before);
        assert!(CpuMask::of_thread(i32::MAX - 1).is_err());
    }

    #[test]
    fn the_kernels_answer_by_length() {
        assert!(kernel_mask_len(0, 3).is_err());
        let most = kernel_mask_len(0, MAX_MASK_BYTES).expect("length");
        assert!(most.is_multiple_of(8) && most > 0);
        assert_eq!(kernel_mask_len(0, most).expect("length"), most);
    }
}
