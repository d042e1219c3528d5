/* wire.h: the segment, the memory that the tracer inside the target and the collector
 * outside share.
 *
 * One anonymous memory file per run, created and laid out by the collector, mapped
 * by every traced process through /proc/COLLECTOR/fd/N. It is sparse: areas are
 * sized for the largest run and take no memory until touched. The counters are in the
 * segment and not in the target, so they survive a crash of the target.
 *
 *   header | threads | processes | hooks | sites | events | samples | observations | directory
 *          | comm | pages | shared chunks | aliases | owners | dirty | blocks | page users | shadow | user nodes
 *          | user counts | arenas | recorded blocks | their descriptions | pieces | objects | object counts | their use
 *          | ended pages | free groups
 *
 * Writers: only the thread itself writes its slot, comm rows, page-count blocks, samples,
 * line observations and arena, with one exception: a thread that joins a line writes the
 * z1/z2 and s1/s2 fields of other threads' side records (see hi_side). What is known of its creation
 * is in a thread's slot before it starts, and a thread that joins another marks that one's slot. The
 * users of a line are registered by compare-and-swap. The collector writes
 * only the fields marked "collector", and a thread's slot, object counts and arena once it has ended, before
 * another thread gets its index. All indices are offsets or ordinals, never pointers,
 * since each process maps the segment at its own address.
 *
 * The Rust mirror is crates/sys/src/wire.rs; sizes and offsets are asserted on both
 * sides. Raise HI_VERSION on any change. */
#ifndef HITHER_WIRE_H
#define HITHER_WIRE_H
#include <stdint.h>

#define HI_MAGIC 0x52454854494821ull /* "!HITHER" */
#define HI_VERSION 20

/* Limits of one run. What exceeds a limit is not traced and counted as lost. */
#define HI_MAX_THREADS 4352u    /* at the same time; slot 0 is "no thread" */
#define HI_MAX_PROCESSES 65536u /* slot 0 is "no process" */
#define HI_MAX_PAGES (1u << 26)
#define HI_MAX_BLOCKS (1u << 24)
#define HI_MAX_SITES (1u << 22)
#define HI_MAX_HOOKS 64u
#define HI_MAX_OBJECTS (1u << 22)     /* records of data structures, of all processes */
#define HI_PROCESS_OBJECTS (1u << 15) /* ids of data structures in one process */
#define HI_OBJECT_GROUP 64u           /* ids per bit of the object-use bitmap */
#define HI_FRAMES 8u                  /* return addresses kept of an allocation site */
#define HI_EVENTS (1u << 16)          /* ring slots, power of two */
#define HI_SAMPLES 1024u              /* per thread, power of two */
#define HI_SAMPLE_SUMS 128u           /* per thread, power of two */
#define HI_OBSERVATIONS 2048u         /* per thread, power of two */
#define HI_CHUNKS (1u << 16)          /* shared-object chunks of HI_CHUNK_PAGES pages */
#define HI_CHUNK_PAGES 1024u
#define HI_ALIASES (1u << 18)       /* (process, chunk) -> address */
#define HI_BLOCK_PAGES 64u          /* pages per page-count block, and per page-id reservation */
#define HI_USER_NODES (1u << 26)    /* half of them for slices of even epochs */
#define HI_LIST_WORDS (1u << 16)    /* for the lists of a thread's side records */
#define HI_GROUP 256u               /* entries of a line cache per bit of hi_thread.used */
#define HI_LINE_LOG2_MIN 6u         /* header.line_log2: a page has at most as many lines as hi_page_users.lines bits */
#define HI_CACHE_LOG2_MIN 8u        /* header.cache_log2: at least one whole group, */
#define HI_CACHE_LOG2_MAX 17u       /* at most as many groups as hi_thread.used has bits */
#define HI_RECORD_BLOCKS (1u << 20) /* basic blocks that can be recorded */
#define HI_RECORD_BYTES (1u << 28)  /* size of the area of their descriptions */
#define HI_RECORD_SITES 500u        /* per block; reader and writer have the same limits */
#define HI_RECORD_ACCESSES 4000u    /* per block */
#define HI_RECORD_REACH (1u << 30)  /* bytes per piece that its accesses with a length touch */
#define HI_PIECES (1u << 13)        /* that can be filled or drained at the same time */
#define HI_PIECE_BYTES (16u << 10)
#define HI_PIECE_HEAD 56u /* bytes of a piece before its code */
#define HI_SITE_NONE 0u
#define HI_PAGE_NONE 0u /* page ids start at HI_BLOCK_PAGES */

