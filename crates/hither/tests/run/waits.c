/* waits.c: one thread after the other in every system call that waits, for WAIT_MS or until
 * a helper acts after that time. Says what each returned and whether it waited as long as
 * it should: interrupting a waiting thread must not show. `waits threads` has them wait all at once,
 * each in a thread of its own. A large array, first touched by the first thread, is there
 * to be moved about meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 250
#define PAGES 512
#define PAGE 4096

static char moved[PAGES][PAGE] __attribute__((aligned(PAGE)));
static const struct timespec span = {.tv_nsec = WAIT_MS * 1000000L};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct timespec later(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  t.tv_nsec += span.tv_nsec;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  return t;
}

/* Writes a byte to a file after the time. */
static void *write_later(void *fd) {
  usleep(WAIT_MS * 1000);
  if (write((int)(intptr_t)fd, "written.", 8) != 8) abort();
  return NULL;
}

static void writing(int fd) {
  pthread_t thread;
  pthread_create(&thread, NULL, write_later, (void *)(intptr_t)fd);
  pthread_detach(thread);
}

static long w_nanosleep(void) {
  /* What is left is written whenever somebody looks at the thread, and means nothing then. */
  struct timespec left;
  return nanosleep(&span, &left);
}

static long w_clock_nanosleep(void) {
  struct timespec until = later(CLOCK_REALTIME);
  return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
}

static long w_futex(void) {
  uint32_t word = 0;
  return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &span, NULL, 0);
}

static long w_condition(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  struct timespec until = later(CLOCK_REALTIME);
  pthread_mutex_lock(&mutex);
  return pthread_cond_timedwait(&condition, &mutex, &until);
}

static long w_semaphore(void) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  struct timespec until = later(CLOCK_REALTIME);
  return sem_timedwait(&semaphore, &until);
}

static int quiet(void) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  return ends[0];
}

static long w_poll(void) { return poll(&(struct pollfd){quiet(), POLLIN, 0}, 1, WAIT_MS); }
static long w_ppoll(void) { return ppoll(&(struct pollfd){quiet(), POLLIN, 0}, 1, &span, NULL); }

static long w_select(void) {
  fd_set set;
  FD_ZERO(&set);
  int fd = quiet();
  FD_SET(fd, &set);
  struct timeval wait = {0, WAIT_MS * 1000};
  return select(fd + 1, &set, NULL, NULL, &wait);
}

static int watched(int fd) {
  struct epoll_event event = {.events = EPOLLIN};
  int epoll = epoll_create1(0);
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  return epoll;
}

static long w_epoll(void) {
  struct epoll_event event;
  return epoll_wait(watched(quiet()), &event, 1, WAIT_MS);
}

static long w_epoll_event(void) {
  struct epoll_event event;
  int ends[2];
  if (pipe(ends) != 0) abort();
  writing(ends[1]);
  return epoll_wait(watched(ends[0]), &event, 1, -1);
}

static int receiver(int *sender) {
  int ends[2];
  struct timeval wait = {0, WAIT_MS * 1000};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
  setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  *sender = ends[1];
  return ends[0];
}

static long w_receive(void) {
  char byte;
  int sender;
  return recv(receiver(&sender), &byte, 1, 0);
}

static long w_receive_message(void) {
  int ends[2];
  char bytes[8];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0) abort();
  writing(ends[1]);
  return recv(ends[0], bytes, 8, 0);
}

static long w_accept(void) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  struct timeval wait = {0, WAIT_MS * 1000};
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  bind(fd, (struct sockaddr *)&name, sizeof name.sun_family);
  listen(fd, 1);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  return accept(fd, NULL, NULL);
}

static long w_pipe(void) {
  int ends[2];
  char bytes[8];
  if (pipe(ends) != 0) abort();
  writing(ends[1]);
  return read(ends[0], bytes, 8);
}

static void *drain_later(void *fd) {
  static char bytes[1 << 20];
  usleep(WAIT_MS * 1000);
  if (read((int)(intptr_t)fd, bytes, sizeof bytes) < 0) abort();
  return NULL;
}

static long w_full_pipe(void) {
  int ends[2];
  static char bytes[1 << 16];
  if (pipe(ends) != 0 || write(ends[1], bytes, sizeof bytes) != sizeof bytes) abort();
  pthread_t thread;
  pthread_create(&thread, NULL, drain_later, (void *)(intptr_t)ends[0]);
  return write(ends[1], bytes, 100);
}

static long w_eventfd(void) {
  uint64_t value;
  int fd = eventfd(0, 0);
  writing(fd);
  return read(fd, &value, 8);
}

static long w_timerfd(void) {
  uint64_t value;
  int fd = timerfd_create(CLOCK_MONOTONIC, 0);
  struct itimerspec when = {.it_value = span};
  timerfd_settime(fd, 0, &when, NULL);
  return read(fd, &value, 8) + (long)value;
}

