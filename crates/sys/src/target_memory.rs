//! Words in the memory of a traced process.
use nix::errno::Errno;
use nix::sys::uio::{process_vm_readv, RemoteIoVec};
use nix::unistd::Pid;
use std::io::IoSliceMut;

/// The kernel's IOV_MAX: ranges per call.
const MOST_RANGES: usize = 1024;
const WORD: usize = size_of::<u64>();

/// The 64-bit words at these addresses; `None` where nothing is mapped.
///
/// # Errors
/// EPERM or ENOSYS where the process may not be read, ESRCH when it is gone.
pub fn read_words(pid: i32, addresses: &[u64]) -> Result<Vec<Option<u64>>, Errno> {
    let mut words = Vec::with_capacity(addresses.len());
    while words.len() < addresses.len() {
        let left = &addresses[words.len()..];
        let batch = &left[..left.len().min(MOST_RANGES)];
        let before = words.len();
        words.extend(read_batch(pid, batch)?.into_iter().map(Some));
        // A call ends at the first range that cannot be read.
        if words.len() - before < batch.len() {
            words.push(None);
        }
    }
    Ok(words)
}

/// The words before the first that cannot be read.
fn read_batch(pid: i32, addresses: &[u64]) -> Result<Vec<u64>, Errno> {
    let remote: Vec<RemoteIoVec> = addresses
        .iter()
        .map(|&address| RemoteIoVec {
            base: usize::try_from(address).unwrap_or(0),
            len: WORD,
        })
        .collect();
    let mut bytes = vec![0u8; addresses.len() * WORD];
    let read = process_vm_readv(
        Pid::from_raw(pid),
        &mut [IoSliceMut::new(&mut bytes)],
        &remote,
    );
    let read = match read {
        Err(Errno::EFAULT) => 0,
        other => other?,
    };
    let (words, _) = bytes[..read - read % WORD].as_chunks::<WORD>();
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_this_process() {
        let values = [3u64, 5];
        let at = |n: usize| values.as_ptr() as u64 + n as u64 * 8;
        let pid = std::process::id() as i32;
        let read = read_words(pid, &[at(0), 8, at(1), 16]);
        assert_eq!(read, Ok(vec![Some(3), None, Some(5), None]));
        let many = vec![at(1); MOST_RANGES + 1];
        assert_eq!(read_words(pid, &many), Ok(vec![Some(5); MOST_RANGES + 1]));
        assert_eq!(read_words(i32::MAX, &[at(0)]), Err(Errno::ESRCH));
    }
}
