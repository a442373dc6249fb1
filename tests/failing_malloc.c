// A library to be loaded before a program (LD_PRELOAD): from SIGUSR2 on, one of FAILING_MALLOC_ONE_IN
// allocations fails, chosen at random, until the next SIGUSR2. Uses the entries of glibc's own allocator.

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static volatile sig_atomic_t failing = 0;
static uint64_t one_in = 1000;
static _Atomic uint64_t num_calls = 0;

static void Toggle(int signal_number) {
  (void)signal_number;
  failing = !failing;
}

__attribute__((constructor)) static void Init(void) {
  const char* text = getenv("FAILING_MALLOC_ONE_IN");
  if (text != NULL) one_in = strtoull(text, NULL, 10);
  struct sigaction action = {0};
  action.sa_handler = Toggle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &action, NULL);
}

static int Fails(void) {
  if (!failing) return 0;
  uint64_t x = ++num_calls * 0x9E3779B97F4A7C15u;
  x ^= x >> 31;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 29;
  if (x % one_in != 0) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) { return Fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return Fails() ? NULL : __libc_calloc(count, size); }
void* realloc(void* memory, size_t size) { return Fails() ? NULL : __libc_realloc(memory, size); }
void* memalign(size_t alignment, size_t size) {
  return Fails() ? NULL : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  void* found = memalign(alignment, size);
  if (found == NULL) return ENOMEM;
  *memory = found;
  return 0;
}