static void *touch_later(void *name) {
  usleep(WAIT_MS * 1000);
  close(open(name, O_CREAT | O_WRONLY, 0600));
  return NULL;
}

static long w_inotify(void) {
  char bytes[512];
  int fd = inotify_init();
  inotify_add_watch(fd, ".", IN_CREATE);
  pthread_t thread;
  pthread_create(&thread, NULL, touch_later, "touched-by-waits");
  long got = read(fd, bytes, sizeof bytes);
  unlink("touched-by-waits");
  return got > 0;
}

static long w_signal(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, NULL);
  return sigtimedwait(&set, NULL, &span);
}

static void on_alarm(int signal) { (void)signal; }
static long w_pause(void) {
  struct sigaction action = {.sa_handler = on_alarm};
  sigaction(SIGALRM, &action, NULL);
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
  event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
  struct itimerspec when = {.it_value = span};
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &when, NULL);
  return pause();
}

static long w_semop(void) {
  int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
  struct sembuf down = {0, -1, 0};
  long got = semtimedop(id, &down, 1, &span);
  int error = errno;
  semctl(id, 0, IPC_RMID);
  errno = error;
  return got;
}

static long w_queue(void) {
  struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
  char message[8], name[32];
  snprintf(name, sizeof name, "/waits-%d", getpid());
  mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
  mq_unlink(name);
  struct timespec until = later(CLOCK_REALTIME);
  return mq_timedreceive(queue, message, sizeof message, NULL, &until);
}

static long w_child(void) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    usleep(WAIT_MS * 1000);
    _exit(3);
  }
  return (waitpid(child, &status, 0) == child) + WEXITSTATUS(status);
}

static void *sleep_on(void *nothing) {
  usleep(WAIT_MS * 1000);
  return nothing;
}

static long w_join(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleep_on, NULL);
  return pthread_join(thread, NULL);
}

static long w_lock(void) {
  struct flock lock = {.l_type = F_WRLCK, .l_len = 1};
  int fd = open(".", O_TMPFILE | O_RDWR, 0600), ready[2];
  char byte;
  if (pipe(ready) != 0) abort();
  pid_t child = fork();
  if (child == 0) {
    fcntl(fd, F_SETLK, &lock);
    if (write(ready[1], "r", 1) != 1) abort();
    usleep(WAIT_MS * 1000);
    _exit(0);
  }
  if (read(ready[0], &byte, 1) != 1) abort();
  long got = fcntl(fd, F_SETLKW, &lock);
  return waitpid(child, NULL, 0) == child ? got : -2;
}

static const struct wait {
  const char *name;
  long (*wait)(void);
} waits[] = {
    {"nanosleep", w_nanosleep}, {"clock_nanosleep", w_clock_nanosleep},
    {"futex", w_futex},         {"condition", w_condition},
    {"semaphore", w_semaphore}, {"poll", w_poll},
    {"ppoll", w_ppoll},         {"select", w_select},
    {"epoll", w_epoll},         {"epoll with event", w_epoll_event},
    {"receive", w_receive},     {"receive message", w_receive_message},
    {"accept", w_accept},       {"pipe", w_pipe},
    {"full pipe", w_full_pipe}, {"eventfd", w_eventfd},
    {"timerfd", w_timerfd},     {"inotify", w_inotify},
    {"signal", w_signal},       {"pause", w_pause},
    {"semop", w_semop},         {"queue", w_queue},
    {"child", w_child},         {"join", w_join},
    {"lock", w_lock},
};
#define WAITS (sizeof waits / sizeof *waits)

static struct outcome { long got, error, waited; } outcomes[WAITS];

static void *do_wait(void *number) {
  size_t i = (size_t)(intptr_t)number;
  double start = now();
  errno = 0;
  outcomes[i].got = waits[i].wait();
  outcomes[i].error = errno;
  outcomes[i].waited = now() - start >= WAIT_MS * 0.9;
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t thread[WAITS];
  for (int i = 0; i < PAGES; i++) memset(moved[i], i, PAGE);
  int all = argc > 1 && strcmp(argv[1], "threads") == 0;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, NULL);
  for (size_t i = 0; i < WAITS; i++) {
    if (all) pthread_create(&thread[i], NULL, do_wait, (void *)(intptr_t)i);
    else do_wait((void *)(intptr_t)i);
  }
  for (size_t i = 0; all && i < WAITS; i++) pthread_join(thread[i], NULL);
  /* Until then children that some of the threads waited for had the array too: no page that
   * two processes map is moved. */
  if (all) usleep(1000 * 1000);
  for (size_t i = 0; i < WAITS; i++)
    printf("%s: %ld %s waited %ld\n", waits[i].name, outcomes[i].got,
           outcomes[i].got < 0 ? strerror((int)outcomes[i].error) : "-", outcomes[i].waited);
  long sum = 0;
  for (int i = 0; i < PAGES; i++)
    for (int k = 0; k < PAGE; k += 512) sum += moved[i][k];
  printf("memory %ld\n", sum);
  return 0;
}
