/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that came in pieces, because the ring of their sender was too small for them. */
#include "btl/shm/shm.h"

#include <stdlib.h>
#include <string.h>

/* The first piece of a message has the offset 0. */
static bool whole_begin(shm_peer_t *peer, const struct shm_piece *piece)
{
    if (piece->offset != 0 || piece->whole == 0 ||
        piece->whole > ring_length_max(RING_BYTES_MAX / RING_LINE_BYTES))
        return false;
    peer->in_whole = malloc(piece->whole);
    peer->in_whole_bytes = piece->whole;
    peer->in_whole_filled = 0;
    if (!peer->in_whole)
        shm_peer_fail(peer, "no memory for a message of that process");
    return peer->in_whole != NULL;
}

bool shm_piece_add(shm_peer_t *peer, const struct ring_message *message, struct ring_message *whole)
{
    struct shm_piece piece;

    *whole = (struct ring_message){
        .tag = message->tag,
        .kind = message->kind == SHM_KIND_ACTIVE_PIECE ? SHM_KIND_ACTIVE : SHM_KIND_REMOTE};
    if (message->kind > SHM_KIND_REMOTE_PIECE || message->length <= sizeof(piece))
        return false;
    /* A copy: the peer may write while we check. */
    memcpy(&piece, message->payload, sizeof(piece));
    uint32_t bytes = message->length - (uint32_t) sizeof(piece);
    if (!peer->in_whole && !whole_begin(peer, &piece))
        return false;
    if (piece.whole != peer->in_whole_bytes || piece.offset != peer->in_whole_filled ||
        bytes > piece.whole - piece.offset)
        return false;
    memcpy(peer->in_whole + piece.offset, (const unsigned char *) message->payload + sizeof(piece),
           bytes);
    peer->in_whole_filled += bytes;
    if (peer->in_whole_filled == piece.whole) {
        whole->payload = peer->in_whole;
        whole->length = piece.whole;
        peer->in_whole = NULL;
    }
    return true;
}
