/* SPDX-License-Identifier: BSD-3-Clause */
/* The PML in a job without a job: this process is rank 0 and enables it as in any job; the other
 * ranks are none, over BTLs of lanes_standin.h. What they send is what the test writes, and what is
 * sent to them is kept for the test to see. */
#ifndef TEST_UNIT_JOB_STANDIN_H
#define TEST_UNIT_JOB_STANDIN_H

#include "lanes_standin.h"
#include "match/comm.h"
#include "request/recv_request.h"
#include "request/send_request.h"

#define JOB_RANKS 3
#define JOB_LANES 2 /* to each other rank */

/* Rank 0 and the others let each other have so many units unmatched, see flow.h. */
void job_begin(uint32_t window, uint32_t pool);
void job_end(void);

extern ompi_communicator_t job_ompi_comm;
struct mca_pml_comm_t *job_comm(void);
/* How many messages are kept, wherever they are listed. */
size_t job_kept(void);
struct peer *job_peer(int rank);

/* --- what comes from a rank, over its lane of that index ---------------------------------------
 */

/* Whole messages, and what announces one. */
void job_eager(int rank, int lane, uint32_t sequence, int tag, const void *data, size_t size);
void job_eager_on(uint32_t context, int rank, int lane, uint32_t sequence, int tag,
                  const void *data, size_t size);
void job_synchronous(int rank, int lane, uint32_t sequence, int tag, const void *data, size_t size,
                     struct wire_handle sender);
void job_rts(int rank, int lane, uint32_t sequence, int tag, size_t size, uint32_t method,
             struct wire_handle sender);
/* `length` bytes of a message of `size`, from `offset` on; `message` is all of it. */
void job_part(int rank, int lane, uint32_t sequence, int tag, const void *message, size_t size,
              size_t offset, size_t length);
/* What comes has sums, with one of its own for the payload; this bit of it is made wrong. */
extern bool job_is_apart;
#define JOB_ALL_RIGHT SIZE_MAX
extern size_t job_wrong_bit;
/* Any bytes. */
void job_bytes(int rank, int lane, const void *header, size_t length, const void *payload,
               size_t size);
/* Any other message: a body, and what follows it. */
void job_control(int rank, int lane, uint8_t type, const void *body, size_t length,
                 const void *payload, size_t size);

/* --- what is sent to the others, in order ------------------------------------------------------
 */

struct job_sent {
    int rank, lane;
    uint8_t type;
    size_t length;
    unsigned char bytes[288]; /* as many of them as fit, header and all */
};

extern struct job_sent job_sent[];
extern unsigned job_sent_count;
/* Do lanes take messages now? */
extern bool job_has_room;
/* So many more they refuse in any case. */
extern unsigned job_refusals;

/* The body of the last message of that type to the rank; null: there was none. */
const void *job_last(int rank, uint8_t type);
unsigned job_count(int rank, uint8_t type);
/* The number of a message that was sent, whole or announced. */
uint32_t job_sequence(const struct job_sent *sent);
/* Forgets what was sent. */
void job_forget(void);

/* --- requests -----------------------------------------------------------------------------------
 */

/* A receive of bytes, or of elements of a datatype. */
struct recv_request *job_receive(void *buffer, size_t size, int source, int tag);
struct recv_request *job_receive_type(void *buffer, size_t count, ompi_datatype_t *datatype,
                                      int source, int tag);
/* A send of bytes; complete at once, or a request. */
ompi_request_t *job_send(const void *buffer, size_t size, int rank, int tag);
/* Of a request that is complete: its MPI_ERROR. The request is given back. */
int job_free(ompi_request_t *request);

static inline ompi_request_t *job_ompi(struct recv_request *request)
{
    return &request->base.req_base.req_ompi;
}

static inline bool job_is_complete(struct recv_request *request)
{
    return request_is_complete(job_ompi(request));
}

#endif
