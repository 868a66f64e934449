/* SPDX-License-Identifier: BSD-3-Clause */
/* A biased lock under real threads: nothing is lost when another thread comes, whenever it does,
 * and none is inside together with another. ThreadSanitizer sees whether the first one's writes are
 * ordered before the others'. */
#include "check.h"

#include <pthread.h>
#include <sched.h>

#include "common/lock/bias.h"

#define ROUNDS  12
#define OTHERS  2
#define CHANGES 20000

static struct bias bias;
static pthread_mutex_t outer_mutex = PTHREAD_MUTEX_INITIALIZER,
                       inner_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t outer_guarded, inner_guarded; /* plain: the locks order them */
static _Atomic uint32_t begun;                /* changes that the first thread has made */
static _Atomic uint32_t wrong;                /* in any thread: CHECK is for one */

static bool lock(pthread_mutex_t *mutex)
{
    bool by_bias = bias_enter(&bias, thread_number());
    if (!by_bias)
        pthread_mutex_lock(mutex);
    return by_bias;
}

static void unlock(pthread_mutex_t *mutex, bool by_bias)
{
    bool left = bias_leave(&bias, thread_number());
    wrong += left != by_bias;
    if (!left)
        pthread_mutex_unlock(mutex);
}

/* One lock inside of another, as a peer's and a communicator's. */
static bool change(void)
{
    bool outer = lock(&outer_mutex);
    outer_guarded++;
    bool inner = lock(&inner_mutex);
    inner_guarded++;
    unlock(&inner_mutex, inner);
    unlock(&outer_mutex, outer);
    return outer;
}

/* A second thread that does not wait finds it taken, and does not end the bias. */
static void *tries(void *unused)
{
    wrong += bias_is_free(&bias, thread_number());
    return unused;
}

static void *changes(void *from)
{
    uint32_t after = *(uint32_t *) from;
    while (atomic_load(&begun) < after)
        sched_yield();
    for (int i = 0; i < CHANGES; i++)
        wrong += change(); /* it has no bias */
    return NULL;
}

static void round_run(uint32_t number)
{
    pthread_t other[OTHERS], trier;
    uint32_t from[OTHERS];
    uint64_t by_bias = 0;

    bias = (struct bias){.depth = 0};
    outer_guarded = inner_guarded = 0;
    atomic_store(&begun, 0);
    by_bias += change();
    CHECK(by_bias == 1, "the first thread takes a mutex");
    CHECK(bias_is_free(&bias, thread_number()), "the first thread's try fails");
    pthread_create(&trier, NULL, tries, NULL);
    pthread_join(trier, NULL);
    for (uint32_t i = 0; i < OTHERS; i++) {
        from[i] = number * 500 + i;
        pthread_create(&other[i], NULL, changes, &from[i]);
    }
    for (int i = 1; i < CHANGES; i++) {
        by_bias += change();
        atomic_store(&begun, (uint32_t) i);
    }
    for (int i = 0; i < OTHERS; i++)
        pthread_join(other[i], NULL);
    CHECK(by_bias >= 1 + number * 500, "%llu by the bias", (unsigned long long) by_bias);
    CHECK(outer_guarded == CHANGES * (OTHERS + 1), "%llu", (unsigned long long) outer_guarded);
    CHECK(inner_guarded == CHANGES * (OTHERS + 1), "%llu", (unsigned long long) inner_guarded);
    CHECK(wrong == 0, "%u times wrong in a thread", wrong);
    CHECK(!change() && !bias_claim(&bias, thread_number() + 1), "the bias came back");
}

int main(void)
{
    for (uint32_t number = 0; number < ROUNDS; number++)
        round_run(number);
    return check_end();
}
