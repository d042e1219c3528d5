//! Looks through a machine's XML before hwloc does. hwloc (2.9) takes for granted that what it once wrote
//! comes back as it was: it falls over objects without sets, or in others than their own.
//!
//! Only what hwloc writes itself passes: elements with quoted attributes. What an object is and holds is
//! as in the manual of hwloc, "Importing and exporting topologies from/to XML files" and "Terms and
//! Definitions".

use std::collections::HashSet;

/// Enough for machines with tens of thousands of units.
const MOST_OBJECTS: usize = 1 << 18;
/// hwloc has a bit for each number.
const MOST_NUMBER: u32 = 1 << 22;
const MOST_NESTED: usize = 64;
/// Words of 32 bits: units of a machine.
const MOST_WORDS: usize = 1 << 11;
/// Objects that are not where units and nodes are, and have no sets.
const BESIDE: [&str; 4] = ["Misc", "Bridge", "PCIDev", "OSDev"];
const SETS: [&str; 4] = ["cpuset", "complete_cpuset", "nodeset", "complete_nodeset"];

/// Whether hwloc can be given this text. It may still find that it is no machine.
pub(super) fn is_sound(text: &str) -> bool {
    Checker::default().check(text).is_some()
}

/// An element that has not ended yet.
struct OpenElement {
    name: String,
    /// `None` of what is not an object, or has no sets.
    object: Option<OpenObject>,
}

/// An object with what is in it so far.
#[derive(Clone, Default)]
struct OpenObject {
    kind: String,
    units: Bits,
    all_units: Bits,
    nodes: Bits,
    /// Nodes of the objects around it.
    nodes_around: Bits,
    /// Nodes that are its own, and those of the objects in it.
    own_nodes: Bits,
    nodes_within: Bits,
    /// Of the objects in it.
    units_within: Bits,
    last_unit: Option<usize>,
    has_children: bool,
}

impl OpenObject {
    fn is_memory(&self) -> bool {
        ["NUMANode", "MemCache"].contains(&self.kind.as_str())
    }

    /// Whether another may begin in it: memory first, then the others in the order of their units.
    fn may_hold(&mut self, inner: &OpenObject) -> bool {
        if inner.is_memory() {
            return !self.has_children && self.kind != "NUMANode" && inner.units == self.units;
        }
        let first = inner.all_units.first();
        // Memory without units may come in a group of its own.
        let in_order = first.is_none() || first > self.last_unit;
        self.last_unit = first.or(self.last_unit);
        self.has_children = true;
        !self.is_memory() && self.kind != "PU" && in_order && inner.units.is_in(&self.units)
    }

    /// One that was in it has ended. Nothing is in two.
    fn add(&mut self, inner: &OpenObject) -> bool {
        if inner.is_memory() {
            return self.own_nodes.add(&inner.nodes);
        }
        let mut nodes = inner.own_nodes.clone();
        nodes.add(&inner.nodes_within)
            && self.nodes_within.add(&nodes)
            && self.units_within.add(&inner.units)
    }

    /// Whether its sets are those of what is in it.
    fn is_whole(&self) -> bool {
        if self.kind == "NUMANode" {
            return true;
        }
        let mut nodes = self.own_nodes.clone();
        if self.is_memory() {
            return nodes == self.nodes;
        }
        let apart = nodes.add(&self.nodes_within) && nodes.add(&self.nodes_around);
        apart && nodes == self.nodes && (self.kind == "PU" || self.units_within == self.units)
    }
}

#[derive(Default)]
struct Checker {
    open: Vec<OpenElement>,
    objects: usize,
    units: Bits,
    nodes: Bits,
    /// Those by which objects are told apart, and how many objects have none.
    numbers: HashSet<u32>,
    unnumbered: usize,
}

