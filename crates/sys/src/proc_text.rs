//! Fields of the files of /proc, as proc(5) says. Pure.

/// The value of `key` in lines of `key: value`, as in /proc/self/status and /proc/meminfo.
#[must_use]
pub fn proc_field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
    line.map(str::trim)
}

/// A field of a stat file, counted from 1, behind the name, which may hold anything.
#[must_use]
pub fn stat_field(stat: &str, field: usize) -> Option<&str> {
    stat.rsplit_once(") ")?.1.split_whitespace().nth(field - 3)
}

/// The limit that holds now, of those in a limits file.
#[must_use]
pub fn soft_limit<'a>(limits: &'a str, name: &str) -> Option<&'a str> {
    let line = limits.lines().find_map(|l| l.strip_prefix(name));
    line?.split_whitespace().next()
}

/// Whether there is swap space, by /proc/swaps.
#[must_use]
pub fn has_swap(swaps: &str) -> bool {
    swaps.lines().count() > 1
}

/// Whether kernel.numa_balancing has memory of all nodes gone through: 2 is for slow memory only.
#[must_use]
pub fn hints_all_memory(numa_balancing: &str) -> bool {
    let mode = numa_balancing.trim().parse();
    mode.is_ok_and(|mode: u32| mode & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        let status = "Name:\tcat\nSeccomp:\t2\nSeccomp_filters:\t1\nCpus_allowed_list:\t0-1\n";
        let check = |key, expected| assert_eq!(proc_field(status, key), expected);
        check("Seccomp", Some("2"));
        check("Cpus_allowed_list", Some("0-1"));
        check("Cpus", None);
        check("", None);
    }

    #[test]
    fn names_may_hold_parentheses() {
        let check =
            |field, expected| assert_eq!(stat_field("17 (a) R (b) S 4 5\n", field), expected);
        check(3, Some("S"));
        check(5, Some("5"));
        check(6, None);
        assert_eq!(stat_field("17", 3), None);
    }

    #[test]
    fn limits() {
        let limits = "Limit       Soft Limit  Hard Limit  Units\n\
                      Max stack size  8388608  unlimited  bytes\n\
                      Max core file size  0  unlimited  bytes\n";
        let check = |name, expected| assert_eq!(soft_limit(limits, name), expected);
        check("Max stack size", Some("8388608"));
        check("Max core file size", Some("0"));
        check("Max data size", None);
    }
}