/* header.flags */
#define HI_FLAG_ORACLE 1u /* a clean call per access, no line cache */
#define HI_FLAG_SAMPLE 2u /* slice sampling: trace only slices with header.slice_traced set */
#define HI_FLAG_FOLLOW 4u /* follow exec'ed children */
#define HI_FLAG_RECORD 8u /* record accesses while header.record_open */

/* The header, at the start of the file. */
struct hi_header {
  uint64_t magic;
  uint32_t version, header_size;
  /* configuration, written by the collector before the first process starts */
  uint32_t line_log2;  /* 6: 64-byte lines */
  uint32_t sharers;    /* users of a line that an access counts with: 0 all; with HI_FLAG_ORACLE 1..4, the last */
  uint32_t cache_log2; /* entries of one line cache, log2 */
  uint32_t flags;
  uint32_t nhooks;
  uint32_t fetch_sets; /* of the sampled part of a private cache, see core/private_cache.h */
  uint32_t alloc_min;  /* heap blocks below this many bytes are counted by site, but not reported one by one */
  uint64_t slice_ns;
  /* live */
  uint32_t epoch;  /* collector: current slice + 1; never 0 */
  uint32_t active; /* 1 while accesses count (--from/--until switch it) */
  uint32_t closed; /* collector: 1 once the run is over; the target runs on uncounted */
  int32_t collector_pid;
  uint64_t slice_traced; /* collector: with HI_FLAG_SAMPLE, 1 while this slice is traced, else 0 */
  /* collector: with HI_FLAG_RECORD, the number of the burst window, from 1; whether it is
   * open; the processor time that each thread records in it, 0: no limit */
  uint32_t record_window, record_open;
  uint64_t record_ns;
  /* atomic counters, bumped by the target */
  uint32_t next_thread;       /* first thread index that was never in use, starts at 1 */
  uint32_t next_process;      /* starts at 1 */
  uint32_t next_page;         /* starts at HI_BLOCK_PAGES */
  uint32_t next_block;        /* starts at 1 */
  uint32_t next_site;         /* starts at 1 */
  uint32_t next_chunk_object; /* unique numbers for anonymous shared mappings */
  uint32_t lost_threads, lost_processes, lost_pages, lost_blocks, lost_sites, lost_chunks;
  uint32_t next_user_node; /* the collector sets it to the first of a half before a slice */
  uint32_t lost_users;     /* users of lines for which no node was left */
  uint64_t lost_events;
  uint64_t displaced_users;                        /* of lines, by later ones */
  uint64_t event_head;                             /* next slot to reserve (monotonic) */
  uint64_t event_tail;                             /* collector: next slot to consume (monotonic) */
  uint64_t arena_busy[(HI_MAX_THREADS + 63) / 64]; /* bit per arena in use */
  /* bit per index that is free again: its thread could not be created, or has ended and the collector has all
   * that it counted, and has cleared its slot */
  uint64_t given_back[(HI_MAX_THREADS + 63) / 64];
  uint64_t record_top;        /* bytes in use of the area of descriptions */
  uint32_t next_record_block; /* starts at 1 */
  uint32_t lost_record_blocks, lost_pieces;
  uint32_t next_object;                /* record, starts at 1 */
  uint32_t next_serial;                /* of a thread, starts at 1 */
  uint64_t piece_busy[HI_PIECES / 64]; /* bit per piece; the collector clears it once drained */
  uint64_t ended_pages;                /* page ids that have ended so far */
  uint64_t free_head;                  /* next free group to take (monotonic) */
  uint64_t free_tail;                  /* collector: next slot for a free group (monotonic) */
  /* area offsets in bytes, written by the collector */
  uint64_t off_threads, off_processes, off_hooks, off_sites, off_events, off_samples, off_observations;
  uint64_t off_directory, off_comm, off_pages, off_chunks, off_aliases, off_owners;
  uint64_t off_dirty, off_blocks, off_page_users, off_shadow, off_user_nodes, off_user_counts, off_arenas;
  uint64_t off_record_blocks, off_record_bytes, off_pieces, off_objects, off_object_counts, off_object_used;
  uint64_t off_ended, off_free_groups, off_site_words;
  uint64_t total_size, arena_size, left_in_arena;
};

