/* short_lived: a program whose threads live a moment each gets signals from its children. Says how many
 * came late or never, and how many said the wrong thing of who sent them. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 150, THREADS = 4, LATE_S = 2 };

static atomic_int came, wrong, child;

static void on_signal(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  came++;
  wrong += info->si_code != SI_USER || info->si_pid != child;
}

static void *work(void *until) {
  volatile int n = 0;
  while (n < 1000) n++;
  return until;
}

static void create_and_join(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(void) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGTERM, &action, NULL);
  int late = 0;
  for (int round = 0; round < ROUNDS; round++) {
    came = 0;
    int go[2];
    if (pipe(go)) return 1;
    int pid = fork();
    if (pid == 0) {
      char c;
      if (read(go[0], &c, 1) != 1) _exit(1);
      usleep(1000);
      kill(getppid(), SIGTERM);
      _exit(0);
    }
    child = pid;
    if (write(go[1], "", 1) != 1) return 1;
    time_t start = time(NULL);
    while (!came && time(NULL) <= start + LATE_S) create_and_join();
    late += came != 1;
    waitpid(pid, NULL, 0);
    close(go[0]);
    close(go[1]);
  }
  printf("%d late, %d from somebody else\n", late, wrong);
}
