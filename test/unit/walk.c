/* SPDX-License-Identifier: BSD-3-Clause */
/* The search through all ways of taking turns. */
#include "test/unit/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STEPS_MAX   600
#define STACK_BYTES (64 * 1024)

#define STEPS_A_STATE 8

struct walk walk;

static struct {
    const struct walk_model *model;
    ucontext_t contexts[WALKERS_MAX], scheduler;
    unsigned char *stacks[WALKERS_MAX];
    uint8_t choice[STEPS_MAX];
    uint8_t alternatives[STEPS_MAX]; /* one bit for each that could go on instead */
    uint32_t depth;
    uint32_t prefix;
    uint64_t *visited;
    uint32_t visited_count;
} search;

/* False: there is no memory. */
static bool search_begin(const struct walk_model *model)
{
    bool good = true;
    search.model = model;
    search.visited = malloc(model->visited_max * sizeof(*search.visited));
    for (int i = 0; i < WALKERS_MAX; i++)
        good &= (search.stacks[i] = malloc(STACK_BYTES)) != NULL;
    return good && search.visited;
}

static void search_end(void)
{
    for (int i = 0; i < WALKERS_MAX; i++)
        free(search.stacks[i]);
    free(search.visited);
}

uint64_t walk_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

static void too_large(void)
{
    fprintf(stderr, "the model is too large\n");
    exit(1);
}

/* False: it was there. */
static bool visited_add(uint64_t hash)
{
    uint32_t mask = search.model->visited_max - 1, at = (uint32_t) (hash >> 20) & mask;
    hash |= 1;
    for (; search.visited[at]; at = (at + 1) & mask)
        if (search.visited[at] == hash)
            return false;
    search.visited[at] = hash;
    if (++search.visited_count > search.model->visited_max / 2)
        too_large();
    return true;
}

void walk_fail(const char *what)
{
    if (!walk.failure)
        walk.failure = what;
}

void walk_pause(void)
{
    swapcontext(&search.contexts[walk.running], &search.scheduler);
}

void walk_done(void)
{
    walk.ends[walk.running].done = true;
    walk_pause();
}

static void run_begin(void)
{
    search.model->begin();
    memset(walk.ends, 0, sizeof(walk.ends));
    for (int i = 0; i < WALKERS_MAX; i++) {
        walk.ends[i].done = !search.model->programs[i];
        if (walk.ends[i].done)
            continue;
        getcontext(&search.contexts[i]);
        search.contexts[i].uc_stack.ss_sp = search.stacks[i];
        search.contexts[i].uc_stack.ss_size = STACK_BYTES;
        makecontext(&search.contexts[i], search.model->programs[i], 0);
    }
}

static uint64_t state_hash(void)
{
    uint64_t hash = search.model->hash();
    for (int i = 0; i < ENDS; i++) {
        const struct walk_end *end = &walk.ends[i];
        /* Of waiting_from only that counts: what is stored from here on ends any waiting. */
        const uint32_t all[] = {end->done, end->waiting, end->stores,
                                end->waiting_from == walk.ends[!i].stores};
        hash = walk_hash(hash, all, sizeof(all));
    }
    return hash;
}

static bool end_can_run(int i)
{
    const struct walk_end *end = &walk.ends[i];
    return !end->done && !(end->waiting && end->waiting_from == walk.ends[!i].stores) &&
           (!search.model->can_run || search.model->can_run(i));
}

static uint8_t all_that_can_run(void)
{
    uint8_t can = 0;
    for (int i = 0; i < WALKERS_MAX; i++)
        if (end_can_run(i))
            can |= (uint8_t) (1u << i);
    return can;
}

/* Takes one of those for this step. */
static void choose(uint32_t depth, uint8_t can)
{
    search.choice[depth] = (uint8_t) __builtin_ctz(can);
    search.alternatives[depth] = (uint8_t) (can & (can - 1));
}

/* One run: the choices of the prefix, then the sender wherever it can go on. */
static void run_once(void)
{
    run_begin();
    for (search.depth = 0; !walk.failure && search.depth < STEPS_MAX; search.depth++) {
        uint8_t can = all_that_can_run();
        uint32_t depth = search.depth;
        if (!can) {
            if (!walk.ends[SENDER].done || !walk.ends[RECEIVER].done)
                walk_fail("both ends wait for ever");
            return;
        }
        if (depth >= search.prefix) {
            if (!visited_add(state_hash()))
                return;
            walk.states++;
            choose(depth, can);
        }
        walk.running = search.choice[depth];
        walk.ends[walk.running].waiting = false;
        swapcontext(&search.scheduler, &search.contexts[walk.running]);
    }
    if (!walk.failure)
        walk_fail("the model is too deep");
}

