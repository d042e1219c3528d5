/* Structures that share pages and lines: small blocks, blocks at addresses that others had
 * before, variables beside literals; and a block that one line touches first.
 *
 *   pieces ROUNDS
 *
 * Per round: 64 reads of each of 500 list nodes, 20,000 writes to a small block that lies where
 * a large one was, 1000 writes to each of two counters on one line. */
#include "team.h"
#include <string.h>

enum { NODES = 500, SMALL = 85, WRITES = 20000, COUNTS = 1000 };

struct node {
  volatile long key;
  struct node *volatile next;
};

static volatile long near_one, near_two;
static double shares[4096];
static const double weights[16] = {1, 2, 3, 4, 5, 6, 7, 8};

static struct node *list_of(long n) {
  struct node *head = NULL;
  for (long i = 0; i < n; i++) {
    struct node *node = malloc(sizeof *node);
    char *label = strdup("a label between nodes");
    node->key = i + label[0];
    node->next = head;
    head = node;
  }
  return head;
}

/* Returns the address of a block that was freed. */
static char *use_and_free(size_t bytes) {
  char *large = malloc(bytes);
  memset(large, 1, bytes);
  free(large);
  return large;
}

static double sum(const struct node *head, long rounds) {
  double total = 0;
  for (long r = 0; r < rounds; r++)
    for (int again = 0; again < 32; again++)
      for (const struct node *n = head; n; n = n->next) total += (double)n->key * weights[again % 16];
  return total;
}

int main(int argc, char **argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 10;
  use_and_free(60000);
  volatile long *small = malloc(SMALL * sizeof *small);
  for (long i = 0; i < rounds * WRITES; i++) small[i % SMALL] = i;
  struct node *head = list_of(NODES);
  double total = sum(head, rounds);
  for (long i = 0; i < rounds * COUNTS; i++) {
    near_one = i;
    near_two = i;
  }
  for (int i = 0; i < 4096; i++) shares[i] = total;
  char *volatile touched = malloc(1 << 20);
  memset(touched, 1, 1 << 20); /* the first touch */
  printf("%g %g %d\n", total, shares[5], touched[99]);
  return 0;
}
