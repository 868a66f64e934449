/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer is lost while a thread copies into a receive of its message: the receive ends once, in an
 * error, and not before the last byte is written, as its buffer is the user's then. */
#include "check.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "base/offer_word.h"
#include "job_standin.h"
#include "liveness/liveness.h"
#include "progress_standin.h"
#include "request/pieces.h"

#define TAG  5
#define SIZE ((size_t) 8192)
#define HALF (SIZE / 2)

/* ThreadSanitizer takes the signal, which comes at one known place, for one that comes at any. */
const char *__tsan_default_options(void);

__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
    return "report_signal_unsafe=0";
}

static const struct wire_handle sender = {3, 9};
static unsigned char sent[SIZE], *buffer;
static struct recv_request *request;
static unsigned losses;

/* Called where the copy is half way. Locks are not taken without threads, so this is another
 * thread's doing; where a lock would be held, the copy is made under it. */
static void peer_is_lost_now(void)
{
    losses++;
    CHECK(lost_is_returned(job_peer(1)), "errors are to be returned");
    progress_standin_run();
    CHECK(!job_is_complete(request), "it ends while a thread writes to its buffer");
}

/* The second page of the buffer may not be written, at first. */
static void second_page_touched(int signal)
{
    (void) signal;
    mprotect(buffer, SIZE, PROT_READ | PROT_WRITE);
    peer_is_lost_now();
}

static void begin(bool page_by_page)
{
    job_begin(1 << 20, 0);
    standin_expects_failures = true;
    losses = 0;
    for (size_t i = 0; i < SIZE; i++)
        sent[i] = (unsigned char) (i * 31 + i / 256);
    buffer = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page_by_page)
        mprotect(buffer + HALF, HALF, PROT_NONE);
    request = job_receive(buffer, SIZE, 1, TAG);
}

/* `bytes` had come, or were being copied. */
static void end(size_t bytes, int error)
{
    CHECK(losses == 1, "the peer was lost %u times", losses);
    CHECK(job_is_complete(request), "it goes on");
    CHECK(memcmp(buffer, sent, bytes) == 0, "other bytes");
    CHECK(job_ompi(request)->req_status._ucount == (error ? 0 : SIZE), "%zu bytes",
          job_ompi(request)->req_status._ucount);
    int is = job_free(job_ompi(request));
    CHECK(is == error, "MPI_ERROR is %d, not %d", is, error);
    munmap(buffer, SIZE);
    job_peer(1)->lost = false;
    job_end();
    CHECK(multilane.lost_peers == 0, "the next session looks for a lost peer in each receive");
}

static void announced(uint32_t method, const void *key, size_t length)
{
    struct {
        struct wire_base base;
        struct wire_rts rts;
    } header = {.base = {.type = WIRE_RTS, .from = 1},
                .rts = {.match = {.source = 1, .tag = TAG},
                        .size = SIZE,
                        .sender = sender,
                        .method = method,
                        .key = {.address = (uintptr_t) sent, .length = (uint32_t) length}}};
    job_bytes(1, 0, &header, sizeof(header), key, length);
}

static struct wire_handle asked(void)
{
    struct wire_rtr rtr;
    memcpy(&rtr, job_last(1, WIRE_RTR), sizeof(rtr));
    return rtr.receiver;
}

static void pieces(bool all)
{
    begin(true);
    announced(WIRE_BY_SEND, NULL, 0);
    const struct wire_data first = {.receiver = asked()};
    const struct wire_data second = {.receiver = first.receiver, .offset = HALF};
    if (all)
        job_control(1, 0, WIRE_DATA, &first, sizeof(first), sent, HALF);
    job_control(1, 0, WIRE_DATA, &second, sizeof(second), sent + HALF, HALF);
    CHECK(memcmp(buffer + HALF, sent + HALF, HALF) == 0, "other bytes");
    end(all ? SIZE : 0, all ? MPI_SUCCESS : COMPAT_ERR_PROC_FAILED);
}

static void a_piece_is_written_to_its_end(void)
{
    pieces(false);
    pieces(true); /* with which the message is whole */
}

