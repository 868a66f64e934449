/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders between threads that Open MPI makes and ThreadSanitizer does not see: its free lists order
 * by fences, which that checker does not follow, and its waits and BTLs were not built with it.
 * Here it is told of them; in other builds nothing is left of this. */
#ifndef MULTILANE_COMPAT_ORDER_H
#define MULTILANE_COMPAT_ORDER_H

#include "opal/class/opal_free_list.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ORDER_IS_CHECKED 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define ORDER_IS_CHECKED 1
#endif

#ifdef ORDER_IS_CHECKED
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#endif

/* What this thread did before order_released is seen by who comes back from order_acquired of the
 * same object later. */
static inline void order_released(void *object)
{
#ifdef ORDER_IS_CHECKED
    __tsan_release(object);
#else
    (void) object;
#endif
}

static inline void order_acquired(void *object)
{
#ifdef ORDER_IS_CHECKED
    __tsan_acquire(object);
#else
    (void) object;
#endif
}

static inline opal_free_list_item_t *order_list_get(opal_free_list_t *list)
{
    opal_free_list_item_t *item = opal_free_list_get(list);
    if (item)
        order_acquired(item);
    return item;
}

static inline void order_list_return(opal_free_list_t *list, opal_free_list_item_t *item)
{
    order_released(item);
    opal_free_list_return(list, item);
}

#endif
