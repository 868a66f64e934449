/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the files of a recorded job, and pairs what is sent with what is received. */
#include "tools/replay/recording.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/file/whole_file.h"

/* Times and sizes beyond it are none, and sums of some stay far from the ends of their types. */
#define VALUE_MOST (UINT64_C(1) << 56)

/* Ends, and is fit to be printed. */
static bool is_name(const char *text, size_t size)
{
    const char *end = memchr(text, 0, size);
    for (; end && text < end; text++)
        if ((unsigned char) *text <= ' ' || *text == 0x7f)
            return false;
    return end;
}

static bool head_check(const struct record_head *head, size_t bytes, struct error_text *why)
{
    if (bytes < sizeof(*head) || head->magic != RECORD_MAGIC)
        return fail_with(why, "it is no recording of Multilane's");
    if (head->version != RECORD_VERSION || head->event_bytes != sizeof(struct record_event))
        return fail_with(why, "it has version %u, and this program reads version %u", head->version,
                         RECORD_VERSION);
    if (head->rank >= head->job_size || !is_name(head->host, sizeof(head->host)))
        return fail_with(why, "rank %u of %u, or its node, cannot be", head->rank, head->job_size);
    return bytes >= sizeof(*head) + sizeof(struct record_event) ||
           fail_with(why, "nothing was recorded");
}

/* Whether the event can stand at `index`; the number of one that is done leads back. */
static bool event_check(const struct recording_rank *rank, uint32_t index)
{
    const struct record_event *event = &rank->events[index];
    uint32_t number = event->number;
    return event->kind >= RECORD_END && event->kind < RECORD_KINDS &&
           (event->kind != RECORD_END || index + 1 == rank->count) &&
           (event->peer == RECORD_ANY || event->peer < rank->head.job_size) &&
           event->time_ns < VALUE_MOST && event->computed_ns < VALUE_MOST &&
           event->bytes < VALUE_MOST &&
           (event->kind != RECORD_DONE ||
            (number < index && (rank->events[number].kind == RECORD_SEND ||
                                rank->events[number].kind == RECORD_RECEIVE)));
}

static bool rank_check(struct recording_rank *rank, size_t bytes, struct error_text *why)
{
    if (bytes >= sizeof(rank->head))
        memcpy(&rank->head, rank->file, sizeof(rank->head));
    if (!head_check(&rank->head, bytes, why))
        return false;
    rank->events = (const void *) (rank->file + sizeof(rank->head));
    rank->count = (uint32_t) ((bytes - sizeof(rank->head)) / sizeof(struct record_event));
    for (uint32_t i = 0; i < rank->count; i++)
        if (!event_check(rank, i))
            return fail_with(why, "event %u of %u cannot be", i, rank->count);
    return true;
}

static bool rank_load(const char *path, struct recording_rank *rank, struct error_text *error)
{
    struct error_text why;
    size_t bytes;
    *rank = (struct recording_rank){
        .file = whole_file_read(path, RECORD_BYTES_MOST, WHOLE_FILE, &bytes, NULL, error)};
    return rank->file &&
           (rank_check(rank, bytes, &why) || fail_with(error, "%.160s: %.150s", path, why.text));
}

static bool rank_add(const char *path, struct recording *recording, struct error_text *error)
{
    struct recording_rank *ranks =
        realloc(recording->ranks, (recording->rank_count + 1) * sizeof(*ranks));
    if (!ranks)
        return fail_with(error, "%.160s: no memory", path);
    recording->ranks = ranks;
    return rank_load(path, &ranks[recording->rank_count++], error);
}

static bool files_load(DIR *folder, const char *path, struct recording *recording,
                       struct error_text *error)
{
    char name[WHOLE_FILE_PATH_CHARS];
    struct dirent *entry;
    while ((entry = readdir(folder))) {
        if (strncmp(entry->d_name, RECORD_FILE_NAME, strlen(RECORD_FILE_NAME)) != 0)
            continue;
        if ((size_t) snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) >= sizeof(name))
            return fail_with(error, "%.160s: its name is too long", path);
        if (!rank_add(name, recording, error))
            return false;
    }
    return recording->rank_count || fail_with(error, "%.160s: no recording is there", path);
}