static void parts(bool all)
{
    begin(true);
    if (all)
        job_part(1, 0, 0, TAG, sent, SIZE, 0, HALF);
    job_part(1, 0, 0, TAG, sent, SIZE, HALF, HALF);
    CHECK(memcmp(buffer + HALF, sent + HALF, HALF) == 0, "other bytes");
    CHECK(!assembly_next(job_peer(1), NULL) && job_kept() == 0, "the message stays");
    end(all ? SIZE : 0, COMPAT_ERR_PROC_FAILED);
}

static void a_part_is_written_to_its_end(void)
{
    parts(false);
    parts(true);
}

/* --- what this process copies from the sender's memory ------------------------------------------
 */

static struct multilane_control control;
static bool refuses;    /* the copy, half way */
static bool is_at_once; /* lost: when the message has met its receive, which has no handle yet */

static struct multilane_control *find(struct mca_btl_base_module_t *btl,
                                      struct mca_btl_base_endpoint_t *endpoint, uint64_t handle)
{
    (void) btl;
    (void) endpoint;
    if (is_at_once && losses == 0)
        peer_is_lost_now();
    return handle == 7 ? &control : NULL;
}

static int copy(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                void *local, uint64_t remote, size_t length)
{
    (void) btl;
    (void) endpoint;
    if (losses == 0)
        peer_is_lost_now();
    memcpy(local, (const void *) (uintptr_t) remote, length);
    return refuses ? OPAL_ERR_UNREACH : OPAL_SUCCESS;
}

/* Time passes while nothing comes. */
static int poll_nothing(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
    (void) btl;
    (void) endpoint;
    standin_now_ns += 10000;
    return 0;
}

static const struct multilane_extension extension = {
    .control_find = find, .copy_from = copy, .poll = poll_nothing};

static void begin_with_copies(bool with_refusal)
{
    begin(false);
    refuses = with_refusal;
    memset(&control, 0, sizeof(control));
    job_peer(1)->lanes[0].extension = &extension;
}

/* The sender copies half of it, and is lost while this end copies. */
static void both(bool is_refused, size_t by_sender)
{
    const uint64_t key = 7;
    begin_with_copies(is_refused);
    control.words[0] = control.words[1] = by_sender; /* chunks */
    announced(WIRE_BY_BOTH, &key, sizeof(key));
    end(0, COMPAT_ERR_PROC_FAILED);
}

static void a_copy_of_both_ends_goes_to_its_end(void)
{
    both(false, 0);
    both(true, 0);
}

static void a_receive_is_found_though_it_gets_its_handle_later(void)
{
    is_at_once = true;
    both(false, 0);
    is_at_once = false;
}

static void offered(bool is_refused)
{
    const struct wire_offer offer = {.address = (uintptr_t) sent, .line = 7, .tag = 1};
    begin_with_copies(is_refused);
    offer_begin(&control.words[0], 1);
    announced(WIRE_BY_SEND, &offer, sizeof(offer));
    const struct wire_data data = {.receiver = asked()};
    job_control(1, 0, WIRE_DATA, &data, sizeof(data), sent, HALF);
    offer_open(&control.words[0], 1, HALF);
    for (int i = 0; i < 10 && !losses; i++) {
        standin_now_ns += 1000000;
        progress_standin_run();
    }
    end(is_refused ? 0 : SIZE, is_refused ? COMPAT_ERR_PROC_FAILED : MPI_SUCCESS);
}

static void offered_part(bool is_refused)
{
    const struct wire_part part = {.match = {.source = 1, .tag = TAG}, .size = SIZE, .offset = 0};
    const struct wire_offer offer = {.address = (uintptr_t) sent, .line = 7, .tag = 1};
    struct {
        struct wire_base base;
        struct wire_part part;
        struct wire_offer offer;
    } header = {{.type = WIRE_PART, .traits = WIRE_OFFERED, .from = 1}, part, offer};
    begin_with_copies(is_refused);
    offer_begin(&control.words[0], 1);
    job_bytes(1, 0, &header, sizeof(header), sent, HALF);
    offer_open(&control.words[0], 1, HALF);
    for (int i = 0; i < 10 && !losses; i++) {
        standin_now_ns += 1000000;
        progress_standin_run();
    }
    CHECK(!assembly_next(job_peer(1), NULL) && job_kept() == 0, "the message stays");
    end(is_refused ? 0 : SIZE, COMPAT_ERR_PROC_FAILED);
}

