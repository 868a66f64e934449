/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers of which something is due. */
#include "common/compat/peer_list.h"

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

/* And takes it off, and then puts it behind the last one. */
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
