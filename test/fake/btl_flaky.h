/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test program, which finds them by dlsym, asks of the stand-in BTL: one fault at an exact
 * call. Calls are those of its alloc, prepare, send, get and put; for the last two faults what it
 * receives is counted as well. Of programs with one thread. */
#ifndef TEST_FAKE_BTL_FLAKY_H
#define TEST_FAKE_BTL_FLAKY_H

enum flaky_fault {
    FLAKY_NONE,
    FLAKY_NO_ROOM,     /* the call is refused for want of resources */
    FLAKY_BUSY,        /* alloc is refused; send answers "busy", and sends `rounds` turns later */
    FLAKY_HELD,        /* send accepts, and sends `rounds` turns later */
    FLAKY_UNCONNECTED, /* from this call on all sends are held, for `rounds` turns */
    FLAKY_CUT,         /* from this call or message on the lane loses all, in both directions */
    FLAKY_BREAK,       /* there the lane breaks, and says so */
    FLAKY_FAULTS
};

/* The fault will happen at this call (the first is 1) of this lane, or of any below 0. */
__attribute__((visibility("default"))) void mca_btl_flaky_plan(enum flaky_fault fault, int lane,
                                                               unsigned call, unsigned rounds);
/* Ends that, and mends what is cut: a lane that has lost something there gets through once it is
 * made anew. Returns how many calls there were. */
__attribute__((visibility("default"))) unsigned mca_btl_flaky_end(void);
/* How many bits were wrong so far. */
__attribute__((visibility("default"))) unsigned mca_btl_flaky_flips(void);
/* 1: each lane has its connection, and has lost nothing there. */
__attribute__((visibility("default"))) int mca_btl_flaky_is_whole(void);

#endif
