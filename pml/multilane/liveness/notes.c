/* SPDX-License-Identifier: BSD-3-Clause */
/* Notes between the two ends of a broken lane. */
#include "liveness/notes.h"

#include "liveness/liveness.h"
#include "peer/control_message.h"

_Static_assert(sizeof(((struct wire_note *) 0)->bytes) == MULTILANE_FENCE_NOTE_BYTES,
               "a note fits");

/* A lost note does no harm: it is sent again, and so is its answer. */
static void note_post(struct lane *by, const struct wire_note *note)
{
    if (by)
        (void) control_send_bare(by, WIRE_NOTE, note, sizeof(*note));
}

void note_send(struct lane *lane)
{
    struct wire_note note = {.length = 0};
    if (lane->extension && lane->extension->fence_ask)
        note.length = (uint32_t) lane->extension->fence_ask(lane->btl, lane->endpoint, note.bytes);
    if (note.length)
        note_post(peer_lane_for(lane->peer, 0), &note);
}

bool notes_heard(struct peer *peer, struct lane *lane, const struct wire_note *note)
{
    struct wire_note answer = {.length = 0};
    if (note->length == 0 || note->length > sizeof(note->bytes))
        return false;
    /* Each component knows its own notes; the lanes of one share the function. */
    for (int i = 0; i < peer_lane_count(peer) && !answer.length; i++) {
        const struct multilane_extension *extension = peer->lanes[i].extension;
        if (extension && extension->fence_hear)
            answer.length =
                (uint32_t) extension->fence_hear(note->bytes, note->length, answer.bytes);
    }
    if (answer.length)
        note_post(lane && lane_is_up(lane) ? lane : peer_lane_for(peer, 0), &answer);
    return true;
}