enum { HI_THREAD_FREE = 0, HI_THREAD_LIVE = 1, HI_THREAD_ENDED = 2 };
enum { HI_SYNC_PTHREAD_BARRIER = 0, HI_SYNC_OMP_BARRIER, HI_SYNC_OMP_PARALLEL, HI_SYNC_MPI_BARRIER, HI_SYNCS };

/* 320 bytes per thread. state is written last, with release. ENDED: the thread has flushed
 * its line caches itself. */
struct hi_thread {
  uint32_t state;
  uint32_t process;
  uint32_t creator; /* serial of the thread that created it, 0 for the first of a process */
  int32_t tid;
  uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
  uint64_t stack_pointer;    /* at its start */
  uint64_t instructions;
  uint64_t misses; /* of its line cache, for the figures of the tracer's own cost */
  uint64_t sync[HI_SYNCS];
  uint32_t epoch;       /* slice the current line cache belongs to */
  uint32_t cache;       /* 0 or 1: which line cache is current */
  uint32_t arena;       /* arena ordinal, ~0 when none */
  uint32_t owns_arena;  /* 1 while the arena holds unflushed entries */
  uint64_t sample_head; /* next sample slot to write (monotonic) */
  uint64_t sample_tail; /* collector */
  uint64_t lost_samples;
  char name[16];
  uint64_t comm_dirty[2];     /* unused high threads share bits: bit (j / 64) % 64 of row parity p */
  uint64_t traced_accesses;   /* with HI_FLAG_SAMPLE: accesses by their instructions (a rep counts */
  uint64_t untraced_accesses; /* once) in slices that are traced, and in the others */
  uint64_t used[8];           /* bit per group of HI_GROUP entries of the current line cache: holds lines */
  uint32_t flipped;           /* 1 from the flip of its base until it has flushed its old cache */
  uint32_t recorded;          /* with HI_FLAG_RECORD: 2 * window, + 1 once it has left that window */
  uint32_t observation_head;  /* next observation slot to write (monotonic, wraps) */
  uint32_t observation_tail;  /* collector */
  uint64_t counter;           /* address in its process of the count that `instructions` is a copy of */
  uint64_t created_at;        /* return address of the program's call that created it, 0: not known */
  uint64_t start_routine;     /* as pthread_create was given it, 0: not known */
  uint64_t thread_pointer;    /* it is created with, which pthread_join is given; 0: not known */
  uint32_t ended, joined;     /* header.next_serial when it ended, and when it was last waited for; 0: never */
  uint32_t serial;            /* of the threads of the run, in order of creation, from 1: indices are used again */
  uint32_t free_block;        /* the first of the page-count blocks that earlier threads of this index left, 0: none;
                                 each has the next one as its page_block */
  uint64_t pad[2];
};

enum { HI_PROCESS_FREE = 0, HI_PROCESS_LIVE = 1, HI_PROCESS_EXITED = 2, HI_PROCESS_EXECED = 3 };
/* 64 bytes per process image: an exec starts a new one with the same pid. */
struct hi_process {
  uint32_t state;
  int32_t pid, parent_pid;
  uint32_t parent;            /* process ordinal forked or exec'ed from, 0 if unknown */
  uint32_t generation;        /* incremented before every change of the address space */
  uint32_t inherited_objects; /* after a fork: ids below this mean the parent's objects */
  uint64_t start_ns, end_ns;
  uint64_t pad[3];
};

/* Functions whose calls switch tracing on or off or are counted. The collector finds their
 * offsets in the symbol tables; a module is matched by (dev, ino) of its file. */
enum { HI_HOOK_FROM = 1, HI_HOOK_UNTIL = 2, HI_HOOK_ONLY = 3, HI_HOOK_SYNC = 4, HI_HOOK_ALLOC = 5 };
struct hi_hook {
  uint32_t kind;
  uint32_t which;  /* HI_HOOK_SYNC: HI_SYNC_*; HI_HOOK_ALLOC: HI_ALLOC_* */
  uint64_t offset; /* from the module's load base */
  uint64_t dev, ino;
};

