/* launcher: takes itself for a program that starts a Java virtual machine, as it needs the
 * library libjli.so (made of this file with LIBRARY defined). Prints what it inherits. */
#ifdef LIBRARY
int JLI_Launch(void) { return 7; }
#else
#include <stdlib.h>
int JLI_Launch(void);
int main(int argc, char **argv) {
  (void)argv;
  /* Of the sets of signals only the first 32: the C library uses two of the others. */
  int printed = system("env; ls /proc/$PPID/fd; readlink /proc/$PPID/exe; tr '\\0' '\\n' < /proc/$PPID/cmdline;"
                       "grep '^Sig[BIC]' /proc/$PPID/status | grep -o '^....\\|........$'");
  return printed == 0 ? JLI_Launch() + argc : 1;
}
#endif
