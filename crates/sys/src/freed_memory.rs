//! Memory that has been freed, but is kept for later by the C library.

/// Gives freed memory back to the system. The C library keeps what was freed below blocks that
/// are still in use, and each thread's in an area that no other thread takes memory from.
pub fn return_to_system() {
    // SAFETY: takes no pointer and moves no block in use.
    unsafe { libc::malloc_trim(0) };
}
