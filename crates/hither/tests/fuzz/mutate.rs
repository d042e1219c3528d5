//! Changes bytes at random, as a file changes that is damaged or made to do harm.
use hither_model::rng::Rng;

/// Numbers at which arithmetic goes wrong.
const NUMBERS: [&str; 14] = [
    "0",
    "-1",
    "1",
    "2",
    "127",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "1e308",
    "9223372036854775807",
    "18446744073709551615",
    "0.0000001",
];
/// Texts that say more than they should: to a terminal, to a page, to a shell, to a parser.
const TEXTS: [&str; 9] = [
    "",
    "\u{1b}]0;title\u{7}\u{1b}[2J",
    "\u{202e}desrever\u{2066}",
    "</script><img src=x onerror=alert(1)>",
    "'; $(touch /tmp/x) `id` \"",
    "../../../../etc/passwd",
    "\u{0}\u{fffd}",
    "&lt;&#x0;&undefined;]]>",
    "%s%n%p{}{0}{{",
];

/// What is larger is not made larger still.
const MOST_BYTES: usize = 2 << 20;

pub struct Mutator {
    pub rng: Rng,
}

impl Mutator {
    pub fn new(seed: u64) -> Mutator {
        Mutator {
            rng: Rng::new(seed),
        }
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.rng.next_u64() % limit.max(1) as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A changed copy: in one to eight places, seldom in many.
    pub fn mutate(&mut self, base: &[u8]) -> Vec<u8> {
        let mut bytes = base.to_vec();
        let text = std::str::from_utf8(base).is_ok();
        let times = match self.below(8) {
            0 => 1 + self.below(64),
            few => few,
        };
        for _ in 0..times {
            if bytes.len() > MOST_BYTES {
                break;
            }
            match text && self.below(4) > 0 {
                true => self.change_text(&mut bytes),
                false => self.change_bytes(&mut bytes),
            }
        }
        bytes
    }

    /// Where a change begins and ends.
    fn range(&mut self, bytes: &[u8], longest: usize) -> std::ops::Range<usize> {
        let start = self.below(bytes.len() + 1);
        let most = longest.min(bytes.len() - start);
        start..start + self.below(most + 1)
    }

    fn change_bytes(&mut self, bytes: &mut Vec<u8>) {
        let end = bytes.len();
        match self.below(9) {
            0 | 1 if end > 0 => {
                let at = self.below(end);
                bytes[at] ^= 1 << self.below(8);
            }
            2 if end > 0 => {
                let at = self.below(end);
                bytes[at] = self.rng.next_u64() as u8;
            }
            3 | 4 => {
                // A number of one to eight bytes.
                let width = 1 << self.below(4);
                let at = self.below(end);
                let value = match self.below(5) {
                    0 => 0,
                    1 => u64::MAX,
                    2 => 1 << self.below(64),
                    3 => (1 << self.below(64)) - 1,
                    _ => self.rng.next_u64(),
                };
                let value = value.to_le_bytes();
                for (to, from) in bytes[at.min(end)..].iter_mut().zip(&value[..width]) {
                    *to = *from;
                }
            }
            5 => bytes.truncate(self.below(end + 1)),
            6 => drop(bytes.drain(self.range(bytes, 64))),
            7 => {
                // A part comes twice, or somewhere else.
                let part = bytes[self.range(bytes, 256)].to_vec();
                let at = self.below(end + 1);
                bytes.splice(at..at, part);
            }
            _ => {
                let value = self.rng.next_u64().to_le_bytes();
                let at = self.below(end + 1);
                bytes.splice(at..at, value);
            }
        }
    }

    fn change_text(&mut self, bytes: &mut Vec<u8>) {
        match self.below(6) {
            0 | 1 => {
                let number = self.run_of(bytes, |b| b.is_ascii_digit() || b == b'.');
                let new = self.pick(&NUMBERS).as_bytes().to_vec();
                bytes.splice(number, new);
            }
            2 => {
                // What is between quotes.
                let quoted = self.run_of(bytes, |b| b != b'"');
                let new = match self.below(8) {
                    0 => vec![b'A'; 1 << 20],
                    1 => b"[".repeat(100_000),
                    _ => self.pick(&TEXTS).as_bytes().to_vec(),
                };
                bytes.splice(quoted, new);
            }
            3 => {
                // An attribute or a member, with its name.
                let word = self.run_of(bytes, |b| !b.is_ascii_whitespace() && b != b',');
                bytes.drain(word);
            }
            4 => {
                let line = self.run_of(bytes, |b| b != b'\n');
                bytes.drain(line);
            }
            _ => {
                let line = bytes[self.run_of(bytes, |b| b != b'\n')].to_vec();
                let most = MOST_BYTES / line.len().max(1);
                let times = (1 + self.below(3) * self.below(200)).min(most);
                let at = self.run_of(bytes, |b| b != b'\n').start;
                bytes.splice(at..at, line.repeat(times));
            }
        }
    }

    /// The next run of such bytes behind a place.
    fn run_of(&mut self, bytes: &[u8], is_part: impl Fn(u8) -> bool) -> std::ops::Range<usize> {
        let from = self.below(bytes.len());
        let part = |b: &u8| is_part(*b);
        let start = bytes[from..].iter().position(part);
        let start = start.map_or(bytes.len(), |n| from + n);
        let length = bytes[start..].iter().position(|b| !part(b));
        start..length.map_or(bytes.len(), |n| start + n)
    }
}
