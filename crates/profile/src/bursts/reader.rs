//! `bursts.bin` opened: what is in it, checked frame by frame; the code of the pieces stays on
//! disk until a decoder asks for it.
use super::block::{BasicBlock, MAX_BLOCKS};
use super::block_tables::BlockTables;
use super::decode::DecoderState;
use super::framing::{
    checksum, ByteReader, BLOCKS, BURSTS_FILE, CUT, END, FRAME_HEAD, MAGIC, MAX_PAYLOAD,
    MAX_PLACES, MAX_WINDOWS, PIECE, PIECE_HEAD, PLACES, VERSION, WAITED,
};
use super::{BurstAccess, BurstPiece, BurstWindow, NamedPages};
use crate::error::ProfileError;
use crate::files::open_regular_file;
use crate::ids::{PageNo, ProcessIx, RegionIx, ThreadIx};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where the code of a piece is.
#[derive(Clone, Copy)]
struct StoredPiece {
    offset: u64,
    length: u32,
    sequence: u32,
    flags: u32,
}

/// The burst traces of a profile.
pub struct BurstTrace {
    file: File,
    tables: BlockTables,
    windows: Vec<BurstWindow>,
    /// By window and position of the piece in it.
    stored: Vec<Vec<StoredPiece>>,
    places: Vec<Vec<NamedPages>>,
    accesses: u64,
    broken: Option<String>,
}

/// What was read so far, by number of window.
#[derive(Default)]
struct BurstScan {
    tables: BlockTables,
    pieces: BTreeMap<u32, Vec<(BurstPiece, StoredPiece)>>,
    places: BTreeMap<u32, Vec<NamedPages>>,
    rows: usize,
    ended: bool,
}

impl BurstTrace {
    /// Opens the bursts of the profile in folder `dir`; `None` if it has none. A file that
    /// breaks off or is damaged is used up to there, see [`BurstTrace::broken`].
    ///
    /// # Errors
    /// If the file cannot be read, or is not one of bursts, or from a newer hither.
    pub fn open(dir: &Path) -> Result<Option<BurstTrace>, ProfileError> {
        let path = dir.join(BURSTS_FILE);
        match open_regular_file(&path) {
            Ok(file) => BurstTrace::of_file(file, path).map(Some),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(ProfileError::io("read", path)(e)),
        }
    }

    /// As [`BurstTrace::open`]; `path` is what messages call the file.
    pub(crate) fn of_file(file: File, path: PathBuf) -> Result<BurstTrace, ProfileError> {
        let mut found = BurstScan::default();
        let mut source = FrameReader::new(&file);
        let version = source.version().map_err(ProfileError::io("read", &path))?;
        if version != Some(VERSION) {
            let what = match version {
                None => "it does not hold bursts".to_owned(),
                Some(version) => format!("its version is {version}, this hither reads {VERSION}"),
            };
            return Err(ProfileError::Damaged { path, what });
        }
        let stopped = loop {
            match source.next_frame() {
                Ok(Some(frame)) if found.add_frame(&frame).is_some() => {}
                Ok(Some(_)) => break Some("a frame makes no sense".to_owned()),
                Ok(None) => break None,
                Err(why) => break Some(why),
            }
        };
        let at = source.at;
        let why = match stopped {
            None if found.ended => None,
            None => Some("it ends early".to_owned()),
            why => why,
        };
        let broken = why.map(|why| {
            format!(
                "{} is damaged after {at} bytes ({why}): what comes before is used",
                path.display()
            )
        });
        Ok(found.finish(file, broken))
    }

    /// The windows in order of time, without those that hold nothing.
    #[must_use]
    pub fn windows(&self) -> &[BurstWindow] {
        &self.windows
    }

