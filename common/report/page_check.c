/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at each member of a page. */
#include "common/report/page_check.h"

#include <stdio.h>
#include <string.h>

static void limit(uint32_t *value, uint32_t most)
{
    if (*value > most)
        *value = most;
}

static void unknown_from(uint32_t *value, uint32_t first_unknown)
{
    if (*value >= first_unknown)
        *value = 0;
}

static void unknown_from8(uint8_t *value, uint8_t first_unknown)
{
    if (*value >= first_unknown)
        *value = 0;
}

/* Ends the text, and leaves in it only what every terminal prints. */
static void text_check(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (; *text; text++)
        if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
            *text = '?';
}

static void wait_check(struct page_wait *wait)
{
    unknown_from(&wait->call, PAGE_CALLS);
    limit(&wait->row_count, PAGE_REQUESTS);
    for (uint32_t i = 0; i < wait->row_count; i++) {
        struct page_request *row = &wait->rows[i];
        unknown_from8(&row->kind, PAGE_REQUEST_KINDS);
        unknown_from8(&row->stage, PAGE_STAGES);
        unknown_from8(&row->collective, PAGE_COLLECTIVES);
        text_check(row->comm.name, sizeof(row->comm.name));
    }
}

static void messages_check(struct page_message *rows, uint32_t *count)
{
    limit(count, PAGE_MESSAGES);
    for (uint32_t i = 0; i < *count; i++) {
        unknown_from(&rows[i].collective, PAGE_COLLECTIVES);
        text_check(rows[i].comm.name, sizeof(rows[i].comm.name));
    }
}

static bool is_page(const struct page *page, size_t bytes, char why[PAGE_COMPLAINT])
{
    size_t least = offsetof(struct page, sequence);
    if (bytes < least || page->magic != PAGE_MAGIC) {
        snprintf(why, PAGE_COMPLAINT, "its page is none of Multilane's");
        return false;
    }
    if (page->version != PAGE_VERSION) {
        snprintf(why, PAGE_COMPLAINT,
                 "its page has version %u and this program reads version %u: use the program of "
                 "the Multilane that runs there",
                 page->version, PAGE_VERSION);
        return false;
    }
    if (bytes != sizeof(*page) || page->bytes != sizeof(*page)) {
        snprintf(why, PAGE_COMPLAINT, "its page has %zu bytes and should have %zu", bytes,
                 sizeof(*page));
        return false;
    }
    return true;
}

bool page_check(struct page *page, size_t bytes, char why[PAGE_COMPLAINT])
{
    if (!is_page(page, bytes, why))
        return false;
    text_check(page->host, sizeof(page->host));
    text_check(page->program, sizeof(page->program));
    limit(&page->wait_count, PAGE_WAITS);
    limit(&page->peer_count, PAGE_PEERS);
    limit(&page->lane_count, PAGE_LANES);
    limit(&page->trouble_count, PAGE_TROUBLES);
    limit(&page->waited_count, PAGE_WAITED);
    for (uint32_t i = 0; i < page->wait_count; i++)
        wait_check(&page->waits[i]);
    for (uint32_t i = 0; i < page->lane_count; i++)
        text_check(page->lanes[i].name, sizeof(page->lanes[i].name));
    for (uint32_t i = 0; i < page->trouble_count; i++) {
        unknown_from(&page->troubles[i].kind, PAGE_TROUBLES_KNOWN);
        text_check(page->troubles[i].lane, sizeof(page->troubles[i].lane));
        text_check(page->troubles[i].why, sizeof(page->troubles[i].why));
    }
    messages_check(page->posted, &page->posted_count);
    messages_check(page->unexpected, &page->unexpected_count);
    return true;
}
