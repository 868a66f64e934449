/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON and the text format of Prometheus. Texts of a page hold neither quotes nor backslashes:
 * page_check has taken them out. */

#include "common/report/json.h"
#include "common/report/page_text.h"
#include "tools/top/show.h"

typedef unsigned long long number;

/* --- JSON ------------------------------------------------------------------------------------- */

static struct words json_process(const struct page_process *name)
{
    return name->rank == PAGE_ANY_RANK ? words_of("null") : words_of("%u", name->rank);
}

static void request_json(struct json *json, const struct page_request *row)
{
    static const char *const kinds[PAGE_REQUEST_KINDS] = {"receive", "send", "probe", "other"};
    static const char *const stages[PAGE_STAGES] = {"unknown",   "unmatched", "moving",
                                                    "announced", "no credit", "no room"};
    json_put(json,
             "{\"kind\": \"%s\", \"stage\": \"%s\", \"peer\": %s, \"tag\": %d, "
             "\"communicator\": \"%s\", \"bytes\": %llu, \"left\": %llu}",
             kinds[row->kind], stages[row->stage], json_process(&row->peer).text, row->tag,
             row->comm.name, (number) row->bytes, (number) row->left);
}

static void waits_json(struct json *json, const struct rank *rank)
{
    const struct page *page = &rank->second.page;
    json_put(json, "\"waits\": [");
    for (uint32_t i = 0; i < page->wait_count; i++) {
        const struct page_wait *wait = &page->waits[i];
        double since = rank->second.now_ns > wait->since_ns
                           ? (double) (rank->second.now_ns - wait->since_ns) * 1e-9
                           : 0;
        json_put(json, "{\"call\": \"%s\", \"since_s\": %.3f, \"outstanding\": %u, \"for\": [",
                 page_call_name(wait), since, wait->outstanding);
        for (uint32_t j = 0; j < wait->row_count; j++)
            request_json(json, &wait->rows[j]);
        json_put(json, "]}");
    }
    json_put(json, "]");
}

static void peers_json(struct json *json, const struct page *page)
{
    json_put(json, "\"peers\": [");
    for (uint32_t i = 0; i < page->peer_count; i++) {
        const struct page_peer *peer = &page->peers[i];
        json_put(json,
                 "{\"rank\": %u, \"sent\": %u, \"received\": %u, \"early\": %u, \"waiting\": %u, "
                 "\"unacknowledged\": %u, \"kept_bytes\": %llu, \"credit\": %d, \"queued_bytes\": "
                 "%llu, \"lanes\": %u, \"lanes_down\": %u, \"lost\": %s}",
                 peer->name.rank, peer->sent, peer->received, peer->early, peer->waiting,
                 peer->unacknowledged, (number) peer->kept * 64, peer->credit,
                 (number) peer->queued_bytes, peer->lanes, peer->lanes_down,
                 json_bool(peer->flags & PAGE_PEER_LOST));
    }
    json_put(json, "]");
}

static void lanes_json(struct json *json, const struct page *page)
{
    json_put(json, "\"lanes\": [");
    for (uint32_t i = 0; i < page->lane_count; i++)
        json_put(json,
                 "{\"lane\": \"%s\", \"bytes\": %llu, \"peers\": %u, \"down\": %u, "
                 "\"worse\": %u, \"drained\": %u, \"kept\": %u, \"busy\": %u}",
                 page->lanes[i].name, (number) page->lanes[i].bytes, page->lanes[i].peers,
                 page->lanes[i].down, page->lanes[i].worse, page->lanes[i].drained,
                 page->lanes[i].kept, page->lanes[i].busy);
    json_put(json, "]");
}

static void messages_json(struct json *json, const char *name, const struct page_message *rows,
                          uint32_t count, uint32_t total)
{
    json_put(json, "\"%s\": {\"total\": %u, \"first\": [", name, total);
    for (uint32_t i = 0; i < count; i++)
        json_put(json, "{\"peer\": %s, \"tag\": %d, \"communicator\": \"%s\", \"bytes\": %llu}",
                 json_process(&rows[i].peer).text, rows[i].tag, rows[i].comm.name,
                 (number) rows[i].bytes);
    json_put(json, "]}");
}

static void rank_json(struct json *json, const struct rank *rank, enum activity activity)
{
    const struct page *page = &rank->second.page;
    json_put(json,
             "{\"job\": %u, \"rank\": %u, \"host\": \"%s\", \"pid\": %d, \"program\": \"%s\", "
             "\"state\": \"%c\", \"does\": \"%s\", \"since_s\": %.3f, \"text\": %s, "
             "\"rounds\": %llu, \"sent_messages\": %llu, \"sent_bytes\": %llu",
             page->me.job, page->me.rank, page->host, rank->pid, page->program, rank_state(rank),
             rank_word(rank, activity), (double) rank_since_ns(rank, activity) * 1e-9,
             json_text(rank_text(rank, activity).text).text, (number) page->rounds,
             (number) page->sent_messages, (number) page->sent_bytes);
    waits_json(json, rank);
    peers_json(json, page);
    lanes_json(json, page);
    page_waited_json(json, page->waited, page->waited_count);
    messages_json(json, "posted", page->posted, page->posted_count, page->posted_total);
    messages_json(json, "unexpected", page->unexpected, page->unexpected_count,
                  page->unexpected_total);
    json_put(json, "}");
}

static void causes_json(struct json *json, const struct ranks *ranks, const struct why *why)
{
    json_put(json, "\"hung\": %s, \"causes\": [", json_bool(why->is_hang));
    for (uint32_t i = 0; i < why->cause_count; i++) {
        const struct cause *cause = &why->causes[i];
        json_put(json, "{\"kind\": \"%s\", \"ranks\": [", cause_name(cause->kind));
        for (uint32_t j = 0; j < cause->rank_count; j++)
            json_put(json, "%u", ranks->list[cause->ranks[j]].second.page.me.rank);
        json_put(json, "], \"text\": %s}", json_text(cause->words.text).text);
    }
    json_put(json, "]");
}

