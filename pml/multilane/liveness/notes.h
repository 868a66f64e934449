/* SPDX-License-Identifier: BSD-3-Clause */
/* Notes between the two ends of a broken lane, carried by another one: a fence needs the word of
 * the other end, which a lane that is cut cannot bring. */
#ifndef MULTILANE_NOTES_H
#define MULTILANE_NOTES_H

#include "lane/lane.h"
#include "wire/wire.h"

/* Tells the other end of this broken lane, if a fence is waited for. Where no lane carries it now,
 * the next call does. */
void note_send(struct lane *lane);
/* WIRE_NOTE came on `lane` (null: unknown); answers. False: no note. */
bool notes_heard(struct peer *peer, struct lane *lane, const struct wire_note *note);

#endif
