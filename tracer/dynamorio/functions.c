/* functions.c: functions that switch tracing on and off (--from, --until, --only-functions), and
 * synchronisation points, whose calls are counted. */
#include "host.h"
#include <sys/stat.h>

static const struct {
  const char *name;
  uint32_t which;
} sync_functions[] = {
    {"pthread_barrier_wait", HI_SYNC_PTHREAD_BARRIER},
    {"GOMP_barrier", HI_SYNC_OMP_BARRIER},
    {"GOMP_loop_end", HI_SYNC_OMP_BARRIER},
    {"GOMP_sections_end", HI_SYNC_OMP_BARRIER},
    {"GOMP_parallel", HI_SYNC_OMP_PARALLEL},
    {"GOMP_parallel_loop_static", HI_SYNC_OMP_PARALLEL},
    {"GOMP_parallel_loop_dynamic", HI_SYNC_OMP_PARALLEL},
    {"GOMP_parallel_loop_guided", HI_SYNC_OMP_PARALLEL},
    {"GOMP_parallel_loop_runtime", HI_SYNC_OMP_PARALLEL},
    {"GOMP_parallel_loop_nonmonotonic_dynamic", HI_SYNC_OMP_PARALLEL},
    {"GOMP_parallel_loop_nonmonotonic_guided", HI_SYNC_OMP_PARALLEL},
    {"GOMP_parallel_sections", HI_SYNC_OMP_PARALLEL},
    {"GOMP_parallel_reductions", HI_SYNC_OMP_PARALLEL},
    {"MPI_Barrier", HI_SYNC_MPI_BARRIER},
    {"mpi_barrier_", HI_SYNC_MPI_BARRIER},
};

/* Counts also while tracing is switched off: the counts are the progress of the run. */
static void on_sync(void *wrap, void **data) {
  struct hi_local *t = host_local(drwrap_get_drcontext(wrap));
  if (t->index && !hi_run.header->closed) t->shared->sync[(ptr_uint_t)*data]++;
}

static void on_from(void *wrap, void **data) {
  (void)wrap, (void)data;
  if (__atomic_exchange_n(&hi_run.header->active, 1, __ATOMIC_SEQ_CST) == 0) hi_flip_all();
}

static void on_until(void *wrap, void **data) {
  (void)wrap, (void)data;
  if (__atomic_exchange_n(&hi_run.header->active, 0, __ATOMIC_SEQ_CST) == 1) hi_flip_all();
}

static void on_only(void *wrap, void **data) {
  (void)data;
  struct hi_local *t = host_local(drwrap_get_drcontext(wrap));
  if (t->only_depth++ == 0) hi_flip_all();
}

static void after_only(void *wrap, void *data) {
  (void)data;
  struct hi_local *t = host_local(wrap ? drwrap_get_drcontext(wrap) : dr_get_current_drcontext());
  if (t->only_depth && --t->only_depth == 0) hi_flip_all();
}

/* Wraps a function that the collector named. */
void functions_hook(app_pc function, const struct hi_hook *hook) {
  switch (hook->kind) {
  case HI_HOOK_FROM: drwrap_wrap(function, on_from, NULL); break;
  case HI_HOOK_UNTIL: drwrap_wrap(function, on_until, NULL); break;
  case HI_HOOK_ONLY: drwrap_wrap_ex(function, on_only, after_only, NULL, DRWRAP_UNWIND_ON_EXCEPTION); break;
  case HI_HOOK_SYNC: drwrap_wrap_ex(function, on_sync, NULL, (void *)(ptr_uint_t)(hook->which % HI_SYNCS), 0); break;
  case HI_HOOK_ALLOC: alloc_wrap_hook(function, hook->which); break;
  default: break;
  }
}

void functions_wrap(const module_data_t *m, const struct exports *exports) {
  for (size_t i = 0; i < sizeof sync_functions / sizeof sync_functions[0]; i++) {
    app_pc function = exports_find(exports, sync_functions[i].name);
    if (function) drwrap_wrap_ex(function, on_sync, NULL, (void *)(ptr_uint_t)sync_functions[i].which, 0);
  }
  uint32_t hooks = hi_run.header->nhooks < HI_MAX_HOOKS ? hi_run.header->nhooks : HI_MAX_HOOKS;
  struct stat st;
  if (hooks == 0 || !m->full_path || stat(m->full_path, &st) != 0) return;
  for (uint32_t i = 0; i < hooks; i++) {
    const struct hi_hook *h = &hi_run.hooks[i];
    if (h->dev == st.st_dev && h->ino == st.st_ino) functions_hook(m->start + h->offset, h);
  }
}
