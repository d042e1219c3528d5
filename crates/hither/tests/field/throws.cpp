// Exceptions through frames that allocate, from several threads, and a library that
// comes and goes.
#include <dlfcn.h>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static long dive(int depth) {
  std::vector<long> block(1000 + depth, depth);
  if (depth == 0) throw std::runtime_error(std::string(100, 'x'));
  return dive(depth - 1) + block[depth];
}

static long caught[4];

static void work(int me) {
  for (int i = 0; i < 200; i++) try {
      caught[me] += dive(i % 20);
    } catch (const std::runtime_error &e) { caught[me] += static_cast<long>(std::string(e.what()).size()); }
  try {
    std::vector<long> huge(static_cast<std::size_t>(1) << 58);
    caught[me] += huge[7];
  } catch (const std::bad_alloc &) { caught[me]++; }
}

int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) threads.emplace_back(work, i);
  for (auto &t : threads) t.join();
  int found = 0;
  for (int i = 0; i < 200; i++) {
    void *library = dlopen("libz.so.1", RTLD_NOW);
    if (!library) library = dlopen("libm.so.6", RTLD_NOW);
    auto version = reinterpret_cast<const char *(*)()>(dlsym(library, "zlibVersion"));
    if (version && version()[0]) found++;
    dlclose(library);
  }
  std::printf("%ld %ld %d\n", caught[0], caught[3], found);
}