/* A code site: an instruction that accesses memory, with the bytes that its accesses cover:
 * bit n of a mask is the byte n above the lowest address. span: distance from the lowest
 * address to the highest at which an access starts. String instructions and others that
 * access a range have masks of 0. caller: of code in a library of the system, the return address
 * of the program's call that led there; else 0.
 *
 * With HI_SITE_PATH it is the calls that led to an access instead: return addresses, innermost first, in
 * pc, reads, writes and caller; 0 where there are no more. */
#define HI_SITE_PATH 1u /* hi_site.kind */
#define HI_TOUCH_FRAMES 6u
struct hi_site {
  uint64_t pc; /* application address */
  uint32_t process;
  uint32_t generation;
  uint32_t span, kind;
  uint64_t reads[2], writes[2];
  uint64_t caller;
};
/* site words: uint64_t[HI_SITE_WORDS], the sites of code of files, by file and offset: processes that run
 * the same code have the same sites. The site's number, above it bits of a hash of all that it is. */
#define HI_SITE_WORDS (1u << 23)
#define HI_SITE_BITS 22u
/* Flag in the site number that a probe passes: the address is the highest at which an access
 * starts, not the lowest, and only the accesses to its line are meant. */
#define HI_SITE_UPPER (1u << 31)
/* Another: the code is in a library of the system. */
#define HI_SITE_LIBRARY (1u << 30)
#define HI_SITE_FLAGS (HI_SITE_UPPER | HI_SITE_LIBRARY)

/* A sample: so many accesses to a line, by one instruction; without accesses: HI_SAMPLE_PERIOD fetches (core/private_cache.h).
 * after: bytes of code from the site's address to the instruction, of those that one probe counts. */
#define HI_SAMPLE_PERIOD 2048u /* fetches, or accesses with HI_FLAG_ORACLE, that one stands for */
struct hi_sample {
  uint64_t address; /* of the line, in the process' address space */
  uint32_t site;
  uint32_t reads, writes;
  int16_t after;
  uint16_t object;
};

/* A line observation: what a thread does on a line that other threads use in the same slice,
 * see core/line_observation.h. Either the bytes that one access touched, or that n of the
 * thread's accesses to shared lines are attributed to this line (n is a multiple of
 * HI_SHARED_PERIOD). */
#define HI_SHARED_PERIOD 1024u
enum {
  HI_OBSERVED_LOW,   /* the bytes in the site's masks; `at` is the lowest address; n: the object there */
  HI_OBSERVED_UPPER, /* the same; `at` is the address that HI_SITE_UPPER means */
  HI_OBSERVED_READ,  /* n bytes */
  HI_OBSERVED_WRITE, /* n bytes */
  HI_OBSERVED_COUNT, /* n accesses */
};
struct hi_observation {
  uint32_t page, site;
  uint16_t at; /* offset in the page */
  uint16_t kind;
  uint32_t n;
};

/* Ring of events, in one total order over all processes. A record takes 1 + more consecutive
 * slots; the slots after the first hold a string (path or name, NUL-padded). ready is
 * written last. The collector zeroes the slots that it has read. */
#define HI_READY 0x48595244u
enum {
  HI_EV_PROCESS =
      1, /* a[0]=pid a[1]=parent process ordinal a[2]=1 if forked, 0 if exec'ed/first a[3]=stack top a[4]=stack limit; string: executable */
  HI_EV_EXIT,   /* the process exited; a[0]=0 */
  HI_EV_MODULE, /* a[0]=start a[1]=end a[2]=dev a[3]=ino a[4]=load bias (address - ELF vaddr); string: path */
  HI_EV_MAP, /* a[0]=address a[1]=length a[2]=prot a[3]=flags a[4]=dev a[5]=ino; string: path if a file; aux: HI_MAP_* */
  HI_EV_UNMAP,  /* a[0]=address a[1]=length */
  HI_EV_REMAP,  /* a[0]=old a[1]=old length a[2]=new a[3]=new length */
  HI_EV_BRK,    /* a[0]=heap start a[1]=new end */
  HI_EV_ALLOC,  /* a block or a copy of a thread-local variable, of header.alloc_min bytes or more, or memory that
                   processes share: a[0]=address a[1]=size a[2]=record of its object */
  HI_EV_BLOCKS, /* heap blocks lie in the mapping around a[0] */
  HI_EV_LOST,   /* a[0]: HI_LOST_*: something could not be traced */
  HI_EV_THREAD_LOCALS, /* the thread has thread-local variables in the object map; a[0]=its thread pointer; aux: 1 if
                          another one created it */
};
enum { HI_MAP_PRIVATE = 0, HI_MAP_SHARED_FILE = 1, HI_MAP_SHARED_ANON = 2, HI_MAP_SYSV = 3, HI_MAP_INITIAL = 4 };
enum {
  HI_ALLOC_MALLOC = 1,
  HI_ALLOC_CALLOC,
  HI_ALLOC_REALLOC,
  HI_ALLOC_ALIGNED,
  HI_ALLOC_NEW,
  HI_ALLOC_FREE,
  HI_ALLOC_MEMALIGN_OUT
};
enum {
  HI_LOST_CHILD_32BIT = 1,
  HI_LOST_THREADS,
  HI_LOST_PROCESSES,
  HI_LOST_MEMORY,
  HI_LOST_OBJECTS,
  HI_LOST_VIRTUAL_MACHINE,
  HI_LOST_RIGHTS
};
struct hi_event {
  uint32_t ready;
  uint8_t kind, more;
  uint16_t process;
  uint16_t thread, aux;
  uint32_t generation; /* of the process, after the event */
  uint64_t a[6];
};

