//! The kernel's own hinting faults: it takes pages away from time to time to see on which
//! node they are used (`kernel.numa_balancing`), on machines with one node too. Nothing of
//! the program is touched by us. It sees private memory only, and with hinting faults comes
//! that the kernel moves pages itself.
//!
//! How fast it goes through a program's memory can be set where debugfs is open to us; else
//! it is switched off while the budget is used up.
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hither_profile::Nanos;

use super::{FaultSampler, MemoryKind, SamplerContext};
use crate::auto::sysctls::{self, SysctlOverrides, SysctlSetting};
use crate::auto::taken_pages::TakenPages;
use hither_sys::proc_text::hints_all_memory;
use hither_sys::Pid;

const NUMA_BALANCING_SYSCTL: &str = "/proc/sys/kernel/numa_balancing";
const NUMA_BALANCING_DEBUGFS: &str = "/sys/kernel/debug/sched/numa_balancing";
/// Milliseconds in which the kernel goes once through all memory of a process, of the
/// processor time of each of its threads. Where threads share, it waits longer by the number
/// of those that do, hence the short ones.
const SCAN_PERIODS_MS: std::ops::RangeInclusive<f64> = 4.0..=60_000.0;
const FIRST_SCAN_PERIOD_MS: f64 = 20.0;
/// Megabytes of one step; the kernel makes at most 2560 MB / SIZE steps a second.
const SCAN_SIZE_MB: u64 = 16;
/// Milliseconds for which new memory is left alone. Four times as long the kernel remembers
/// which threads used a mapping, and those alone go through it again (Linux 6.4 and later):
/// much shorter, and after two rounds hardly anybody does.
const SCAN_DELAY_MS: u64 = 250;
/// Between two changes of the period.
const PATIENCE: Duration = Duration::from_millis(500);
/// A fault takes 0.84 us, its record 0.12, its share of the kernel's walk the rest.
const FAULT_COST: Nanos = 1500;

#[derive(Debug)]
pub struct NumaBalancingSampler {
    /// May be changed.
    ours: bool,
    /// The period can be set, and is this, in milliseconds.
    period: Option<f64>,
    on: bool,
    /// Since the last change: when it was, faults wanted and faults seen before.
    since: Instant,
    wanted: u64,
    before: u64,
    /// At the start, and when it was read last.
    first: HintingFaultCounts,
    now: HintingFaultCounts,
}

fn balancing_setting(on: bool) -> SysctlSetting {
    SysctlSetting {
        path: PathBuf::from(NUMA_BALANCING_SYSCTL),
        value: if on { "1" } else { "0" }.to_owned(),
    }
}

fn scan_rate_setting(name: &str, value: u64) -> SysctlSetting {
    SysctlSetting {
        path: PathBuf::from(NUMA_BALANCING_DEBUGFS).join(name),
        value: value.to_string(),
    }
}

impl NumaBalancingSampler {
    /// `sysctls` where settings of the system may be changed.
    pub fn new(sysctls: Option<&SysctlOverrides>) -> Result<NumaBalancingSampler, String> {
        let Ok(before) = fs::read_to_string(NUMA_BALANCING_SYSCTL) else {
            return Err("this kernel has no NUMA balancing".to_owned());
        };
        let mut sampler = NumaBalancingSampler {
            ours: false,
            period: None,
            on: hints_all_memory(&before),
            since: Instant::now(),
            wanted: 0,
            before: 0,
            first: HintingFaultCounts::read(),
            now: HintingFaultCounts::read(),
        };
        let Some(sysctls) = sysctls else {
            return match sampler.on {
                true => Ok(sampler),
                false => Err("kernel.numa_balancing is 0; allow hither to switch it on for the run with --allow-sysctl".to_owned()),
            };
        };
        let settings = [
            balancing_setting(true),
            scan_rate_setting("scan_delay_ms", SCAN_DELAY_MS),
            scan_rate_setting("scan_size_mb", SCAN_SIZE_MB),
            scan_rate_setting("scan_period_max_ms", FIRST_SCAN_PERIOD_MS as u64),
            scan_rate_setting("scan_period_min_ms", FIRST_SCAN_PERIOD_MS as u64),
        ];
        let refused = sysctls
            .override_settings(&settings)
            .map_err(|e| format!("settings of the system cannot be changed safely ({e})"))?;
        if refused.contains(&settings[0]) {
            return match sampler.on {
                true => Ok(sampler),
                false => Err("kernel.numa_balancing is 0 and may not be changed; be root, outside of containers".to_owned()),
            };
        }
        sampler.ours = true;
        sampler.on = true;
        sampler.period = (refused.is_empty()).then_some(FIRST_SCAN_PERIOD_MS);
        Ok(sampler)
    }

    /// The period that would have brought as many faults as were wanted.
    fn adapt_scan_period(&mut self, extra: u64) -> io::Result<()> {
        let Some(period) = self.period else {
            (self.since, self.wanted) = (Instant::now(), 0);
            return Ok(());
        };
        let seen = extra.saturating_sub(self.before);
        let ratio = (seen as f64 + 1.0) / (self.wanted as f64 + 1.0);
        let next = next_period(period, ratio);
        (self.since, self.wanted, self.before) = (Instant::now(), 0, extra);
        if (next / period - 1.0).abs() < 0.1 {
            return Ok(());
        }
        self.period = Some(next);
        // The upper one first where it grows: the kernel takes no minimum above it.
        let mut both = [
            scan_rate_setting("scan_period_max_ms", next as u64),
            scan_rate_setting("scan_period_min_ms", next as u64),
        ];
        if next < period {
            both.reverse();
        }
        both.iter().try_for_each(sysctls::write_setting)
    }
}

