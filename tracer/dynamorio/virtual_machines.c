/* virtual_machines.c: Java's and Erlang's virtual machines among the programs that the traced one executes.
 *
 * DynamoRIO cannot follow them (crates/hither/src/trace/unsupported.rs says why), so they run
 * untraced: before its first instruction, the process executes the same program once more
 * without DynamoRIO. */
#include "host.h"
#include <elf.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char launcher[] = "libjli.so";
static const char erlang[] = "beam.smp"; /* its interpreter is called beam.emu.smp */

/* Whether the program's file needs the launcher. Nothing is relocated yet: addresses in the
 * dynamic section are as linked. */
static bool is_jvm(const module_data_t *m) {
  const Elf64_Ehdr *file = (const Elf64_Ehdr *)m->start;
  uint64_t moved = (uint64_t)(m->start - m->preferred_base);
  const Elf64_Phdr *headers = (const Elf64_Phdr *)(m->start + file->e_phoff);
  const Elf64_Dyn *dynamic = NULL;
  for (int i = 0; i < file->e_phnum; i++)
    if (headers[i].p_type == PT_DYNAMIC) dynamic = (const Elf64_Dyn *)(headers[i].p_vaddr + moved);
  const char *strings = NULL;
  for (const Elf64_Dyn *d = dynamic; d && d->d_tag != DT_NULL; d++)
    if (d->d_tag == DT_STRTAB) strings = (const char *)(d->d_un.d_ptr + moved);
  for (const Elf64_Dyn *d = dynamic; strings && d->d_tag != DT_NULL; d++) {
    char name[sizeof launcher];
    size_t got;
    if (d->d_tag == DT_NEEDED && dr_safe_read(strings + d->d_un.d_val, sizeof name, name, &got) &&
        memcmp(name, launcher, sizeof launcher) == 0)
      return true;
  }
  return false;
}

static bool is_erlang(const char *path) {
  const char *name = strrchr(path, '/');
  return strcmp(name ? name + 1 : path, erlang) == 0;
}

/* Returns only where the program is none, or is one that DynamoRIO was started for. */
void virtual_machines_leave(void) {
  uint64_t watched = 1;
  if (!dr_get_integer_option("hw_cache_consistency", &watched) || !watched) return;
  module_data_t *m = dr_get_main_module();
  if (m && m->full_path && (is_erlang(m->full_path) || is_jvm(m))) {
    uint64_t a[] = {HI_LOST_VIRTUAL_MACHINE};
    hi_emit(NULL, HI_EV_LOST, 0, a, 1, NULL);
    /* On the stack: the number of arguments, they, NULL, the environment. */
    char **end = environ - 1;
    uint64_t n = 0;
    while ((uint64_t)end[-1 - (int64_t)n] != n) n++;
    syscall(SYS_execve, m->full_path, end - n, environ);
  }
  if (m) dr_free_module_data(m);
}