void export_json(FILE *file, const struct ranks *ranks, const struct why *why, bool causes)
{
    struct json json = {.file = file};
    json_put(&json, "{");
    if (causes)
        causes_json(&json, ranks, why);
    json_put(&json, "\"ranks\": [");
    for (size_t i = 0; i < ranks->count; i++)
        rank_json(&json, &ranks->list[i], why->standing.activities[i]);
    json_put(&json, "]}\n");
}

/* --- Prometheus ------------------------------------------------------------------------------- */

static const struct metric {
    const char *name, *type, *help;
} metrics[] = {
    {"waits_seconds", "gauge", "How long the rank is in its present wait"},
    {"outside_mpi_seconds", "gauge", "How long the rank has made no progress in MPI"},
    {"asleep", "gauge", "Whether the process sleeps: 0 where it spins or computes"},
    {"progress_rounds_total", "counter", "Rounds of progress, in eighths"},
    {"sent_messages_total", "counter", "Messages sent"},
    {"sent_bytes_total", "counter", "Bytes of messages sent"},
    {"unexpected_messages_total", "counter", "Messages that came before their receive"},
    {"unexpected_messages", "gauge", "Messages that wait for a receive"},
    {"posted_receives", "gauge", "Receives that wait for a message"},
    {"queued_bytes", "gauge", "Bytes that no lane has taken yet"},
};

#define METRICS (sizeof(metrics) / sizeof(metrics[0]))

/* In the order of the table. */
static double metric_value(size_t metric, const struct rank *rank, enum activity activity)
{
    const struct page *page = &rank->second.page;
    bool is_outside = activity == ACTIVITY_COMPUTES || activity == ACTIVITY_SLEEPS;
    double since_s = (double) rank_since_ns(rank, activity) * 1e-9;
    const double values[METRICS] = {activity_waits(activity) ? since_s : 0,
                                    is_outside ? since_s : 0,
                                    rank_state(rank) == 'S',
                                    (double) page->rounds,
                                    (double) page->sent_messages,
                                    (double) page->sent_bytes,
                                    (double) page->unexpected_ever,
                                    page->unexpected_total,
                                    page->posted_total,
                                    (double) rank_queued_bytes(rank)};
    return values[metric];
}

static struct words labels(const struct page *page)
{
    return words_of("job=\"%u\",rank=\"%u\",host=\"%s\",program=\"%s\"", page->me.job,
                    page->me.rank, page->host, page->program);
}

static void metric_head(FILE *file, const struct metric *metric)
{
    fprintf(file, "# HELP multilane_%s %s.\n# TYPE multilane_%s %s\n", metric->name, metric->help,
            metric->name, metric->type);
}

static const struct metric lane_metrics[] = {
    {"lane_sent_bytes_total", "counter", "Bytes sent over the lane"},
    {"lane_down_peers", "gauge", "Peers that the lane does not reach any more"},
    {"lane_drained_peers", "gauge", "Peers that nothing is sent to over the lane, as was asked"},
    {"lane_worse_peers", "gauge", "Peers that the lane reaches worse than it did before"},
};

#define LANE_METRICS (sizeof(lane_metrics) / sizeof(lane_metrics[0]))

static void lane_metric(FILE *file, const struct ranks *ranks, size_t metric)
{
    metric_head(file, &lane_metrics[metric]);
    for (size_t i = 0; i < ranks->count; i++) {
        const struct page *page = &ranks->list[i].second.page;
        for (uint32_t j = 0; j < page->lane_count; j++) {
            const struct page_lane *lane = &page->lanes[j];
            const number values[LANE_METRICS] = {lane->bytes, lane->down, lane->drained,
                                                 lane->worse};
            fprintf(file, "multilane_%s{%s,lane=\"%s\"} %llu\n", lane_metrics[metric].name,
                    labels(page).text, lane->name, values[metric]);
        }
    }
}

static void waited_metric(FILE *file, const struct ranks *ranks)
{
    static const struct metric metric = {
        "waited_seconds_total", "counter",
        "Seconds in which the rank has waited for another one, by what for; -1: for any"};
    metric_head(file, &metric);
    for (size_t i = 0; i < ranks->count; i++) {
        const struct page *page = &ranks->list[i].second.page;
        for (uint32_t j = 0; j < page->waited_count; j++)
            for (uint32_t kind = 0; kind < PAGE_WAITED_KINDS; kind++) {
                const struct page_waited *row = &page->waited[j];
                if (row->ns[kind] == 0)
                    continue;
                fprintf(file, "multilane_%s{%s,peer=\"%lld\",kind=\"%s\"} %.3f\n", metric.name,
                        labels(page).text,
                        row->peer.rank == PAGE_ANY_RANK ? -1LL : (long long) row->peer.rank,
                        page_waited_words[kind].key, (double) row->ns[kind] * 1e-9);
            }
    }
}

void export_prometheus(FILE *file, const struct ranks *ranks, const struct why *why)
{
    for (size_t m = 0; m < METRICS; m++) {
        metric_head(file, &metrics[m]);
        for (size_t i = 0; i < ranks->count; i++)
            fprintf(file, "multilane_%s{%s} %.15g\n", metrics[m].name,
                    labels(&ranks->list[i].second.page).text,
                    metric_value(m, &ranks->list[i], why->standing.activities[i]));
    }
    for (size_t m = 0; m < LANE_METRICS; m++)
        lane_metric(file, ranks, m);
    waited_metric(file, ranks);
}
