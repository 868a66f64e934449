/* SPDX-License-Identifier: BSD-3-Clause */
/* The table and the lists of a BTL's peers. */
#include "common/compat/peer_list.h"

static struct peer_entry *_Atomic *bucket_of(struct peer_table *table,
                                             const opal_process_name_t *name)
{
    uint64_t hash = ((uint64_t) name->jobid << 32 | name->vpid) * UINT64_C(0x9e3779b97f4a7c15);

    return &table->buckets[hash >> 32 & (PEER_BUCKETS - 1)];
}

struct mca_btl_base_endpoint_t *peer_table_find(struct peer_table *table,
                                                const opal_process_name_t *name)
{
    /* Acquire: pairs with the release in peer_table_add. */
    struct peer_entry *entry = atomic_load_explicit(bucket_of(table, name), memory_order_acquire);

    while (entry && !peer_names_equal(entry->name, name))
        entry = entry->next;
    return entry ? entry->peer : NULL;
}

void peer_table_add(struct peer_table *table, struct peer_entry *entry,
                    const opal_process_name_t *name, struct mca_btl_base_endpoint_t *peer)
{
    struct peer_entry *_Atomic *bucket = bucket_of(table, name);

    *entry = (struct peer_entry){
        .next = atomic_load_explicit(bucket, memory_order_relaxed), .peer = peer, .name = name};
    atomic_store_explicit(bucket, entry, memory_order_release); /* peer_table_find */
}

void peer_table_visit(struct peer_table *table,
                      bool (*visit)(struct mca_btl_base_endpoint_t *peer, void *context),
                      void *context)
{
    struct peer_entry *next;

    for (uint32_t i = 0; i < PEER_BUCKETS; i++)
        for (struct peer_entry *entry =
                 atomic_load_explicit(&table->buckets[i], memory_order_acquire);
             entry; entry = next) {
            next = entry->next;
            if (!visit(entry->peer, context))
                return;
        }
}

void peer_list_open(struct peer_list *list)
{
    OBJ_CONSTRUCT(&list->lock, opal_mutex_t);
    list->end = (struct peer_place){.next = &list->end, .before = &list->end};
    atomic_store_explicit(&list->count, 0, memory_order_relaxed);
}

void peer_list_close(struct peer_list *list)
{
    OBJ_DESTRUCT(&list->lock);
}

/* Under the lock, as the next one. */
static void place_add(struct peer_list *list, struct peer_place *place)
{
    place->next = &list->end;
    place->before = list->end.before;
    list->end.before->next = place;
    list->end.before = place;
    atomic_fetch_add_explicit(&list->count, 1, memory_order_relaxed);
}

static void place_remove(struct peer_list *list, struct peer_place *place)
{
    place->before->next = place->next;
    place->next->before = place->before;
    place->next = place->before = NULL;
    atomic_fetch_sub_explicit(&list->count, 1, memory_order_relaxed);
}

void peer_list_add(struct peer_list *list, struct peer_place *place,
                   struct mca_btl_base_endpoint_t *peer)
{
    opal_mutex_lock(&list->lock);
    place->peer = peer;
    if (!place->next)
        place_add(list, place);
    opal_mutex_unlock(&list->lock);
}

void peer_list_remove(struct peer_list *list, struct peer_place *place)
{
    opal_mutex_lock(&list->lock);
    if (place->next)
        place_remove(list, place);
    opal_mutex_unlock(&list->lock);
}

/* `takes`: takes it out; `adds`: then puts it at the end. */
static struct mca_btl_base_endpoint_t *first_of(struct peer_list *list, bool takes, bool adds)
{
    opal_mutex_lock(&list->lock);
    struct peer_place *first = list->end.next; /* of an empty list its end, which has no peer */
    if (first->peer && takes)
        place_remove(list, first);
    if (first->peer && adds)
        place_add(list, first);
    struct mca_btl_base_endpoint_t *peer = first->peer;
    opal_mutex_unlock(&list->lock);
    return peer;
}

struct mca_btl_base_endpoint_t *peer_list_first(struct peer_list *list)
{
    return first_of(list, false, false);
}

struct mca_btl_base_endpoint_t *peer_list_take(struct peer_list *list)
{
    return first_of(list, true, false);
}

struct mca_btl_base_endpoint_t *peer_list_turn(struct peer_list *list)
{
    return first_of(list, true, true);
}
