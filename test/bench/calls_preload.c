/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload that counts allocations and mutex locks of the process, for part `calls`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

enum { ALLOCATIONS = 0, LOCKS = 1 };
/* Only sums are read, so no order is needed. */
static atomic_long counts[2];

static void count(int what)
{
    atomic_fetch_add_explicit(&counts[what], 1, memory_order_relaxed);
}

__attribute__((visibility("default"))) long bench_calls_read(int what)
{
    return atomic_load_explicit(&counts[what], memory_order_relaxed);
}

void *malloc(size_t bytes)
{
    count(ALLOCATIONS);
    return __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes)
{
    count(ALLOCATIONS);
    return __libc_calloc(number, bytes);
}

void *realloc(void *old, size_t bytes)
{
    count(ALLOCATIONS);
    return __libc_realloc(old, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    count(ALLOCATIONS);
    *memory = __libc_memalign(alignment, bytes);
    return NULL == *memory ? 12 : 0;
}

typedef int mutex_fn(pthread_mutex_t *mutex);

/* Found by hand at each first call: the loader itself locks before any constructor runs. */
static int mutex_call(mutex_fn **real, const char *name, pthread_mutex_t *mutex)
{
    count(LOCKS);
    if (NULL == *real)
        *(void **) real = dlsym(RTLD_NEXT, name);
    return (*real)(mutex);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static mutex_fn *real;

    return mutex_call(&real, "pthread_mutex_lock", mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    static mutex_fn *real;

    return mutex_call(&real, "pthread_mutex_trylock", mutex);
}
