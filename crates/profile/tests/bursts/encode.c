/* What a traced thread makes of executions of blocks. Reads words: the number of blocks; of
 * each its sites, lengths, accesses, instructions, whether it follows the stack, from where,
 * and what it adds to it; then for each execution the block and the values of its sites.
 * Writes for each piece: accesses, instructions, flags, bytes, and these. */
#include "burst_record.h"
#include <stdio.h>
#include <stdlib.h>

struct hi_run hi_run;

static bool read_word(uint64_t *word) { return fread(word, sizeof *word, 1, stdin) == 1; }

static uint64_t word(void) {
  uint64_t word;
  if (!read_word(&word)) exit(2);
  return word;
}

static void write_word(uint64_t word) { fwrite(&word, sizeof word, 1, stdout); }

static void read_blocks(void) {
  uint64_t n = word();
  hi_run.record_blocks = calloc(n + 1, sizeof *hi_run.record_blocks);
  for (uint64_t i = 1; i <= n; i++) {
    struct hi_record_block *b = &hi_run.record_blocks[i];
    b->sites = (uint16_t)word();
    b->lengths = (uint16_t)word();
    b->accesses = (uint16_t)word();
    b->instructions = (uint32_t)word();
    b->has_stack = (uint16_t)word();
    b->stack = (int64_t)word();
    b->moves_stack = (int64_t)word();
  }
}

int main(void) {
  static struct hi_header header = {.record_window = 1, .record_open = 1, .active = 1};
  static struct hi_thread thread;
  static struct hi_recorder recorder;
  hi_run.header = &header;
  hi_run.pieces = calloc(HI_PIECES, sizeof *hi_run.pieces);
  read_blocks();
  uint64_t idle, head, instructions = 0;
  struct hi_local local = {.index = 1, .shared = &thread, .instructions = &instructions};
  hi_record_start(&local, &recorder, (struct hi_record_slots){&idle, &head});
  for (uint64_t block; read_word(&block);) {
    uint64_t *raw = (uint64_t *)head, sites = hi_run.record_blocks[block].sites;
    raw[0] = block;
    for (uint64_t i = 0; i < sites; i++) raw[1 + i] = word();
    head = (uint64_t)(raw + 1 + sites);
    if (raw + 1 + sites >= recorder.raw + HI_RAW_WORDS) hi_record_flush(&local);
  }
  hi_record_end(&local);
  for (const struct hi_piece *p = hi_run.pieces; p->state == HI_PIECE_WHOLE; p++) {
    write_word(p->accesses);
    write_word(p->instructions);
    write_word(p->flags);
    write_word(p->length);
    fwrite(p->code, 1, p->length, stdout);
  }
  return 0;
}
