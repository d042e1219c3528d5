/* Takes a name in the abstract name space of Unix sockets, says so, and keeps it. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  size_t length = argc > 1 ? strlen(argv[1]) : 0;
  if (length == 0 || length >= sizeof at.sun_path) return 2;
  memcpy(at.sun_path + 1, argv[1], length);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  socklen_t size = offsetof(struct sockaddr_un, sun_path) + 1 + length;
  if (bind(fd, (struct sockaddr *)&at, size) != 0 || listen(fd, 9) != 0) return 1;
  puts("there");
  fflush(stdout);
  sleep(600);
  return 0;
}
