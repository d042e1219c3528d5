//! The interconnect: messages go along the links of a route, one link after another. Each counts
//! its bytes, and is occupied for bytes / bandwidth.
use super::busy_intervals::BusyIntervals;
use super::simulated_machine::SimulatedMachine;

struct LinkState {
    latency: f64,
    cycles_per_byte: f64,
    queue: BusyIntervals,
}

pub struct Interconnect {
    links: Vec<LinkState>,
    /// By from * endpoints + to: where its links begin in `hops`; one more at the end.
    starts: Vec<u32>,
    hops: Vec<u32>,
    endpoints: usize,
    pub data: u32,
    pub control: u32,
    /// Cycles between two caches of a package.
    pub inside: f64,
    pub timed: bool,
}

impl Interconnect {
    pub fn new(machine: &SimulatedMachine, timed: bool) -> Self {
        let m = &machine.links;
        let (mut starts, mut hops) = (vec![0], Vec::new());
        for route in m.routes.iter().flatten() {
            hops.extend(route);
            starts.push(hops.len() as u32);
        }
        let links = m.links.iter().map(|l| LinkState {
            latency: l.latency,
            cycles_per_byte: 1.0 / l.bandwidth,
            queue: BusyIntervals::default(),
        });
        Interconnect {
            links: links.collect(),
            starts,
            hops,
            endpoints: m.routes.len(),
            data: m.data_bytes,
            control: m.control_bytes,
            inside: f64::from(m.inside),
            timed,
        }
    }

    /// Sends a message; when it is there.
    pub fn send(&mut self, from: u32, to: u32, bytes: u32, at: f64, counts: &mut [u64]) -> f64 {
        let pair = from as usize * self.endpoints + to as usize;
        let mut time = at;
        let hops = self.starts[pair] as usize..self.starts[pair + 1] as usize;
        for &n in &self.hops[hops] {
            let n = n as usize;
            counts[n] += u64::from(bytes);
            if self.timed {
                let link = &mut self.links[n];
                let length = f64::from(bytes) * link.cycles_per_byte;
                time = link.queue.reserve(time, length) + length + link.latency;
            }
        }
        time
    }

    /// Whether nothing but a package lies between two endpoints.
    pub fn same_package_only(&self, from: u32, to: u32) -> bool {
        let pair = from as usize * self.endpoints + to as usize;
        self.starts[pair] == self.starts[pair + 1]
    }
}