static void an_offered_rest_is_taken_to_its_end(void)
{
    for (int is_refused = 0; is_refused < 2; is_refused++) {
        offered(is_refused);
        offered_part(is_refused);
    }
}

/* --- the sender's end of a copy by both ---------------------------------------------------------
 */

static struct send_request *outgoing;
static unsigned released;

static int obtain(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                  struct multilane_control **line, uint64_t *handle)
{
    (void) btl;
    (void) endpoint;
    *line = &control;
    *handle = 7;
    return OPAL_SUCCESS;
}

static void release(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                    uint64_t handle)
{
    (void) btl;
    (void) endpoint;
    released += handle == 7;
}

/* The receiver has copied the last chunk, and another thread gets its answer. */
static int answered(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                    const void *local, uint64_t remote, size_t length)
{
    const struct wire_ack ack = {.sender = outgoing->handle};
    (void) btl, (void) endpoint, (void) local, (void) remote, (void) length;
    if (control.words[0] == 1)
        job_control(1, 0, WIRE_ACK, &ack, sizeof(ack), NULL, 0);
    CHECK(released == 0, "the line is given back while it is used");
    return OPAL_SUCCESS;
}

static void a_line_is_given_back_when_no_thread_uses_it(void)
{
    static const struct multilane_extension sending = {
        .control_obtain = obtain, .control_release = release, .copy_to = answered};
    static unsigned char large[128 << 20]; /* beyond the window; none of it is touched */
    begin_with_copies(false);
    job_peer(1)->lanes[0].extension = &sending;
    outgoing = (struct send_request *) job_send(large, sizeof(large), 1, TAG);
    CHECK(handle_is_set(outgoing->handle), "it is not announced");
    outgoing->protocol = protocols.of_model[MODEL_RNDV_BOTH];
    outgoing->unfinished++; /* it is announced again */
    CHECK(outgoing->protocol->start(outgoing) == OMPI_SUCCESS, "by both");
    const struct wire_rtr rtr = {.sender = outgoing->handle,
                                 .receiver = {5, 5},
                                 .size = sizeof(large),
                                 .method = WIRE_BY_BOTH};
    job_control(1, 0, WIRE_RTR, &rtr, sizeof(rtr), NULL, 0);
    CHECK(released == 1 && job_free((ompi_request_t *) outgoing) == MPI_SUCCESS, "it goes on");
    ompi_request_cancel(job_ompi(request));
    job_free(job_ompi(request));
    munmap(buffer, SIZE);
    job_end();
}

/* --- what a lane reads from the sender's memory -------------------------------------------------
 */

#define HELD_MOST 16u

static struct held {
    mca_btl_base_descriptor_t super;
    mca_btl_base_segment_t segments[2]; /* the header, and the payload where it lies */
    unsigned char header[256];
} held[HELD_MOST];

static unsigned held_count, fences, returned_to_none;

static mca_btl_base_descriptor_t *prepare(mca_btl_base_module_t *btl,
                                          struct mca_btl_base_endpoint_t *endpoint,
                                          struct opal_convertor_t *convertor, uint8_t order,
                                          size_t reserve, size_t *size, uint32_t flags)
{
    (void) btl, (void) endpoint, (void) convertor, (void) order, (void) flags;
    if (held_count == HELD_MOST)
        return NULL;
    struct held *made = &held[held_count];
    memset(made, 0, sizeof(*made));
    made->segments[0].seg_addr.pval = made->header;
    made->segments[0].seg_len = reserve;
    made->segments[1].seg_len = *size;
    made->super.des_segments = made->segments;
    made->super.des_segment_count = 2;
    return &made->super;
}

