//! The formats of the files in /proc and /sys that are asked. Pure.

/// A size in kB, as in /proc/meminfo, in bytes.
pub fn kilobytes(value: &str) -> Option<u64> {
    value
        .strip_suffix(" kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// How many a list such as `0-3,8` names; `None` if it is not such a list.
pub fn list_length(list: &str) -> Option<usize> {
    if list.trim().is_empty() {
        return Some(0);
    }
    let length = |part: &str| -> Option<usize> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.trim()
        .split(',')
        .try_fold(0usize, |n, part| n.checked_add(length(part)?))
}

/// The choice in brackets: `always [madvise] never`.
pub fn bracketed_choice(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(choice, _)| choice)
}

/// Processors' worth of time that a cgroup may use: `max 100000` or `150000 100000`.
/// `None` when it is not limited.
pub fn cpu_quota(cpu_max: &str) -> Option<f64> {
    let (quota, period) = cpu_max.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

/// The path of the cgroup in a line of /proc/self/cgroup: of the unified hierarchy, or
/// of the given controller.
pub fn cgroup<'a>(text: &'a str, controller: Option<&str>) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let mine = match controller {
            None => id == "0" && controllers.is_empty(),
            Some(c) => controllers.split(',').any(|x| x == c),
        };
        mine.then_some(path)
    })
}

/// Major and minor version of `6.1.0-18-amd64`.
pub fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let check = |text, expected| assert_eq!(kilobytes(text), expected);
        check("16384 kB", Some(16 << 20));
        check("18446744073709551615 kB", None);
        check("16384", None);
    }

    #[test]
    fn lists() {
        let check = |text, expected| assert_eq!(list_length(text), expected);
        check("0", Some(1));
        check("0-3", Some(4));
        check("0-3,8,10-11\n", Some(7));
        check("", Some(0));
        check("3-0", None);
        check("0-18446744073709551615", None);
        check("a", None);
    }

    #[test]
    fn choices() {
        let check = |text, expected| assert_eq!(bracketed_choice(text), expected);
        check("always [madvise] never", Some("madvise"));
        check("[always] madvise never", Some("always"));
        check("never", None);
    }

    #[test]
    fn quotas() {
        let check = |text, expected| assert_eq!(cpu_quota(text), expected);
        check("max 100000\n", None);
        check("150000 100000", Some(1.5));
        check("-1 100000", None);
        check("100000 0", None);
        check("", None);
    }

    #[test]
    fn cgroups() {
        let mixed = "9:name=systemd:/\n2:cpu,cpuacct:/docker/a:b\n0::/user.slice\n";
        let check = |controller, expected| assert_eq!(cgroup(mixed, controller), expected);
        check(None, Some("/user.slice"));
        check(Some("cpu"), Some("/docker/a:b"));
        check(Some("memory"), None);
    }

    #[test]
    fn versions() {
        let check = |text, expected| assert_eq!(kernel_version(text), expected);
        check("6.1.0-18-amd64", Some((6, 1)));
        check("5.10", Some((5, 10)));
        check("linux", None);
    }
}
