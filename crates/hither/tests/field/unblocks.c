/* unblocks: a program all of whose threads start with a signal blocked, and unblock it, as servers do. Says how many
 * signals of its children came late or twice, how many said the wrong thing of who sent them, and what each of the
 * calls that unblock, wait for or read signals makes of one that was sent before it. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 150, THREADS = 4, LATE_S = 5, SPINS = 1000 };

static atomic_int came, wrong, child;
static sigset_t term, nothing;
static pthread_t handled_by;

static void on_signal(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  handled_by = pthread_self();
  wrong += info->si_code != SI_USER || info->si_pid != child;
  came++;
}

static void *work(void *until) {
  pthread_sigmask(SIG_UNBLOCK, &term, NULL);
  for (volatile int n = 0; n < SPINS;) n++;
  return until;
}

/* The main thread takes the signal again as soon as one of the threads has ended. */
static void create_and_join(void) {
  pthread_t threads[THREADS];
  pthread_sigmask(SIG_BLOCK, &term, NULL);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    pthread_sigmask(SIG_UNBLOCK, &term, NULL);
  }
}

/* A child that sends the signal once it may. */
static void start_child(int go[2]) {
  if (pipe(go)) _exit(1);
  child = fork();
  if (child) return;
  char c;
  if (read(go[0], &c, 1) != 1) _exit(1);
  usleep(1000);
  kill(getppid(), SIGTERM);
  _exit(0);
}

static void end_child(int go[2]) {
  waitpid(child, NULL, 0);
  close(go[0]);
  close(go[1]);
}

static void many_rounds(void) {
  int late = 0;
  for (int round = 0; round < ROUNDS; round++) {
    int go[2];
    came = 0;
    start_child(go);
    if (write(go[1], "", 1) != 1) _exit(1);
    time_t start = time(NULL);
    while (!came && time(NULL) <= start + LATE_S) create_and_join();
    late += came != 1;
    end_child(go);
  }
  printf("%d late, %d from somebody else\n", late, wrong);
}

/* Has a child send the signal while nobody takes it. */
static void send_blocked(void) {
  int go[2];
  came = 0;
  pthread_sigmask(SIG_BLOCK, &term, NULL);
  start_child(go);
  if (write(go[1], "", 1) != 1) _exit(1);
  end_child(go);
}

static void say(const char *call, int result) {
  printf("%s: %d, handled %d times, %d from somebody else\n", call, result < 0 ? -errno : result, came, wrong);
}

static void one_after_the_other(void) {
  sigset_t set;
  pthread_t thread;
  siginfo_t info = {0};
  const struct timespec second = {1, 0};
  struct signalfd_siginfo read_info = {0};
  struct epoll_event event;

  send_blocked();
  sigpending(&set);
  printf("pending: %d\n", sigismember(&set, SIGTERM));
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
  printf("by the thread that unblocks it: %d\n", came && pthread_equal(handled_by, thread));
  sigpending(&set);
  printf("pending: %d\n", sigismember(&set, SIGTERM));

  send_blocked();
  say("sigsuspend", sigsuspend(&nothing));
  send_blocked();
  say("ppoll", ppoll(NULL, 0, &second, &nothing));
  send_blocked();
  say("pselect", pselect(0, NULL, NULL, NULL, &second, &nothing));
  send_blocked();
  say("epoll_pwait", epoll_pwait(epoll_create1(0), &event, 1, 1000, &nothing));
  send_blocked();
  say("sigtimedwait", sigtimedwait(&term, &info, &second));
  printf("from its child: %d\n", info.si_pid == child);
  send_blocked();
  int descriptor = signalfd(-1, &term, SFD_NONBLOCK);
  say("signalfd, sent before", read(descriptor, &read_info, sizeof read_info) > 0);
  printf("from its child: %d\n", (int)read_info.ssi_pid == child);
  send_blocked();
  say("signalfd, sent after", read(descriptor, &read_info, sizeof read_info) > 0);
  printf("from its child: %d\n", (int)read_info.ssi_pid == child);
}

int main(void) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGTERM, &action, NULL);
  sigemptyset(&nothing);
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  many_rounds();
  one_after_the_other();
}
