/* line_users.h: the users of a line: the threads that have accessed it in this slice, in the order
 * in which they came, see "shadow" in wire.h.
 *
 * A word or node of another slice than the thread's own may say anything: a thread that lags
 * behind may find nodes that are in use again. Numbers are checked and walks are bounded. */
#ifndef HITHER_LINE_USERS_H
#define HITHER_LINE_USERS_H
#include "state.h"

#define HI_MANY_OTHERS (2 * HI_NODE_USERS)

/* Whether a shadow word is of the thread's slice. */
static inline bool hi_in_slice(const struct hi_local *t, uint64_t word) {
  return (word & ~HI_USERS) >> HI_SHADOW_EPOCH == t->epoch;
}

/* A word by which `users` used the line: one thread, or two, or a node with HI_USERS. The version of
 * the line stays. */
static inline uint64_t hi_users_word(const struct hi_local *t, uint64_t before, uint64_t users) {
  return (uint64_t)t->epoch << HI_SHADOW_EPOCH | users | (before & HI_VERSION_BITS);
}

static inline uint32_t hi_first_user(uint64_t word) { return word & HI_SHADOW_THREAD; }
static inline uint32_t hi_second_user(uint64_t word) { return word >> HI_SHADOW_SECOND & HI_SHADOW_THREAD; }
static inline uint32_t hi_node_of(uint64_t word) {
  return hi_second_user(word) << HI_SHADOW_BITS | hi_first_user(word);
}

static inline uint64_t hi_node_word(const struct hi_local *t, uint64_t before, uint32_t node) {
  uint64_t high = node >> HI_SHADOW_BITS, low = node & HI_SHADOW_THREAD;
  return hi_users_word(t, before, high << HI_SHADOW_SECOND | low) | HI_USERS;
}

/* A walk over the users of a line. */
struct hi_user_walk {
  uint64_t word;
  struct hi_user_node *node;
  uint32_t at, nodes;
  uint16_t found; /* the user at which it is, with marks */
};

static inline struct hi_user_walk hi_walk_users(uint64_t word) {
  struct hi_user_node *node = word & HI_USERS ? &hi_run.user_nodes[hi_node_of(word)] : NULL;
  return (struct hi_user_walk){word, node, 0, 0, 0};
}

/* The next user, 0 after the last. */
static inline uint32_t hi_next_user(struct hi_user_walk *w) {
  uint32_t user = 0;
  if (!w->node) {
    if (w->at < 2) user = w->at ? hi_second_user(w->word) : hi_first_user(w->word);
    w->at++;
    return user < HI_MAX_THREADS ? user : 0;
  }
  if (w->at == HI_NODE_USERS) {
    uint32_t next = __atomic_load_n(&w->node->next, __ATOMIC_ACQUIRE);
    if (!next || ++w->nodes >= HI_LINE_NODES) return 0;
    w->node = &hi_run.user_nodes[next % HI_USER_NODES];
    w->at = 0;
  }
  user = __atomic_load_n(&w->node->user[w->at], __ATOMIC_ACQUIRE);
  if (user) w->at++;
  w->found = (uint16_t)user;
  user &= HI_SHADOW_THREAD;
  return user < HI_MAX_THREADS ? user : 0;
}

/* Marks the user at which a walk is, if it stands in a node and nothing has changed there: a thread that lags
 * behind may find that the node is in use again. */
static inline void hi_mark_user(const struct hi_user_walk *w, uint16_t mark) {
  uint16_t found = w->found;
  if (w->node)
    __atomic_compare_exchange_n(&w->node->user[w->at - 1], &found, found | mark, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
}

/* line_users_lean.c */
uint32_t hi_new_node(uint32_t a, uint32_t b, uint32_t c);
enum hi_came {
  HI_CAME_BEFORE, /* it was a user already */
  HI_CAME_LAST,   /* those behind it have come meanwhile */
  HI_TOOK_PLACE,  /* of one that is no longer among them: all came before it */
};
enum hi_came hi_register_user(struct hi_local *t, uint64_t *word);
void hi_list_others(struct hi_local *t, struct hi_side *s, uint64_t word, bool before);

static inline uint16_t *hi_list(const struct hi_local *t, uint16_t others) {
  return &t->lists[2 * (others % HI_OTHERS)];
}

/* The i-th thread with which the entry's accesses count, 0 after the last. */
static inline uint32_t hi_other(const struct hi_local *t, const struct hi_side *s, uint32_t i) {
  if (s->others < HI_OTHERS) return i ? 0 : s->others;
  const uint16_t *list = hi_list(t, s->others);
  return i < list[0] ? list[i + 1] : 0;
}

/* Whether there are so many that marks pay. */
static inline bool hi_many_others(const struct hi_local *t, const struct hi_side *s) {
  return s->others >= HI_OTHERS && hi_list(t, s->others)[0] >= HI_MANY_OTHERS;
}

/* All side records are void. */
static inline void hi_forget_lists(struct hi_local *t) {
  t->lists_end = t->continued_end = 0;
  for (uint32_t i = 0; i < HI_LIST_HASHES; i++) t->list_at[i] = 0;
}
#endif
