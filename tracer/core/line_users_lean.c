/* line_users_lean.c: registers the users of lines and lists them for side records. */
#include "line_users.h"

/* A node with these users, that nobody else has; 0 if there is no room for more in this slice. */
uint32_t hi_new_node(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t at = __atomic_fetch_add(&hi_run.header->next_user_node, 1, __ATOMIC_RELAXED);
  const uint32_t half = HI_USER_NODES / 2;
  /* The last of a half marks its end, and is not passed before the next slice. */
  if (at % half == half - 1 || !(at % HI_USER_NODES)) {
    __atomic_store_n(&hi_run.header->next_user_node, at, __ATOMIC_RELAXED);
    __atomic_fetch_add(&hi_run.header->lost_users, 1, __ATOMIC_RELAXED);
    return 0;
  }
  at %= HI_USER_NODES;
  hi_run.user_nodes[at] = (struct hi_user_node){{(uint16_t)a, (uint16_t)b, (uint16_t)c}, 0};
  if (HI_UNLIKELY(hi_run.user_counts))
    for (uint32_t i = 0; i < HI_NODE_USERS; i++) hi_run.user_counts[at * HI_NODE_USERS + i] = (struct hi_line_use){0};
  return at;
}

/* There are HI_LINE_USERS: the thread takes the place of the one that came first of them. What comes behind the `last`
 * node counts whose turn it is. */
static enum hi_came take_place(const struct hi_local *t, uint32_t first, struct hi_user_node *last) {
  uint32_t place = __atomic_fetch_add(&last->next, 1, __ATOMIC_RELAXED) % HI_LINE_USERS, at = first;
  for (uint32_t nodes = place / HI_NODE_USERS; nodes > 0; nodes--) at = hi_run.user_nodes[at % HI_USER_NODES].next;
  at %= HI_USER_NODES;
  uint32_t i = place % HI_NODE_USERS;
  __atomic_store_n(&hi_run.user_nodes[at].user[i], (uint16_t)t->index, __ATOMIC_RELEASE);
  if (HI_UNLIKELY(hi_run.user_counts)) hi_run.user_counts[at * HI_NODE_USERS + i] = (struct hi_line_use){0};
  __atomic_fetch_add(&hi_run.header->displaced_users, 1, __ATOMIC_RELAXED);
  return HI_TOOK_PLACE;
}

/* Appends the thread to the users in a node and those behind it, unless it is there, from now on without marks. */
static enum hi_came append(const struct hi_local *t, uint32_t first) {
  uint16_t me = (uint16_t)t->index;
  uint32_t at = first;
  for (uint32_t nodes = 1;; nodes++) {
    struct hi_user_node *node = &hi_run.user_nodes[at % HI_USER_NODES];
    for (uint32_t i = 0; i < HI_NODE_USERS; i++) {
      uint16_t user = __atomic_load_n(&node->user[i], __ATOMIC_RELAXED);
      if ((user & HI_SHADOW_THREAD) == me) {
        if (user != me) __atomic_fetch_and(&node->user[i], HI_SHADOW_THREAD, __ATOMIC_ACQ_REL);
        return HI_CAME_BEFORE;
      }
      if (user) continue;
      if (__atomic_compare_exchange_n(&node->user[i], &user, me, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        return HI_CAME_LAST;
    }
    if (nodes == HI_LINE_NODES) return take_place(t, first, node);
    uint32_t next = __atomic_load_n(&node->next, __ATOMIC_ACQUIRE);
    if (!next) {
      uint32_t made = hi_new_node(me, 0, 0);
      if (!made || __atomic_compare_exchange_n(&node->next, &next, made, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        return HI_CAME_LAST;
    }
    at = next;
  }
}

/* Makes the thread a user of the line. */
enum hi_came hi_register_user(struct hi_local *t, uint64_t *word) {
  uint64_t next, v = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  uint32_t me = t->index;
  do {
    uint32_t first = hi_first_user(v), second = hi_second_user(v);
    if (!hi_in_slice(t, v)) next = hi_users_word(t, v, me);
    else if (v & HI_USERS) return append(t, hi_node_of(v));
    else if (first == me || second == me) return HI_CAME_BEFORE;
    else if (!second) next = hi_users_word(t, v, (uint64_t)me << HI_SHADOW_SECOND | first);
    else {
      uint32_t node = hi_new_node(first, second, me);
      if (!node) return HI_CAME_LAST;
      next = hi_node_word(t, v, node);
    }
  } while (!__atomic_compare_exchange_n(word, &v, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  return HI_CAME_LAST;
}

static bool same(const uint16_t *a, const uint16_t *b) {
  for (uint32_t i = 0; i <= a[0]; i++)
    if (a[i] != b[i]) return false;
  return true;
}

/* The others among the users of a line, into a side record: with `before`, those that came before the thread,
 * else all. Lists are shared by records that have the same. There must be room for a list of all
 * threads. */
void hi_list_others(struct hi_local *t, struct hi_side *s, uint64_t word, bool before) {
  struct hi_user_walk walk = hi_walk_users(word);
  uint16_t *list = &t->lists[t->lists_end], n = 0;
  uint64_t hash = 0;
  for (uint32_t user; (user = hi_next_user(&walk)) && n < HI_MAX_THREADS;) {
    if (user == t->index && before) break;
    if (user == t->index) continue;
    list[++n] = (uint16_t)user;
    hash = (hash ^ user) * HI_HASH_MULTIPLIER;
  }
  if (n < 2) {
    s->others = n ? list[1] : 0;
    return;
  }
  list[0] = n;
  uint16_t *known = &t->list_at[hash >> 32 & (HI_LIST_HASHES - 1)];
  if (!*known || !same(hi_list(t, *known), list)) {
    *known = (uint16_t)(HI_OTHERS + t->lists_end / 2);
    t->lists_end += (n + 2u) & ~1u;
  }
  s->others = *known;
}