/* A page of one process, or of an object that processes share. first_thread is written last; 0: the id is not in use. */
struct hi_page {
  uint64_t va; /* page number in the address space of the process that touched it first */
  uint32_t process;
  uint32_t generation;   /* of that process at the first touch */
  uint32_t first_thread; /* its serial */
  uint32_t first_epoch;
  uint64_t shared;                 /* 0 private; else 1 + (chunk ordinal * HI_CHUNK_PAGES + page in chunk) */
  uint32_t first_site, first_path; /* code site of the first touch; number of a HI_SITE_PATH, 0: not known */
};

/* HI_CHUNK_PAGES pages of a shared object. (dev, ino) are the file's; anonymous shared
 * mappings use dev = ~0, System V segments dev = ~1. base_page: first of its page ids. */
struct hi_chunk {
  uint32_t state; /* 0 free, 1 being written, 2 valid */
  uint32_t base_page;
  uint64_t dev, ino, chunk;
};

/* Page ids are handed out in groups of HI_BLOCK_PAGES. Those of private pages end when their memory is
 * unmapped, or the thread that reserved them ends without having used them.
 * ended: uint64_t[HI_PAGE_GROUPS], a bit per id; the collector clears them, and sets those of processes that are no
 * more.
 * free groups: uint32_t[HI_PAGE_GROUPS], a ring of groups that have ended as a whole and of which no
 * line cache holds a line any more: the collector has read their counts, and their users are zero. */
#define HI_PAGE_GROUPS (HI_MAX_PAGES / HI_BLOCK_PAGES)

/* Where a process maps a chunk: threads of other processes that join a line use it to find
 * the line's address there. */
struct hi_alias {
  uint64_t key; /* 1 + (process << 32 | chunk ordinal); 0 free */
  uint64_t va;  /* page number of the chunk's page 0 there */
};

/* The thread and the pages that a page-count block belongs to; without a thread it is one that a slot keeps for
 * its next thread. */
struct hi_owner {
  uint32_t thread, page_block;
};
struct hi_count {
  uint64_t reads, writes;
};
struct hi_block {
  struct hi_count page[HI_BLOCK_PAGES];
  uint32_t fetches[HI_BLOCK_PAGES]; /* wrap */
};

/* A data structure that lies at addresses known to the tracer: all blocks of an allocation
 * site, all mappings that the program makes at a site, a variable, thread-local or not, or the bytes of an ELF
 * segment that are no variable's. Its id is unique in
 * its process and inherited by forked children. kind is written last. Two ids have no record:
 * HI_OBJECT_NONE is memory of which the tracer knows nothing, HI_OBJECT_FREE is on a page with
 * heap blocks, but in none that lives. */
