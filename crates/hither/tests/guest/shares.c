/* shares: writes `moved` and forks a child that shares its pages for four seconds. After two and after twelve
 * prints `PAGES NODE` for each node that has some. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 64, PAGE = 4096, NODES = 8, NODE_OF_ADDRESS = 3 };

char moved[PAGES][PAGE] __attribute__((aligned(4096)));

static void rest(long seconds) {
  struct timespec time = {seconds, 0};
  while (nanosleep(&time, &time)) {}
}

static void look(void) {
  int nodes[NODES] = {0};
  for (int page = 0; page < PAGES; page++) {
    int node = -1;
    syscall(SYS_get_mempolicy, &node, NULL, 0, moved[page], NODE_OF_ADDRESS);
    if (node >= 0 && node < NODES) nodes[node]++;
  }
  for (int node = 0; node < NODES; node++)
    if (nodes[node]) printf("%d %d\n", nodes[node], node);
}

int main(void) {
  for (int page = 0; page < PAGES; page++) moved[page][0] = 1;
  if (fork() == 0) {
    rest(4);
    _exit(0);
  }
  rest(2);
  look();
  rest(10);
  look();
  wait(NULL);
  return 0;
}
