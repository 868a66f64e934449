/* SPDX-License-Identifier: BSD-3-Clause */
/* The recording of a job (pml_multilane_record), checked: include/multilane/record.h; and its
 * messages. */
#ifndef TOOLS_REPLAY_RECORDING_H
#define TOOLS_REPLAY_RECORDING_H

#include <stdbool.h>
#include <stddef.h>

#include "common/model/error.h"
#include "multilane/record.h"

struct recording_rank {
    struct record_head head;
    char *file;                        /* holds the events */
    const struct record_event *events; /* kinds are known; what is done has begun before */
    uint32_t count;                    /* at least 1 */
    uint32_t first;                    /* of them among those of all ranks */
};

struct recording {
    struct recording_rank *ranks; /* in order, all of the job */
    uint32_t rank_count;
    uint32_t event_count; /* of all */
    bool is_cut;          /* a rank's recording ends before MPI_Finalize */
};

/* False with a sentence that names the file and what is wrong. */
bool recording_load(const char *folder, struct recording *recording, struct error_text *error);
void recording_free(struct recording *recording);

/* Which send each receive got its message from. */
#define MATCH_NONE UINT32_MAX

struct match {
    uint32_t *message;      /* by number among all events: of a send or a receive; or MATCH_NONE */
    uint32_t message_count; /* a send and a receive each */
    uint64_t unmatched;     /* sends and receives whose other end is not in the recording */
};

/* The caller frees `message`, also where there is no memory: false. */
bool match_make(const struct recording *recording, struct match *match);

#endif