enum { HI_OBJECT_NONE = 0, HI_OBJECT_FREE = 1, HI_OBJECT_FIRST = 2 };
enum {
  HI_OBJECT_SITE = 1,
  HI_OBJECT_VARIABLE,
  HI_OBJECT_CONSTANTS,
  HI_OBJECT_UNNAMED,
  HI_OBJECT_MAPPING,
  /* all copies of a variable: address is where its file begins, frames[0] its place in the file's block. Of
   * size 0: what else is in the block; without address: thread control blocks */
  HI_OBJECT_THREAD_LOCAL
};
struct hi_object {
  uint32_t kind, process, id;
  uint32_t generation; /* of the process, when the object was found */
  uint64_t address, size;
  /* of an allocation site: return addresses, innermost first, 0 if none */
  uint64_t frames[HI_FRAMES];
  uint32_t thread, pad;          /* serial of that which allocated first */
  uint64_t blocks, bytes;        /* allocated so far */
  uint64_t smallest, largest;    /* of these blocks, bytes; 0 before the first */
  uint64_t granules, live, peak; /* the same bytes as units of the object map; how many live, at most lived */
};
/* Accesses of one thread to one object. */
struct hi_object_count {
  uint64_t reads, writes, fetches;
};

#include "line_cache.h"

/* A basic block that can be recorded. Its description, `length` bytes at `offset` of the area
 * of descriptions, is read by crates/profile/src/bursts/block.rs; the other fields are for
 * the encoder. ready is set last. */
struct hi_record_block {
  uint64_t offset;
  int64_t stack, moves_stack;
  uint32_t length, instructions;
  uint16_t sites, lengths, accesses, has_stack;
  uint32_t ready, pad0;
};

/* Accesses of one thread, in the encoding that crates/profile/src/bursts/decode.rs defines.
 * state is written last. */
enum { HI_PIECE_FREE = 0, HI_PIECE_FILLING = 1, HI_PIECE_WHOLE = 2 };
enum { HI_PIECE_WAITED = 1, HI_PIECE_FRESH = 2, HI_PIECE_CUT = 4 };
struct hi_piece {
  uint32_t state, thread, process, window;
  uint32_t sequence, flags, accesses, instructions;
  uint64_t start_ns, end_ns;
  uint32_t length, pad0;
  uint8_t code[HI_PIECE_BYTES - HI_PIECE_HEAD];
};

/* The private cache of a thread, of which it counts the fetches: one line in HI_FETCH_PERIOD. */
#define HI_FETCH_PERIOD_LOG2 6u
#define HI_FETCH_PERIOD (1u << HI_FETCH_PERIOD_LOG2)
#define HI_FETCH_WAYS 16u

/* Arena of one thread, aligned to the size of entries[0]: entries[0], entries[1], side[0], side[1], each 1 <<
 * cache_log2, of which many threads use only the end (core/state.h), then
 * uint64_t[fetch_sets][HI_FETCH_WAYS], then uint16_t[HI_LIST_WORDS]: lists of side records, struct
 * hi_left_line[1 << HI_LEFT_LOG2], and struct hi_line_use[HI_CONTINUED_USES]. */

#define HI_COMM_ROW(thread, parity) ((((uint64_t)(thread)) * 2 + (parity)) * HI_MAX_THREADS)
/* What a thread's accesses owe another: communication events, and of those of both threads the coherence
 * events, see core/credit.h. */
struct hi_comm {
  uint64_t events, coherence;
};
/* comm: struct hi_comm[HI_MAX_THREADS][2][HI_MAX_THREADS], cumulative.
 * Row parity = epoch & 1, so a slice can be read whole while the next one fills. */
/* directory: uint32_t[HI_MAX_THREADS][HI_MAX_PAGES / HI_BLOCK_PAGES]: block ordinal, 0: none */
/* owners: struct hi_owner[HI_MAX_BLOCKS]; dirty: uint8_t[HI_MAX_BLOCKS], set by the
 * owner after a change, cleared by the collector before it reads the block */
/* object counts: struct hi_object_count[HI_MAX_THREADS][HI_PROCESS_OBJECTS], by the thread's index and the id in its
 * process; object use: a bit per HI_OBJECT_GROUP ids of each thread, set once one of them has been counted */
/* The users of a page. Most pages have one thread in a slice: then `word` is as that of a line with one user, and of
 * `lines`, a bit each, that user has accessed those that are set; the line that is sampled for fetches
 * (core/private_cache.h; there is one at most) has the version in the word. Once two threads have used a page in
 * one slice, and always where processes share it, its lines have their own words, in the shadow. */
struct hi_page_users {
  uint64_t word, lines;
};
/* shadow: uint64_t per line; (4096 >> line_log2) words per page id, of pages that several threads use: others take no
 * memory there. A word has the epoch of a slice and the users of the line in it: threads that have accessed it. One or
 * two: second user << 16 | first user. More, HI_USERS: a node, its high bits where the second user was; it has the first
 * users, in the order in which they came, and the next node those that came then; the last of HI_LINE_NODES has a count
 * in place of the next node, and who comes takes the place of the first: those stay that came last. In the bits that
 * thread numbers leave free is the line's version. With header.sharers see core/oracle_lean.c. */
