/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles from the wire: only the very handle that was given out finds its object. */
#include "check.h"

#include <pthread.h>
#include <string.h>

#include "base/handle.h"

#define OBJECTS 3000

static struct object {
    struct wire_handle handle;
    enum handle_kind kind;
    bool listed;
} objects[OBJECTS];

static enum handle_kind other_kind(enum handle_kind kind)
{
    return kind == HANDLE_SEND ? HANDLE_RECEIVE : HANDLE_SEND;
}

static void check_found(struct handle_table *table, struct object *object)
{
    struct wire_handle newer = object->handle, older = object->handle;
    newer.generation++;
    older.generation--;
    CHECK(handle_find(table, object->kind, object->handle) == object, "index %u",
          object->handle.index);
    CHECK(!handle_find(table, other_kind(object->kind), object->handle), "as the other kind");
    CHECK(!handle_find(table, HANDLE_FREE, object->handle), "as a free entry");
    CHECK(!handle_find(table, object->kind, newer), "a generation not given out yet");
    CHECK(!handle_find(table, object->kind, older), "a generation that is over");
}

static void only_the_handle_itself_finds_its_object(uint64_t seed)
{
    uint64_t chance = seed;
    struct handle_table table;
    unsigned listed = 0, most = 0;

    handle_table_init(&table);
    memset(objects, 0, sizeof(objects));
    for (int step = 0; step < 20000; step++) {
        struct object *object = &objects[chance_below(&chance, OBJECTS)];
        if (!object->listed) {
            object->kind = chance_below(&chance, 2) ? HANDLE_SEND : HANDLE_RECEIVE;
            struct wire_handle before = object->handle;
            int rc = handle_acquire(&table, object->kind, object, &object->handle);
            CHECK(rc == OMPI_SUCCESS && handle_is_set(object->handle), "%d", rc);
            object->listed = true;
            listed++;
            most = listed > most ? listed : most;
            check_found(&table, object);
            if (handle_is_set(before))
                CHECK(!handle_find(&table, object->kind, before), "a handle of a life before");
            continue;
        }
        struct wire_handle stale = object->handle;
        handle_release(&table, &object->handle);
        CHECK(!handle_is_set(object->handle), "a released handle names nothing");
        CHECK(!handle_find(&table, object->kind, stale), "index %u is released", stale.index);
        struct wire_handle again = stale;
        handle_release(&table, &again); /* a second release, of a copy, releases nothing else */
        object->handle = stale;         /* to be tried when it is listed anew */
        object->listed = false;
        listed--;
    }
    for (unsigned i = 0; i < OBJECTS; i++)
        if (objects[i].listed)
            check_found(&table, &objects[i]);
    CHECK(table.size <= 2 * most + 64, "%u entries for at most %u objects at once", table.size,
          most);
    for (int i = 0; i < 20000; i++) { /* whatever a peer may send */
        struct wire_handle forged = {(uint32_t) chance_next(&chance), 0};
        forged.generation = (uint32_t) chance_below(&chance, 4);
        if (i % 2)
            forged.index %= table.size + 2;
        struct object *found = handle_find(&table, HANDLE_SEND, forged);
        CHECK(!found || (found->listed && found->handle.index == forged.index &&
                         found->handle.generation == forged.generation),
              "%u/%u", forged.index, forged.generation);
    }
    handle_table_fini(&table);
}

static void generations_never_become_zero(void)
{
    struct handle_table table;
    struct wire_handle handle;
    int object;

    handle_table_init(&table);
    CHECK(handle_acquire(&table, HANDLE_SEND, &object, &handle) == OMPI_SUCCESS, "first");
    table.entries[handle.index].generation = UINT32_MAX;
    handle.generation = UINT32_MAX;
    CHECK(handle_find(&table, HANDLE_SEND, handle) == &object, "the last generation");
    handle_release(&table, &handle);
    CHECK(handle_acquire(&table, HANDLE_SEND, &object, &handle) == OMPI_SUCCESS, "second");
    CHECK(handle_is_set(handle), "generation %u", handle.generation);
    handle_table_fini(&table);
}

/* --- threads ------------------------------------------------------------------------------------
 */

#define THREADS 4

static struct handle_table shared;
static unsigned lost; /* atomic */

static void *acquire_find_release(void *seed)
{
    uint64_t chance = (uintptr_t) seed * UINT64_C(0x9e3779b97f4a7c15);
    struct wire_handle mine[16] = {{0, 0}};
    int rounds = check_is_long() ? 400000 : 20000;

    for (int i = 0; i < rounds; i++) {
        struct wire_handle *handle = &mine[chance_below(&chance, 16)];
        bool good = true;
        if (!handle_is_set(*handle))
            good = handle_acquire(&shared, HANDLE_RECEIVE, handle, handle) == OMPI_SUCCESS;
        else if (chance_below(&chance, 2))
            good = handle_find(&shared, HANDLE_RECEIVE, *handle) == handle;
        else
            handle_release(&shared, handle);
        /* Another thread's, which may go at this moment. */
        handle_find(&shared, HANDLE_RECEIVE,
                    (struct wire_handle){(uint32_t) chance_below(&chance, 80), 1});
        if (!good)
            __atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
    }
    for (int i = 0; i < 16; i++)
        handle_release(&shared, &mine[i]);
    return NULL;
}

static void threads_find_their_own(void)
{
    pthread_t threads[THREADS];
    opal_set_using_threads(true);
    handle_table_init(&shared);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, acquire_find_release, (void *) (i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(lost == 0, "%u times a handle did not find its object", lost);
    for (uint32_t i = 0; i < shared.size; i++)
        CHECK(shared.entries[i].kind == HANDLE_FREE, "entry %u", i);
    handle_table_fini(&shared);
}

int main(void)
{
    unsigned seeds = check_is_long() ? 100 : 5;
    for (unsigned seed = 1; seed <= seeds; seed++)
        only_the_handle_itself_finds_its_object(seed * UINT64_C(0x9e3779b97f4a7c15));
    generations_never_become_zero();
    threads_find_their_own();
    return check_end();
}