    /// A sentence when the file was not read to its end.
    #[must_use]
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Accesses in all windows.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Threads that have pieces in a window.
    #[must_use]
    pub fn threads(&self, window: usize) -> Vec<ThreadIx> {
        let pieces = self.windows.get(window).map_or(&[][..], |w| &w.pieces);
        let mut threads: Vec<_> = pieces.iter().map(|p| p.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// The names of pages while a window was recorded: runs sorted by process and page.
    #[must_use]
    pub fn named_pages(&self, window: usize) -> &[NamedPages] {
        self.places.get(window).map_or(&[], |p| p)
    }

    /// The name of the page with address `page` * 4096 of a process; `None` where no access
    /// was counted.
    #[must_use]
    pub fn page_name(
        &self,
        window: usize,
        process: ProcessIx,
        page: u64,
    ) -> Option<(RegionIx, PageNo)> {
        let places = self.named_pages(window);
        let after = places.partition_point(|p| (p.process, p.page) <= (process, page));
        let place = places.get(after.checked_sub(1)?)?;
        let inside = page.wrapping_sub(place.page);
        let here = place.process == process && inside < place.pages;
        let number = u64::from(place.first.0).saturating_add(inside);
        here.then_some((place.region, PageNo(u32::try_from(number).ok()?)))
    }

    /// The accesses of a thread in a window, piece by piece.
    #[must_use]
    pub fn decoder(&self, window: usize, thread: ThreadIx) -> PieceDecoder<'_> {
        let pieces = self.windows.get(window).map_or(&[][..], |w| &w.pieces);
        let mine = (0u32..).zip(pieces).filter(|(_, p)| p.thread == thread);
        PieceDecoder {
            bursts: self,
            window,
            pieces: mine.map(|(at, _)| at).collect(),
            at: 0,
            code: Vec::new(),
            state: DecoderState::new(),
            damaged: false,
        }
    }
}

/// Reads the pieces of one thread in one window, in order.
#[derive(Clone)]
pub struct PieceDecoder<'a> {
    bursts: &'a BurstTrace,
    window: usize,
    pieces: Vec<u32>,
    at: usize,
    code: Vec<u8>,
    state: DecoderState,
    damaged: bool,
}

impl PieceDecoder<'_> {
    /// Fills `into` with the accesses of the next piece; `None` after the last, or where the
    /// file turns out to be damaged.
    pub fn next(&mut self, into: &mut Vec<BurstAccess>) -> Option<BurstPiece> {
        into.clear();
        let at = *self.pieces.get(self.at)? as usize;
        self.at += 1;
        let decoded = self.decode(at, into);
        if decoded.is_none() {
            self.damaged = true;
            self.at = self.pieces.len();
            into.clear();
        }
        decoded
    }

    /// What comes next, if the file is not damaged there.
    #[must_use]
    pub fn peek(&self) -> Option<&BurstPiece> {
        let at = *self.pieces.get(self.at)? as usize;
        self.bursts.windows.get(self.window)?.pieces.get(at)
    }

    /// Whether the thread's accesses end where they do because of damage.
    #[must_use]
    pub fn damaged(&self) -> bool {
        self.damaged
    }

    fn decode(&mut self, at: usize, into: &mut Vec<BurstAccess>) -> Option<BurstPiece> {
        let bursts = self.bursts;
        let piece = bursts.windows.get(self.window)?.pieces.get(at)?;
        let stored = bursts.stored.get(self.window)?.get(at)?;
        self.code.resize(stored.length as usize, 0);
        (bursts.file)
            .read_exact_at(&mut self.code, stored.offset)
            .ok()?;
        self.state
            .decode_piece(&bursts.tables, &self.code, (piece, stored.flags), into)?;
        Some(*piece)
    }
}

/// Frames of a file, one after the other.
struct FrameReader<'a> {
    file: BufReader<&'a File>,
    /// Bytes of whole frames so far.
    at: u64,
    payload: Vec<u8>,
}

/// A frame and where its payload begins.
struct BurstFrame<'a> {
    kind: u8,
    payload: &'a [u8],
    offset: u64,
}

impl<'a> FrameReader<'a> {
    fn new(file: &'a File) -> Self {
        FrameReader {
            file: BufReader::with_capacity(1 << 16, file),
            at: 0,
            payload: Vec::new(),
        }
    }

