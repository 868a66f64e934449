/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON. Texts of a page hold neither quotes nor backslashes: page_check has taken them out. */
#include <string.h>

#include "common/report/json.h"
#include "common/report/page_text.h"
#include "tools/top/show.h"

typedef unsigned long long number;

static void json_process(FILE *file, const struct page_process *name)
{
    if (name->rank == PAGE_ANY_RANK)
        fprintf(file, "null");
    else
        fprintf(file, "%u", name->rank);
}

static void json_request(FILE *file, const struct page_request *row)
{
    static const char *const kinds[PAGE_REQUEST_KINDS] = {"receive", "send", "probe", "other"};
    static const char *const stages[PAGE_STAGES] = {"unknown",   "unmatched", "moving",
                                                    "announced", "no credit", "no room"};
    fprintf(file, "{\"kind\": \"%s\", \"stage\": \"%s\", \"peer\": ", kinds[row->kind],
            stages[row->stage]);
    json_process(file, &row->peer);
    fprintf(file, ", \"tag\": %d, \"communicator\": \"%s\", \"bytes\": %llu, \"left\": %llu}",
            row->tag, row->comm.name, (number) row->bytes, (number) row->left);
}

static void json_waits(FILE *file, const struct rank *rank)
{
    const struct page *page = &rank->second.page;
    fprintf(file, ",\n     \"waits\": [");
    for (uint32_t i = 0; i < page->wait_count; i++) {
        const struct page_wait *wait = &page->waits[i];
        double since = rank->second.now_ns > wait->since_ns
                           ? (double) (rank->second.now_ns - wait->since_ns) * 1e-9
                           : 0;
        fprintf(file, "%s{\"call\": \"%s\", \"since_s\": %.3f, \"outstanding\": %u, \"for\": [",
                i ? ", " : "", page_call_name(wait), since, wait->outstanding);
        for (uint32_t j = 0; j < wait->row_count; j++) {
            fprintf(file, "%s", j ? ", " : "");
            json_request(file, &wait->rows[j]);
        }
        fprintf(file, "]}");
    }
    fprintf(file, "]");
}

static void json_peers(FILE *file, const struct page *page)
{
    fprintf(file, ",\n     \"peers\": [");
    for (uint32_t i = 0; i < page->peer_count; i++) {
        const struct page_peer *peer = &page->peers[i];
        fprintf(file,
                "%s{\"rank\": %u, \"sent\": %u, \"received\": %u, \"early\": %u, \"waiting\": %u, "
                "\"unacknowledged\": %u, \"kept_bytes\": %llu, \"credit\": %d, \"queued_bytes\": "
                "%llu, \"lanes\": %u, \"lanes_down\": %u, \"lost\": %s}",
                i ? ", " : "", peer->name.rank, peer->sent, peer->received, peer->early,
                peer->waiting, peer->unacknowledged, (number) peer->kept * 64, peer->credit,
                (number) peer->queued_bytes, peer->lanes, peer->lanes_down,
                peer->flags & PAGE_PEER_LOST ? "true" : "false");
    }
    fprintf(file, "]");
}

static void json_lanes(FILE *file, const struct page *page)
{
    fprintf(file, ",\n     \"lanes\": [");
    for (uint32_t i = 0; i < page->lane_count; i++)
        fprintf(file,
                "%s{\"lane\": \"%s\", \"bytes\": %llu, \"peers\": %u, \"down\": %u, "
                "\"worse\": %u, \"drained\": %u, \"kept\": %u, \"busy\": %u}",
                i ? ", " : "", page->lanes[i].name, (number) page->lanes[i].bytes,
                page->lanes[i].peers, page->lanes[i].down, page->lanes[i].worse,
                page->lanes[i].drained, page->lanes[i].kept, page->lanes[i].busy);
    fprintf(file, "]");
}

static void json_messages(FILE *file, const char *name, const struct page_message *rows,
                          uint32_t count, uint32_t total)
{
    fprintf(file, ",\n     \"%s\": {\"total\": %u, \"first\": [", name, total);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(file, "%s{\"peer\": ", i ? ", " : "");
        json_process(file, &rows[i].peer);
        fprintf(file, ", \"tag\": %d, \"communicator\": \"%s\", \"bytes\": %llu}", rows[i].tag,
                rows[i].comm.name, (number) rows[i].bytes);
    }
    fprintf(file, "]}");
}

static void json_rank(FILE *file, const struct rank *rank, enum activity activity)
{
    const struct page *page = &rank->second.page;
    char text[3 * PAGE_TEXT];
    rank_text(rank, activity, text, sizeof(text));
    fprintf(file,
            "    {\"job\": %u, \"rank\": %u, \"host\": \"%s\", \"pid\": %d, \"program\": \"%s\", "
            "\"state\": \"%c\", \"does\": \"%s\", \"since_s\": %.3f, \"text\": ",
            page->me.job, page->me.rank, page->host, rank->pid, page->program, rank_state(rank),
            rank_word(rank, activity), (double) rank_since_ns(rank, activity) * 1e-9);
    json_text(file, text);
    fprintf(file,
            ",\n     \"rounds\": %llu, \"sent_messages\": %llu, \"sent_bytes\": %llu, "
            "\"queued_bytes\": %llu, \"unexpected_ever\": %llu",
            (number) page->rounds, (number) page->sent_messages, (number) page->sent_bytes,
            (number) rank_queued_bytes(rank), (number) page->unexpected_ever);
    json_waits(file, rank);
    json_peers(file, page);
    json_lanes(file, page);
    fprintf(file, ",\n     \"waited\": [");
    page_waited_print_json(file, page->waited, page->waited_count);
    fprintf(file, "]");
    json_messages(file, "posted", page->posted, page->posted_count, page->posted_total);
    json_messages(file, "unexpected", page->unexpected, page->unexpected_count,
                  page->unexpected_total);
    fprintf(file, "}");
}

static void json_causes(FILE *file, const struct ranks *ranks, const struct why *why)
{
    fprintf(file, "  \"hung\": %s,\n  \"causes\": [", why->is_hang ? "true" : "false");
    for (uint32_t i = 0; i < why->cause_count; i++) {
        const struct cause *cause = &why->causes[i];
        fprintf(file, "%s\n    {\"kind\": \"%s\", \"ranks\": [", i ? "," : "",
                cause_name(cause->kind));
        for (uint32_t j = 0; j < cause->rank_count; j++)
            fprintf(file, "%s%u", j ? ", " : "", ranks->list[cause->ranks[j]].second.page.me.rank);
        fprintf(file, "], \"text\": ");
        json_text(file, cause->text);
        fprintf(file, "}");
    }
    fprintf(file, "],\n");
}

void export_json(FILE *file, const struct ranks *ranks, const struct why *why, bool causes)
{
    fprintf(file, "{\n");
    if (causes)
        json_causes(file, ranks, why);
    fprintf(file, "  \"ranks\": [\n");
    for (size_t i = 0; i < ranks->count; i++) {
        json_rank(file, &ranks->list[i], why->standing.activities[i]);
        fprintf(file, "%s\n", i + 1 < ranks->count ? "," : "");
    }
    fprintf(file, "  ]\n}\n");
}