impl Checker {
    fn check(&mut self, text: &str) -> Option<()> {
        let mut rest = text;
        while let Some(at) = rest.find('<') {
            self.may_have_text(&rest[..at])?;
            rest = &rest[at + 1..];
            let end = match rest {
                _ if rest.starts_with("!--") => rest.find("-->")? + 3,
                _ => tag_end(rest)?,
            };
            let (tag, behind) = rest.split_at(end);
            match tag.as_bytes().first()? {
                b'!' | b'?' if !self.open.is_empty() => return None,
                b'!' if tag.starts_with("!--") => {}
                // Entities would let a short text be a long one, and have other files read.
                b'!' => (!tag.contains('[')).then_some(())?,
                b'?' => {}
                b'/' => self.close(tag)?,
                _ => self.open(tag.strip_suffix('>')?)?,
            }
            rest = behind;
        }
        self.may_have_text(rest)?;
        let complete = self.open.is_empty() && self.units.any() && self.nodes.any();
        complete.then_some(())
    }

    /// Only lists of numbers and the like have text in them: behind other text hwloc passes over objects.
    fn may_have_text(&self, text: &str) -> Option<()> {
        let inner = self.open.last();
        let structure = inner.is_none_or(|e| ["topology", "object"].contains(&e.name.as_str()));
        let blank = text.bytes().all(|b| b.is_ascii_whitespace());
        (blank || !structure).then_some(())
    }

    fn close(&mut self, tag: &str) -> Option<()> {
        let name = tag.strip_prefix('/')?.strip_suffix('>')?.trim();
        let open = self.open.pop()?;
        if open.name != name {
            return None;
        }
        self.end(open)
    }

    fn end(&mut self, ended: OpenElement) -> Option<()> {
        let Some(object) = ended.object else {
            return Some(());
        };
        let around = self.open.iter_mut().rev().find_map(|e| e.object.as_mut());
        let added = around.is_none_or(|around| around.add(&object));
        (object.is_whole() && added).then_some(())
    }

    fn open(&mut self, tag: &str) -> Option<()> {
        let (tag, single) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        let (name, attributes) = attributes(tag)?;
        let object = match name == "object" {
            true => self.object(&attributes)?,
            false => None,
        };
        if self.open.len() >= MOST_NESTED {
            return None;
        }
        let name = name.to_owned();
        let element = OpenElement { name, object };
        match single {
            true => self.end(element),
            false => {
                self.open.push(element);
                Some(())
            }
        }
    }

    fn object(&mut self, attributes: &[(&str, &str)]) -> Option<Option<OpenObject>> {
        self.objects += 1;
        let value = |name: &str| {
            let found = attributes.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| *value)
        };
        let kind = value("type")?;
        if self.objects > MOST_OBJECTS {
            return None;
        }
        // Where none has one, as in what some versions wrote, hwloc numbers them.
        match value("gp_index") {
            Some(number) => {
                let number: u32 = number.parse().ok()?;
                (self.numbers.insert(number) && number < MOST_NUMBER).then_some(())?;
            }
            None => self.unnumbered += 1,
        }
        (self.unnumbered == 0 || self.numbers.is_empty()).then_some(())?;
        is_its_cache(kind, value).then_some(())?;
        let around = self.open.iter_mut().rev().find(|e| e.name == "object");
        if BESIDE.contains(&kind) {
            return around.map(|_| None);
        }
        let mut sets = Vec::new();
        for name in SETS {
            sets.push(Bits::read(value(name)?)?);
        }
        let [units, all_units, nodes, all_nodes]: [Bits; 4] = sets.try_into().ok()?;
        let sound = units.is_in(&all_units) && nodes.is_in(&all_nodes);
        let mut object = OpenObject {
            kind: kind.to_owned(),
            units,
            all_units,
            nodes,
            ..OpenObject::default()
        };
        let fits = match around {
            Some(around) => {
                let around = around.object.as_mut()?;
                object.nodes_around = around.nodes_around.clone();
                let apart = object.nodes_around.add(&around.own_nodes);
                kind != "Machine" && apart && around.may_hold(&object)
            }
            None => kind == "Machine" && self.objects == 1,
        };
        let single = match kind {
            "PU" => {
                object.all_units == object.units
                    && self.units.add_one(&object.units, value("os_index")?)?
            }
            "NUMANode" => {
                all_nodes == object.nodes
                    && self.nodes.add_one(&object.nodes, value("os_index")?)?
            }
            _ => true,
        };
        (sound && fits && single).then_some(Some(object))
    }
}

