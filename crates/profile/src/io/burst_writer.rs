//! `bursts.bin` as it grows: frames appended while the program runs.
//!
//! A full disk ends the bursts at the last whole frame, which is reported at the end; the profile
//! is written all the same.
use super::staging::StagingFolder;
use crate::bursts::framing::{
    self, frame_head, BLOCKS, BURSTS_FILE, END, MAGIC, PIECE, PLACES, VERSION,
};
use crate::bursts::{
    access_source, register_source, BasicBlock, BlockAccess, RegisterChange, NO_SOURCE,
    REGISTER_COUNT, WAITED,
};
use crate::bursts::{BurstAccess, BurstPiece, NamedPages, PieceCode, PieceEncoder};
use crate::error::ProfileError;
use crate::varint::put_varint;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How often to show others that the file is still wanted.
const TOUCH_INTERVAL: Duration = Duration::from_secs(300);

/// What a frame says of a piece before its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceHeader {
    /// Number of the window, from 0.
    pub window: u32,
    /// Of the thread in the window, from 0.
    pub sequence: u32,
    /// `accesses` and `instructions` below 2^32; `waited` is in `flags`.
    pub piece: BurstPiece,
    /// [`WAITED`], [`framing::FRESH`], [`framing::CUT`].
    pub flags: u32,
}

/// Writes the bursts of a run that goes on.
pub struct BurstWriter {
    folder: StagingFolder,
    file: File,
    bytes: u64,
    failed: Option<String>,
    touched: SystemTime,
    /// Blocks that [`BurstWriter::append_accesses`] made.
    made: HashMap<(u32, bool, u32, u32), (u32, BasicBlock)>,
}

impl BurstWriter {
    /// Begins the bursts of the profile that will be written to the folder `dir`, beside it.
    ///
    /// # Errors
    /// If `dir` holds something that is not a profile, or no file can be made there.
    pub fn create(dir: &Path) -> Result<BurstWriter, ProfileError> {
        let folder = StagingFolder::create_beside(dir)?;
        let path = dir.join(BURSTS_FILE);
        let mut file = folder
            .create(BURSTS_FILE)
            .map_err(ProfileError::io("write", &path))?;
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        file.write_all(&head)
            .map_err(ProfileError::io("write", &path))?;
        Ok(BurstWriter {
            folder,
            file,
            bytes: head.len() as u64,
            failed: None,
            touched: SystemTime::now(),
            made: HashMap::new(),
        })
    }

    /// Size of the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Why nothing more is written, once that is so.
    #[must_use]
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    fn append_frame(&mut self, kind: u8, payload: &[&[u8]]) {
        if self.failed.is_some() {
            return;
        }
        let head = frame_head(kind, payload);
        let mut whole = head.to_vec();
        payload
            .iter()
            .for_each(|part| whole.extend_from_slice(part));
        match self.file.write_all(&whole) {
            Ok(()) => self.bytes += whole.len() as u64,
            Err(e) => self.stop_writing(&e),
        }
    }

    fn stop_writing(&mut self, why: &io::Error) {
        self.failed = Some(why.to_string());
        // Where even this fails the reader finds the broken frame.
        let _ = self.file.set_len(self.bytes);
        let _ = self.file.seek(io::SeekFrom::Start(self.bytes));
    }