bool walk_all(void)
{
    memset(search.visited, 0, search.model->visited_max * sizeof(*search.visited));
    search.visited_count = 0;
    search.prefix = 0;
    walk.failure = NULL;
    for (;;) {
        run_once();
        walk.runs++;
        if (walk.failure)
            return false;
        while (search.depth > 0 && !search.alternatives[search.depth - 1])
            search.depth--;
        if (search.depth == 0)
            return true;
        search.depth--;
        choose(search.depth, search.alternatives[search.depth]);
        search.prefix = search.depth + 1;
    }
}

void walk_report(void)
{
    fprintf(stderr, "; who went on:");
    for (uint32_t i = 0; i <= search.depth && i < STEPS_MAX; i++)
        fprintf(stderr, " %c", "srSR"[search.choice[i]]);
    fprintf(stderr, "\n");
}

/* --- events --- */

static struct {
    unsigned char *states;
    uint32_t *table; /* of indices plus 1 */
    uint32_t count, step_count;
    struct step {
        uint32_t from, to;
    } * steps; /* of what goes on */
    bool *ends;
} seen;

static uint32_t seen_add(const struct walk_events *model)
{
    const uint64_t hash = walk_hash(WALK_HASH, model->state, model->bytes);
    uint32_t at = (uint32_t) (hash ^ hash >> 32) % (2 * model->states_max);
    for (; seen.table[at]; at = (at + 1) % (2 * model->states_max))
        if (!memcmp(seen.states + (seen.table[at] - 1) * model->bytes, model->state, model->bytes))
            return seen.table[at] - 1;
    if (seen.count == model->states_max)
        too_large();
    memcpy(seen.states + seen.count * model->bytes, model->state, model->bytes);
    seen.table[at] = ++seen.count;
    return seen.count - 1;
}

static void state_set(const struct walk_events *model, uint32_t i)
{
    memcpy(model->state, seen.states + i * model->bytes, model->bytes);
}

static void state_walk(const struct walk_events *model, uint32_t from)
{
    state_set(model, from);
    seen.ends[from] = model->is_over();
    for (uint32_t event = 0; event < model->events && !walk.failure; event++) {
        if (!model->happen(event))
            continue;
        uint32_t to = seen_add(model);
        if (to != from && model->goes_on(event)) {
            if (seen.step_count == STEPS_A_STATE * model->states_max)
                too_large();
            seen.steps[seen.step_count++] = (struct step){from, to};
        }
        state_set(model, from);
    }
}

/* Most steps lead to a state that was found later. */
static void ends_spread(void)
{
    bool more = true;
    while (more) {
        more = false;
        for (const struct step *step = seen.steps + seen.step_count; step-- > seen.steps;) {
            more |= seen.ends[step->to] && !seen.ends[step->from];
            seen.ends[step->from] |= seen.ends[step->to];
        }
    }
    for (uint32_t i = 0; i < seen.count; i++)
        if (!seen.ends[i])
            walk_fail("something is waited for that does not come");
}

bool walk_events(const struct walk_events *model)
{
    const size_t most = model->states_max;
    walk.failure = NULL;
    seen.count = seen.step_count = 0;
    seen.states = malloc(most * model->bytes);
    seen.table = calloc(2 * most, sizeof(*seen.table));
    seen.steps = malloc(STEPS_A_STATE * most * sizeof(*seen.steps));
    seen.ends = malloc(most);
    if (!seen.states || !seen.table || !seen.steps || !seen.ends)
        exit(1);
    (void) seen_add(model);
    for (uint32_t i = 0; i < seen.count && !walk.failure; i++)
        state_walk(model, i);
    if (!walk.failure)
        ends_spread();
    walk.states = seen.count;
    free(seen.states);
    free(seen.table);
    free(seen.steps);
    free(seen.ends);
    return !walk.failure;
}

#if defined(__SANITIZE_THREAD__)
#define HAS_THREAD_SANITIZER 1
#elif defined(__has_feature)
#define HAS_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define HAS_THREAD_SANITIZER 0
#endif

static bool can_run(void)
{
    if (HAS_THREAD_SANITIZER)
        printf("the ends are coroutines, which ThreadSanitizer does not follow\n");
    else if (!walk_is_wanted())
        printf("what is walked is the same in each build; the part unit walks it\n");
    else
        return true;
    return false;
}

int walk_main(const struct walk_model *model, int (*walks)(void), const char *shown)
{
    if (!can_run())
        return 77;
    if (!search_begin(model))
        return 1;
    int failed = walks();
    if (!failed)
        printf("%llu states, %llu runs: %s\n", (unsigned long long) walk.states,
               (unsigned long long) walk.runs, shown);
    search_end();
    return failed;
}