#define HI_USERS (1ull << 63)
#define HI_SHADOW_EPOCH 32u
#define HI_SHADOW_THREAD 0x1fffull
#define HI_SHADOW_SECOND 16u
#define HI_SHADOW_BITS 13u
#define HI_NODE_USERS 6u
#define HI_LINE_NODES 86u /* of a line */
#define HI_LINE_USERS (HI_LINE_NODES * HI_NODE_USERS)
/* Marks of a user in a node. MISSES: its next access to the line misses, and then it finds all who have come
 * meanwhile; threads that join need not tell it. Others set it, before they make sure that it is so; the user
 * clears it once it has entered the line, before it lists the others. SETTLED: all that it did with the line is
 * credited. Only the user sets it, and clears it as it enters the line again. */
#define HI_USER_MISSES (1u << 15)
#define HI_USER_SETTLED (1u << 14)
#define HI_USER_MARKS (HI_USER_MISSES | HI_USER_SETTLED)
struct hi_user_node {
  uint16_t user[HI_NODE_USERS];
  uint32_t next; /* 0: none yet */
};
/* user counts, with HI_FLAG_ORACLE: struct hi_line_use[HI_USER_NODES][HI_NODE_USERS], what each in a node has done */
#define HI_VERSION_LOW 13u
#define HI_VERSION_HIGH 29u
#define HI_VERSION_BITS (7ull << HI_VERSION_LOW | 7ull << HI_VERSION_HIGH)
_Static_assert(!(HI_USER_MARKS & HI_SHADOW_THREAD), "a user in a node has room for marks");
_Static_assert(HI_MAX_THREADS <= HI_SHADOW_THREAD && HI_USER_NODES <= 1u << 2 * HI_SHADOW_BITS,
               "two threads, or a node, fit in a shadow word");
_Static_assert(HI_MAX_THREADS < HI_LIST_WORDS / 8, "the lists of a thread have room for some of all threads");

_Static_assert(sizeof(struct hi_thread) == 320, "thread slot");
_Static_assert(sizeof((struct hi_thread *)0)->used * 8 * HI_GROUP >= 1u << HI_CACHE_LOG2_MAX,
               "used has a bit for every group of the largest line cache");
_Static_assert(HI_GROUP <= 1u << HI_CACHE_LOG2_MIN, "the smallest line cache is at least a group");
_Static_assert(sizeof(struct hi_process) == 64, "process slot");
_Static_assert(sizeof(struct hi_hook) == 32, "hook");
_Static_assert(sizeof(struct hi_site) == 64, "site");
_Static_assert(HI_MAX_SITES <= 1u << HI_SITE_BITS, "a site word holds the number of every site");
_Static_assert(sizeof(struct hi_observation) == 16, "line observation");
_Static_assert(sizeof(struct hi_sample) == 24, "sample");
_Static_assert(sizeof(struct hi_event) == 64, "event");
_Static_assert(sizeof(struct hi_page) == 40, "page");
_Static_assert(HI_BLOCK_PAGES == 64, "a group of page ids has a bit each in a word");
_Static_assert(sizeof(struct hi_page_users) == 16, "users of a page");
_Static_assert(sizeof(struct hi_chunk) == 32, "chunk");
_Static_assert(sizeof(struct hi_alias) == 16, "alias");
_Static_assert(sizeof(struct hi_left_line) == 24, "left line");
_Static_assert(sizeof(struct hi_side) == 24, "side record");
_Static_assert(sizeof(struct hi_user_node) == 16, "user node");
_Static_assert(HI_MAX_PAGES <= 1u << HI_SIDE_SITE && HI_MAX_SITES <= 1u << (HI_SIDE_OBJECT - HI_SIDE_SITE),
               "a page id and a code site fit in hi_side.line");
_Static_assert(sizeof(struct hi_object) == 160, "object");
_Static_assert(sizeof(struct hi_object_count) == 24, "object count");
_Static_assert(sizeof(struct hi_record_block) == 48, "recorded block");
_Static_assert(sizeof(struct hi_piece) == HI_PIECE_BYTES, "piece");
#endif
