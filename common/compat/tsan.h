/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders between threads that Open MPI makes and ThreadSanitizer does not see: its free lists order
 * by fences, which that checker does not follow, and its waits and BTLs were not built with it.
 * Here it is told of them; in other builds nothing is left of this. */
#ifndef MULTILANE_COMPAT_TSAN_H
#define MULTILANE_COMPAT_TSAN_H

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

/* What this thread did before tsan_release is seen by a thread that comes back from tsan_acquire of
 * the same object later. */
static inline void tsan_release(void *object)
{
#ifdef ORDER_IS_CHECKED
    __tsan_release(object);
#endif
}

static inline void tsan_acquire(void *object)
{
#ifdef ORDER_IS_CHECKED
    __tsan_acquire(object);
#endif
}

static inline opal_free_list_item_t *tsan_list_get(opal_free_list_t *list)
{
    opal_free_list_item_t *item = opal_free_list_get(list);
    if (item)
        tsan_acquire(item);
    return item;
}

static inline void tsan_list_return(opal_free_list_t *list, opal_free_list_item_t *item)
{
    tsan_release(item);
    opal_free_list_return(list, item);
}

#endif