static int by_rank(const void *left, const void *right)
{
    const struct record_head *a = &((const struct recording_rank *) left)->head,
                             *b = &((const struct recording_rank *) right)->head;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Are they all ranks of one job? */
static bool job_check(const char *path, struct recording *recording, struct error_text *error)
{
    const struct record_head *first = &recording->ranks[0].head;
    uint64_t events = 0;
    qsort(recording->ranks, recording->rank_count, sizeof(recording->ranks[0]), by_rank);
    for (uint32_t i = 0; i < recording->rank_count; i++) {
        struct recording_rank *rank = &recording->ranks[i];
        if (rank->head.job != first->job || rank->head.job_size != first->job_size)
            return fail_with(error, "%.160s: two jobs are there; each needs a folder of its own",
                             path);
        if (rank->head.rank != i)
            break;
        rank->first = (uint32_t) events;
        events += rank->count;
        recording->is_cut |= rank->events[rank->count - 1].kind != RECORD_END;
    }
    recording->event_count = (uint32_t) events;
    for (uint32_t i = 0; i < first->job_size; i++)
        if (i >= recording->rank_count || recording->ranks[i].head.rank != i)
            return fail_with(error, "%.160s: rank %u of %u is not there, or is twice", path, i,
                             first->job_size);
    return events < UINT32_MAX || fail_with(error, "%.160s: it has too many events", path);
}

bool recording_load(const char *path, struct recording *recording, struct error_text *error)
{
    *recording = (struct recording){.ranks = NULL};
    DIR *folder = opendir(path);
    if (!folder)
        return fail_with(error, "%.160s: cannot be read: %s", path, strerror(errno));
    bool is_good = files_load(folder, path, recording, error) && job_check(path, recording, error);
    closedir(folder);
    if (!is_good)
        recording_free(recording);
    return is_good;
}

void recording_free(struct recording *recording)
{
    for (uint32_t i = 0; i < recording->rank_count; i++)
        free(recording->ranks[i].file);
    free(recording->ranks);
    *recording = (struct recording){.ranks = NULL};
}

/* --- messages --------------------------------------------------------------------------------- */

/* Of messages with one sender, receiver, communicator and tag the first sent goes to the receive
 * that was posted first among those that got one: MPI keeps that order, whatever they asked for. */

/* One end of a message, in the order in which they are sorted. */
struct end {
    uint32_t from, to, comm, tag;
    uint32_t receives;
    uint32_t event; /* among those of all ranks, which are in the order of each */
};

static int by_order(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    for (size_t i = 0; i < sizeof(struct end) / sizeof(*a); i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* What a receive got is known when it is done; without that, what it asked for. */
static uint32_t rank_gather(const struct recording_rank *rank, uint32_t *done, struct end *ends)
{
    uint32_t count = 0, me = rank->head.rank;
    for (uint32_t i = 0; i < rank->count; i++)
        if (rank->events[i].kind == RECORD_DONE)
            done[rank->events[i].number] = i;
    for (uint32_t i = 0; i < rank->count; i++) {
        const struct record_event *event = &rank->events[i];
        bool sends = event->kind == RECORD_SEND, receives = event->kind == RECORD_RECEIVE;
        const struct record_event *got = receives && done[i] ? &rank->events[done[i]] : event;
        done[i] = 0;
        if ((sends || receives) && got->peer != RECORD_ANY)
            ends[count++] = (struct end){sends ? me : got->peer,
                                         sends ? got->peer : me,
                                         event->comm,
                                         (uint32_t) got->tag,
                                         receives,
                                         rank->first + i};
    }
    return count;
}

/* Of each path the sends are first, then the receives. */
static void pair(const struct end *ends, uint32_t count, struct match *match)
{
    for (uint32_t first = 0, end = 0, sends = 0; first < count; first = end, sends = 0) {
        for (; end < count && !memcmp(&ends[first], &ends[end], offsetof(struct end, receives));
             end++)
            sends += !ends[end].receives;
        for (uint32_t i = first; i < first + sends && i + sends < end; i++)
            match->message[ends[i].event] = match->message[ends[i + sends].event] =
                match->message_count++;
    }
    match->unmatched = count - 2u * match->message_count;
}

bool match_make(const struct recording *recording, struct match *match)
{
    size_t events = recording->event_count;
    struct end *ends = malloc(events * sizeof(*ends));
    uint32_t *done = calloc(events, sizeof(*done)), count = 0;
    *match = (struct match){.message = malloc(events * sizeof(*match->message))};
    bool has_memory = ends && done && match->message;
    if (has_memory) {
        memset(match->message, 0xff, events * sizeof(*match->message)); /* MATCH_NONE */
        for (uint32_t i = 0; i < recording->rank_count; i++)
            count += rank_gather(&recording->ranks[i], done, ends + count);
        qsort(ends, count, sizeof(*ends), by_order);
        pair(ends, count, match);
    }
    free(ends);
    free(done);
    return has_memory;
}
