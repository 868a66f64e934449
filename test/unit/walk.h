/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks all ways in which a sender and a receiver may take turns, and what keeps back the stores
 * of each, if a model has that. All are coroutines of one thread, which pause before each access to
 * what they share; a state that was seen is not walked on from. */
#ifndef TEST_UNIT_WALK_H
#define TEST_UNIT_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SENDER, RECEIVER, ENDS };
/* Beside the ends: what brings the stores of each to memory. */
enum { SENDER_STORES = ENDS, RECEIVER_STORES, WALKERS_MAX };

struct walk_end {
    bool done;
    bool waiting;          /* until the other end stores something, */
    uint32_t waiting_from; /* its stores being counted from here */
    uint32_t stores;
};

/* What is walked. */
struct walk_model {
    void (*programs[WALKERS_MAX])(void); /* each ends with walk_done; or NULL */
    void (*begin)(void);                 /* the first state of all but the ends */
    uint64_t (*hash)(void);              /* of all that the future depends on, but the ends */
    uint32_t visited_max;                /* a power of two, twice as many as there are states */
    bool (*can_run)(int end);            /* asked beside `waiting`; NULL: always */
};

struct walk {
    struct walk_end ends[WALKERS_MAX];
    int running;
    const char *failure;
    uint64_t states, runs;
};

extern struct walk walk;

/* All ways. False: walk.failure says what went wrong, walk_report who had gone on. */
bool walk_all(void);
void walk_report(void);

/* Of the end that runs: the other one may go on. */
void walk_pause(void);
void walk_done(void);
void walk_fail(const char *what);

#define WALK_HASH UINT64_C(0xcbf29ce484222325)
uint64_t walk_hash(uint64_t hash, const void *data, size_t bytes);

/* False with MULTILANE_WALKS=no: what is walked is the same in each build. */
static inline bool walk_is_wanted(void)
{
    const char *wanted = getenv("MULTILANE_WALKS");
    return !wanted || strcmp(wanted, "no") != 0;
}

/* What is walked where things happen to one state, in any order. */
struct walk_events {
    void *state; /* the first one, and then where they happen; of bytes that all count */
    size_t bytes;
    uint32_t states_max, events;
    bool (*happen)(uint32_t event);  /* false: it cannot, and nothing has changed */
    bool (*goes_on)(uint32_t event); /* without it something may be waited for */
    bool (*is_over)(void);
};

/* All orders. False: walk.failure says what went wrong: walk_fail was called, or what goes on does
 * not lead to an end from some state. */
bool walk_events(const struct walk_events *model);

/* A test's main: `walks` walks all cases of the model, and returns 0 if they hold and what is wrong
 * on purpose is found; then `shown` is printed. 77, having said why: under ThreadSanitizer, and
 * with MULTILANE_WALKS=no. */
int walk_main(const struct walk_model *model, int (*walks)(void), const char *shown);

#endif
