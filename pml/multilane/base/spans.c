/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of bytes. */
#include "base/spans.h"

#include <stdlib.h>
#include <string.h>

static struct span *spans_items(struct spans *spans)
{
    return spans->room ? spans->items : spans->own;
}

static bool spans_grow(struct spans *spans)
{
    uint32_t room = spans->room ? spans->room * 2 : 16;
    if (spans->count >= SPANS_MAX)
        return false;
    struct span *items = realloc(spans->room ? spans->items : NULL, room * sizeof(*items));
    if (!items)
        return false;
    if (!spans->room)
        memcpy(items, spans->own, sizeof(spans->own));
    spans->items = items;
    spans->room = room;
    return true;
}

static bool spans_insert(struct spans *spans, uint32_t at, struct span span)
{
    uint32_t room = spans->room ? spans->room : sizeof(spans->own) / sizeof(spans->own[0]);
    if (spans->count == room && !spans_grow(spans))
        return false;
    struct span *items = spans_items(spans);
    memmove(&items[at + 1], &items[at], (spans->count - at) * sizeof(*items));
    items[at] = span;
    spans->count++;
    return true;
}

bool spans_add(struct spans *spans, size_t from, size_t end, size_t *fresh)
{
    struct span *items = spans_items(spans);
    uint32_t first = spans->count; /* the first span that touches [from, end) or lies behind it */
    while (first > 0 && items[first - 1].end >= from)
        first--;
    uint32_t behind = first; /* the first span that lies behind it and does not touch it */
    size_t known = 0;
    while (behind < spans->count && items[behind].from <= end) {
        size_t overlap_from = items[behind].from > from ? items[behind].from : from;
        size_t overlap_end = items[behind].end < end ? items[behind].end : end;
        known += overlap_end - overlap_from;
        behind++;
    }
    *fresh = end - from - known;
    if (first == behind)
        return spans_insert(spans, first, (struct span){from, end});
    if (items[first].from > from)
        items[first].from = from;
    items[first].end = items[behind - 1].end > end ? items[behind - 1].end : end;
    memmove(&items[first + 1], &items[behind], (spans->count - behind) * sizeof(*items));
    spans->count -= behind - first - 1;
    return true;
}

void spans_clear(struct spans *spans)
{
    if (spans->room)
        free(spans->items);
    spans->room = spans->count = 0;
}