    /// Blocks with their numbers, each as [`BasicBlock::encode`] makes it. Before the pieces that
    /// run them, or after.
    pub fn append_blocks<'b>(&mut self, blocks: impl Iterator<Item = (u32, &'b [u8])>) {
        let mut payload = Vec::new();
        for (number, block) in blocks {
            put_varint(&mut payload, number.into());
            put_varint(&mut payload, block.len() as u64);
            payload.extend_from_slice(block);
            if payload.len() > 1 << 20 {
                self.append_frame(BLOCKS, &[&payload]);
                payload.clear();
            }
        }
        if !payload.is_empty() {
            self.append_frame(BLOCKS, &[&payload]);
        }
    }

    /// Appends a piece: its header and its code.
    pub fn append_piece(&mut self, head: &PieceHeader, code: &[u8]) {
        let p = &head.piece;
        let mut bytes = Vec::with_capacity(framing::PIECE_HEAD);
        for n in [head.window, head.sequence, p.thread.0, p.process.0] {
            bytes.extend(n.to_le_bytes());
        }
        for n in [p.start, p.end] {
            bytes.extend(n.to_le_bytes());
        }
        for n in [p.accesses as u32, p.instructions as u32, head.flags, 0] {
            bytes.extend(n.to_le_bytes());
        }
        self.append_frame(PIECE, &[&bytes, code]);
    }

    /// The names of pages in a window, sorted by process and page, without overlap.
    pub fn append_named_pages(&mut self, window: u32, places: &[NamedPages]) {
        for part in places.chunks(1 << 16) {
            let mut payload = Vec::new();
            put_varint(&mut payload, window.into());
            for p in part {
                for n in [
                    p.process.0.into(),
                    p.page,
                    p.pages,
                    p.region.0.into(),
                    p.first.0.into(),
                ] {
                    put_varint(&mut payload, n);
                }
            }
            self.append_frame(PLACES, &[&payload]);
        }
    }

    /// All accesses of a thread in a window, as pieces between two times that were not
    /// recorded block by block. Dependences on more than 16 accesses before are left out.
    pub fn append_accesses(&mut self, window: u32, like: &BurstPiece, accesses: &[BurstAccess]) {
        let mut encoder = PieceEncoder::default();
        let mut codes = Vec::new();
        for access in accesses {
            let key = (access.bytes, access.write, access.after, access.depends);
            let next = self.made.len() as u32;
            let (number, block) = self
                .made
                .entry(key)
                .or_insert_with(|| (next, single_access_block(access)));
            codes.extend(encoder.push_execution(*number, block, &[access.address]));
        }
        codes.extend(encoder.finish());
        let made = std::mem::take(&mut self.made);
        let mut all: Vec<(u32, Vec<u8>)> = Vec::new();
        for (number, block) in made.values() {
            let mut bytes = Vec::new();
            block.encode(&mut bytes);
            all.push((*number, bytes));
        }
        self.made = made;
        self.append_blocks(
            all.iter()
                .map(|(number, bytes)| (*number, bytes.as_slice())),
        );
        let span = (like.end - like.start) / codes.len().max(1) as u64;
        for (n, code) in (0u64..).zip(&codes) {
            let start = like.start + n * span;
            let head = piece_header(
                window,
                n as u32,
                code,
                BurstPiece {
                    start,
                    end: start + span,
                    ..*like
                },
            );
            self.append_piece(&head, &code.bytes);
        }
    }

    /// Call now and then: a folder with an old time stamp is taken for one left behind.
    pub fn keep_alive(&mut self) {
        if self.touched.elapsed().is_ok_and(|age| age < TOUCH_INTERVAL) {
            return;
        }
        self.touched = SystemTime::now();
        // A file system that cannot do it only shortens how long a run may pause.
        let _ = self.file.set_modified(self.touched);
    }

    /// Ends the file and gives the folder it is in, and why it could not be ended if nothing had
    /// failed before.
    pub(crate) fn finish(mut self) -> (StagingFolder, Option<String>) {
        let before = self.failed.is_some();
        self.append_frame(END, &[]);
        // Some file systems notice only here that the disk is full.
        if let (false, Err(e)) = (before, self.file.sync_all()) {
            self.failed.get_or_insert(e.to_string());
        }
        let why = self.failed.filter(|_| !before);
        (self.folder, why)
    }
}

fn piece_header(window: u32, sequence: u32, code: &PieceCode, piece: BurstPiece) -> PieceHeader {
    PieceHeader {
        window,
        sequence,
        piece: BurstPiece {
            accesses: code.accesses.into(),
            instructions: code.instructions.into(),
            ..piece
        },
        flags: match piece.waited && sequence == 0 {
            true => code.flags | WAITED,
            false => code.flags,
        },
    }
}

/// One access in a block of its own. What each of the last 16 accesses read is kept in a
/// register.
fn single_access_block(access: &BurstAccess) -> BasicBlock {
    let depends = access.depends as usize;
    let source = match depends {
        1..=REGISTER_COUNT => register_source(depends - 1),
        _ => NO_SOURCE,
    };
    let change = |r: usize| RegisterChange {
        register: r as u8,
        sources: [
            if r == 0 {
                access_source(0)
            } else {
                register_source(r - 1)
            },
            NO_SOURCE,
        ],
    };
    BasicBlock {
        instructions: access.after.max(1),
        sites: 1,
        accesses: vec![BlockAccess {
            after: access.after,
            site: Some(0),
            bytes: access.bytes,
            write: access.write,
            sources: [source, NO_SOURCE],
            ..BlockAccess::default()
        }],
        changes: (0..REGISTER_COUNT).map(change).collect(),
        ..BasicBlock::default()
    }
}