/// Keeps the kernel from moving pages itself while hither does, where its faults are not
/// needed: a remark for the user where that cannot be. Where they are needed it is left
/// alone, for it can be held off from inside the program only, by binding each run of pages
/// to the node that it is on (MPOL_BIND with MPOL_F_NUMA_BALANCING): that decides where new
/// pages go, splits mappings and overrides what the program asked for, and the kernel moves
/// pages to the threads that use them, as rule (6) does.
pub fn hold_off(sysctls: Option<&SysctlOverrides>) -> Option<String> {
    if !is_active() {
        return None;
    }
    let held = sysctls.map(|sysctls| sysctls.override_settings(&[balancing_setting(false)]));
    match held {
        Some(Ok(refused)) if refused.is_empty() => None,
        Some(_) => Some("kernel.numa_balancing is on and may not be changed, so the kernel moves pages too".to_owned()),
        None => Some("kernel.numa_balancing is on, so the kernel moves pages too; --allow-sysctl lets hither switch it off for the run".to_owned()),
    }
}

/// Whether the kernel takes pages now, to see who uses them.
pub fn is_active() -> bool {
    let now = fs::read_to_string(NUMA_BALANCING_SYSCTL).unwrap_or_default();
    now.trim() != "0" && !now.is_empty()
}

/// What the kernel counts, of all programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HintingFaultCounts {
    /// Faults on pages that it took away, and pages that it moved.
    taken: u64,
    moved: u64,
}

impl HintingFaultCounts {
    fn read() -> HintingFaultCounts {
        HintingFaultCounts::parse(&fs::read_to_string("/proc/vmstat").unwrap_or_default())
    }

    fn parse(vmstat: &str) -> HintingFaultCounts {
        let value = |name: &str| {
            let value = vmstat.lines().find_map(|line| line.strip_prefix(name));
            value.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
        };
        HintingFaultCounts {
            taken: value("numa_hint_faults "),
            moved: value("numa_pages_migrated "),
        }
    }
}

/// No faster than doubling and halving.
fn next_period(period: f64, ratio: f64) -> f64 {
    (period * ratio.clamp(0.5, 2.0)).clamp(*SCAN_PERIODS_MS.start(), *SCAN_PERIODS_MS.end())
}

impl FaultSampler for NumaBalancingSampler {
    fn name(&self) -> &'static str {
        "numa-balancing"
    }

    fn cost_per_fault(&self) -> Nanos {
        FAULT_COST
    }

    /// Where its pace cannot be set it is too slow to do without others.
    fn covers(&self) -> &'static [MemoryKind] {
        match self.period {
            Some(_) => &[MemoryKind::Private],
            None => &[],
        }
    }

    /// The kernel picks.
    fn may_take(&self, _: (Pid, u64), _: &SamplerContext) -> bool {
        false
    }

    fn pages_taken(&self) -> u64 {
        self.now.taken.saturating_sub(self.first.taken)
    }

    fn take_pages(
        &mut self,
        wanted: u32,
        view: &SamplerContext,
        _: &mut TakenPages,
    ) -> io::Result<()> {
        self.wanted += u64::from(wanted);
        if self.since.elapsed() < PATIENCE {
            return Ok(());
        }
        self.now = HintingFaultCounts::read();
        if !self.ours {
            self.since = Instant::now();
            return Ok(());
        }
        let on = self.wanted > 0;
        if on != self.on {
            self.on = on;
            sysctls::write_setting(&balancing_setting(on))?;
        }
        self.adapt_scan_period(view.extra)
    }

    fn note(&self) -> Option<String> {
        let pace = if !self.ours {
            "kernel.numa_balancing is on already and was left as it is: how often it samples is not ours to say"
        } else if self.period.is_none() {
            "debugfs is closed to hither, so the kernel goes through the program's memory once a second or less often: patterns are seen after some seconds"
        } else {
            ""
        };
        let moved = match HintingFaultCounts::read()
            .moved
            .saturating_sub(self.first.moved)
        {
            0 => String::new(),
            moved => format!("the kernel itself moved {moved} pages meanwhile, of all programs"),
        };
        let parts = [pace, &moved].map(str::to_owned);
        let note: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        (!note.is_empty()).then(|| note.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters() {
        let vmstat = "numa_pte_updates 12\nnuma_hint_faults 7\nnuma_pages_migrated 3\n";
        let expected = HintingFaultCounts { taken: 7, moved: 3 };
        assert_eq!(HintingFaultCounts::parse(vmstat), expected);
        assert_eq!(HintingFaultCounts::parse(""), HintingFaultCounts::default());
    }

    #[test]
    fn modes() {
        let check = |value, expected| assert_eq!(hints_all_memory(value), expected, "{value}");
        check("0\n", false);
        check("1\n", true);
        check("2\n", false);
        check("3\n", true);
        check("", false);
    }

    #[test]
    fn periods_follow_what_is_wanted() {
        let check = |period, ratio, expected: f64| {
            let next = next_period(period, ratio);
            assert!((next - expected).abs() < 1e-9, "{next}");
        };
        check(100.0, 1.0, 100.0);
        // Half as many as wanted: twice as fast; a hundredth: no faster than that.
        check(200.0, 0.5, 100.0);
        check(200.0, 0.01, 100.0);
        check(200.0, 40.0, 400.0);
        check(6.0, 0.5, 4.0);
        check(50_000.0, 2.0, 60_000.0);
    }
}
