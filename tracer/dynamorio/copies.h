/* copies.h: two copies of each block, for slice sampling and burst recording. Not in host.h:
 * drbbdup.h forbids drmgr_is_last_instr, which insert.c needs. */
#ifndef HITHER_COPIES_H
#define HITHER_COPIES_H
#include "host.h"
#include "drbbdup.h"

void copies_init(drbbdup_options_t *options);
#endif
