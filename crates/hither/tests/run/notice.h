/* notice.h: what the files of `notice` share: small programs, one per name, that look for
 * what following them could change. Each prints what it found; alone and under
 * `hither run` that must be the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define MIB (1 << 20)

/* The number after the name of the program, else 20. */
extern long argument;

/* Counted up for ever by the threads that run `beat`, by number. */
extern _Atomic long *beats;
void *beat(void *number);

/* New memory of the process's own. */
char *anonymous(size_t size);

int run_fatal(void), run_siginfo(void), run_sigwait(void), run_stops(void);              /* signals.c */
int run_joins(void), run_bomb(void), run_storm(void), run_daemon(void), run_count(void); /* crowds.c */
int run_mappings(void), run_registers(void), run_lasting(void), run_filter(void);        /* memory.c */