static int hold(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    if (descriptor->des_segment_count == 1)
        return btl->btl_send(btl, endpoint, descriptor, tag);
    held_count++;
    return OPAL_SUCCESS;
}

static void return_to(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      multilane_returned returned, void *context)
{
    (void) btl, (void) endpoint, (void) context;
    returned_to_none += returned == NULL;
}

/* Then the lane reads no more. */
static int let_go(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
    fences++;
    CHECK(!request_is_complete((ompi_request_t *) outgoing), "its owner has been told already");
    while (held_count > 0) {
        held_count--;
        held[held_count].super.des_cbfunc(btl, endpoint, &held[held_count].super, OPAL_ERR_UNREACH);
    }
    return OPAL_ERR_RESOURCE_BUSY;
}

static void a_payload_in_place_is_let_go_first(bool returns)
{
    static const struct multilane_extension keeping = {.fence = let_go, .return_to = return_to};
    static unsigned char large[1 << 20];
    job_begin(1 << 20, 0);
    standin_expects_failures = true;
    fences = returned_to_none = 0;
    for (int i = 0; i < JOB_LANES; i++) {
        job_peer(1)->lanes[i].extension = &keeping;
        job_peer(1)->lanes[i].prepare = prepare;
        job_peer(1)->lanes[i].send = hold;
    }
    outgoing = (struct send_request *) job_send(large, sizeof(large), 1, TAG);
    const struct wire_rtr rtr = {.sender = outgoing->handle,
                                 .receiver = {5, 5},
                                 .size = sizeof(large),
                                 .method = WIRE_BY_SEND};
    job_control(1, 0, WIRE_RTR, &rtr, sizeof(rtr), NULL, 0);
    CHECK(held_count > 0, "no piece is under way");
    for (int i = 0; i < JOB_LANES; i++)
        job_peer(1)->lanes[i].returns = returns;
    CHECK(lost_is_returned(job_peer(1)), "errors are to be returned");
    progress_standin_run();
    progress_standin_run(); /* what a lane ends with an error ends in the next round */
    CHECK(fences > 0 && held_count == 0, "%u pieces are still read", held_count);
    CHECK(returned_to_none == (returns ? JOB_LANES : 0), "the lane keeps them");
    CHECK(request_is_complete((ompi_request_t *) outgoing), "it goes on");
    int error = job_free((ompi_request_t *) outgoing);
    CHECK(error == COMPAT_ERR_PROC_FAILED, "MPI_ERROR is %d", error);
    job_peer(1)->lost = false;
    job_end();
}

/* --- a loss that MPI's end finds unreported --------------------------------------------------- */

static unsigned reports;

static void reported(ompi_proc_t *proc, const char *sentence)
{
    (void) proc, (void) sentence;
    reports++;
}

static void a_report_at_the_end_is_freed(void)
{
    job_begin(1 << 20, 0);
    ompi_proc_t *proc = job_peer(1)->proc;
    int references = ((opal_object_t *) proc)->obj_reference_count;
    is_progress_thread = true;
    CHECK(handover_take(reported, proc, "it is lost"), "the progress thread reports it itself");
    is_progress_thread = false;
    CHECK(((opal_object_t *) proc)->obj_reference_count == references + 1, "it may be freed");
    pending_close();
    CHECK(((opal_object_t *) proc)->obj_reference_count == references && reports == 0,
          "%d references, %u reports", ((opal_object_t *) proc)->obj_reference_count, reports);
    job_end();
}

int main(void)
{
    struct sigaction touched = {.sa_handler = second_page_touched};
    sigaction(SIGSEGV, &touched, NULL);
    a_piece_is_written_to_its_end();
    a_part_is_written_to_its_end();
    a_copy_of_both_ends_goes_to_its_end();
    a_receive_is_found_though_it_gets_its_handle_later();
    an_offered_rest_is_taken_to_its_end();
    a_line_is_given_back_when_no_thread_uses_it();
    a_payload_in_place_is_let_go_first(false);
    a_payload_in_place_is_let_go_first(true);
    a_report_at_the_end_is_freed();
    return check_end();
}