/// Whether what is said of a cache is what its type says; true of what is none.
fn is_its_cache<'a>(kind: &str, value: impl Fn(&str) -> Option<&'a str>) -> bool {
    let Some(level) = kind.strip_prefix('L').and_then(|k| k.strip_suffix("Cache")) else {
        return true;
    };
    let (level, types) = match level.strip_suffix('i') {
        Some(level) => (level, &["2"][..]),
        None => (level, &["0", "1"][..]),
    };
    value("depth") == Some(level) && value("cache_type").is_some_and(|t| types.contains(&t))
}

/// Where a tag ends, behind its `>`.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'<') => return None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

/// Name and attributes of a tag; of attributes that come twice, there is no saying which counts.
fn attributes(tag: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let end = tag.find(|c: char| c.is_ascii_whitespace());
    let (name, mut rest) = tag.split_at(end.unwrap_or(tag.len()));
    let mut found: Vec<(&str, &str)> = Vec::new();
    loop {
        rest = rest.trim_ascii();
        if rest.is_empty() {
            return (!name.is_empty()).then_some((name, found));
        }
        let (key, value) = rest.split_once('=')?;
        let value = value.strip_prefix('"')?;
        let (value, behind) = value.split_once('"')?;
        if found.iter().any(|(known, _)| *known == key) || found.len() > 64 {
            return None;
        }
        found.push((key, value));
        rest = behind;
    }
}

/// A set as hwloc writes it: words of 32 bits, the highest first.
#[derive(Clone, Default, PartialEq)]
struct Bits(Vec<u32>);

impl Bits {
    fn read(text: &str) -> Option<Bits> {
        let mut words = Vec::new();
        text.starts_with("0x").then_some(())?;
        for word in text.rsplit(',') {
            // Of a word of zeros behind others only the comma is there.
            let digits = match word {
                "" => "0",
                _ => word.strip_prefix("0x")?,
            };
            // A sign would pass as well.
            let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
            if !plain || words.len() >= MOST_WORDS {
                return None;
            }
            words.push(u32::from_str_radix(digits, 16).ok()?);
        }
        while words.last() == Some(&0) {
            words.pop();
        }
        Some(Bits(words))
    }

    fn any(&self) -> bool {
        self.0.iter().any(|&word| word != 0)
    }

    fn is_in(&self, other: &Bits) -> bool {
        let words = self.0.iter().enumerate();
        let outside = |(n, word): (usize, &u32)| word & !other.0.get(n).unwrap_or(&0);
        words.map(outside).all(|bits| bits == 0)
    }

    fn first(&self) -> Option<usize> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some(word * 32 + self.0[word].trailing_zeros() as usize)
    }

    /// Whether nothing of it was there before.
    fn add(&mut self, more: &Bits) -> bool {
        if self.0.len() < more.0.len() {
            self.0.resize(more.0.len(), 0);
        }
        let mut apart = true;
        for (to, from) in self.0.iter_mut().zip(&more.0) {
            apart &= *to & from == 0;
            *to |= from;
        }
        apart
    }

    /// Adds the set of a unit or node, which is its number alone and no other's.
    fn add_one(&mut self, one: &Bits, number: &str) -> Option<bool> {
        let number: usize = number.parse().ok()?;
        let (word, bit) = (number / 32, 1 << (number % 32));
        let alone = one.0.iter().map(|word| word.count_ones()).sum::<u32>() == 1;
        if !alone || one.0.get(word)? & bit == 0 {
            return Some(false);
        }
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        Some(new)
    }
}