    /// `None`: this is another kind of file.
    fn version(&mut self) -> std::io::Result<Option<u32>> {
        let mut head = [0; 12];
        match self.file.read_exact(&mut head) {
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        self.at = head.len() as u64;
        let version = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        Ok((head[..8] == MAGIC).then_some(version))
    }

    /// The next frame; `None` at the end of the file, an error where it breaks.
    fn next_frame(&mut self) -> Result<Option<BurstFrame<'_>>, String> {
        let mut head = [0; FRAME_HEAD];
        let mut filled = 0;
        while filled < head.len() {
            match self.file.read(&mut head[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err("it ends early".to_owned()),
                Ok(n) => filled += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        let [length, sum] = [1, 5]
            .map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        let length = length as usize;
        if length > MAX_PAYLOAD {
            return Err("a frame is too long".to_owned());
        }
        self.payload.clear();
        let mut part = (&mut self.file).take(length as u64);
        part.read_to_end(&mut self.payload)
            .map_err(|e| e.to_string())?;
        if self.payload.len() < length {
            return Err("it ends early".to_owned());
        }
        if checksum(&[&head[..5], &self.payload]) != sum {
            return Err("a checksum is wrong".to_owned());
        }
        let offset = self.at + FRAME_HEAD as u64;
        self.at = offset + length as u64;
        Ok(Some(BurstFrame {
            kind: head[0],
            payload: &self.payload,
            offset,
        }))
    }
}

impl BurstScan {
    /// Takes a frame over; `None` when it holds nonsense.
    fn add_frame(&mut self, frame: &BurstFrame) -> Option<()> {
        let mut input = ByteReader::new(frame.payload);
        match frame.kind {
            _ if self.ended => None,
            BLOCKS => {
                while !input.is_empty() {
                    let number = input.varint_below(MAX_BLOCKS.into())? as u32;
                    let length = input.varint_below(MAX_PAYLOAD as u64)? as usize;
                    let block = BasicBlock::decode(&mut ByteReader::new(input.take(length)?))?;
                    self.tables.add(number, &block);
                }
                Some(())
            }
            PIECE => self.add_piece(&mut input, frame),
            PLACES => self.add_named_pages(&mut input),
            END => {
                self.ended = true;
                Some(())
            }
            _ => None,
        }
    }

    fn add_piece(&mut self, input: &mut ByteReader, frame: &BurstFrame) -> Option<()> {
        let window = input.u32()?;
        let sequence = input.u32()?;
        let (thread, process) = (ThreadIx(input.u32()?), ProcessIx(input.u32()?));
        let (start, end) = (input.u64()?, input.u64()?);
        let (accesses, instructions) = (u64::from(input.u32()?), u64::from(input.u32()?));
        let flags = input.u32()?;
        input.u32()?;
        let piece = BurstPiece {
            thread,
            process,
            start,
            end,
            waited: flags & WAITED != 0,
            accesses,
            instructions,
        };
        let stored = StoredPiece {
            offset: frame.offset + PIECE_HEAD as u64,
            length: (frame.payload.len() - PIECE_HEAD) as u32,
            sequence,
            flags,
        };
        let room = self.pieces.len() < MAX_WINDOWS || self.pieces.contains_key(&window);
        if !room || !piece.is_possible() {
            return None;
        }
        self.pieces.entry(window).or_default().push((piece, stored));
        Some(())
    }

    fn add_named_pages(&mut self, input: &mut ByteReader) -> Option<()> {
        let window = input.varint_below(1 << 32)? as u32;
        if self.places.len() >= MAX_WINDOWS && !self.places.contains_key(&window) {
            return None;
        }
        let places = self.places.entry(window).or_default();
        while !input.is_empty() {
            let number = |input: &mut ByteReader| input.varint_below(1 << 32).map(|n| n as u32);
            let process = ProcessIx(number(input)?);
            let page = input.varint_below(1 << 52)?;
            let pages = input.varint_below(1 << 52)?;
            let region = RegionIx(number(input)?);
            let first = PageNo(number(input)?);
            self.rows += 1;
            let after = places.last().is_none_or(|p: &NamedPages| {
                (p.process, p.page + p.pages) <= (process, page) || p.process < process
            });
            if self.rows > MAX_PLACES || !after {
                return None;
            }
            places.push(NamedPages {
                process,
                page,
                pages,
                region,
                first,
            });
        }
        Some(())
    }

    fn finish(mut self, file: File, mut broken: Option<String>) -> BurstTrace {
        let mut bursts = BurstTrace {
            file,
            tables: self.tables,
            windows: Vec::new(),
            stored: Vec::new(),
            places: Vec::new(),
            accesses: 0,
            broken: None,
        };
        for (number, pieces) in self.pieces {
            let (pieces, gap) = sort_pieces(pieces);
            if gap && broken.is_none() {
                broken = Some(format!(
                    "pieces of window {number} are missing: what comes before them is used"
                ));
            }
            let (pieces, stored): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
            if pieces.is_empty() {
                continue;
            }
            bursts.accesses += pieces.iter().map(|p| p.accesses).sum::<u64>();
            bursts.windows.push(BurstWindow {
                start: pieces.first().map_or(0, |p| p.start),
                end: pieces.iter().map(|p| p.end).max().unwrap_or(0),
                cut: stored.iter().any(|s: &StoredPiece| s.flags & CUT != 0),
                pieces,
            });
            bursts.stored.push(stored);
            bursts
                .places
                .push(self.places.remove(&number).unwrap_or_default());
        }
        bursts.broken = broken;
        bursts
    }
}

/// Sorted by start, those of a thread in the order of their numbers, and up to the first that
/// is missing; and whether one is.
fn sort_pieces(
    mut pieces: Vec<(BurstPiece, StoredPiece)>,
) -> (Vec<(BurstPiece, StoredPiece)>, bool) {
    pieces.sort_by_key(|(piece, stored)| (piece.thread, stored.sequence));
    let mut gap = false;
    let mut before: Option<(ThreadIx, Option<(u32, u64)>)> = None;
    pieces.retain_mut(|(piece, stored)| {
        let (wanted, start) = match before {
            Some((thread, known)) if thread == piece.thread => match known {
                Some((sequence, start)) => (sequence.checked_add(1), start),
                None => return false,
            },
            _ => (Some(0), 0),
        };
        if wanted != Some(stored.sequence) {
            gap = true;
            before = Some((piece.thread, None));
            return false;
        }
        piece.start = piece.start.max(start);
        piece.end = piece.end.max(piece.start);
        before = Some((piece.thread, Some((stored.sequence, piece.start))));
        true
    });
    pieces.sort_by_key(|(piece, _)| piece.start);
    (pieces, gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So that a file cannot make a reader hold more.
    #[test]
    fn windows_and_their_names_are_so_many_at_most() {
        let most = MAX_WINDOWS as u32;
        let mut found = BurstScan {
            pieces: (0..most).map(|window| (window, Vec::new())).collect(),
            places: (0..most).map(|window| (window, Vec::new())).collect(),
            ..BurstScan::default()
        };
        let mut check = |kind, payload: &[u8], expected| {
            let frame = BurstFrame {
                kind,
                payload,
                offset: 0,
            };
            assert_eq!(found.add_frame(&frame), expected, "{kind} {payload:?}");
        };
        let mut one_of = |window: u32, expected| {
            let mut piece = vec![0; PIECE_HEAD];
            piece[..4].copy_from_slice(&window.to_le_bytes());
            check(PIECE, &piece, expected);
            let mut places = Vec::new();
            crate::varint::put_varint(&mut places, window.into());
            check(PLACES, &places, expected);
        };
        one_of(most - 1, Some(()));
        one_of(most, None);
        one_of(0, Some(()));
    }
}
