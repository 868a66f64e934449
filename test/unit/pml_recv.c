/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives whose message comes in pieces, too long, twice, or not to its end: each ends once, with
 * just the bytes that were sent, and what does not fit it changes nothing. */
#include "check.h"

#include <string.h>

#include "base/protocol.h"
#include "job_standin.h"

#define SIZE   3000
#define CANARY 0x5a

static const struct wire_handle sender = {3, 9};
static unsigned char sent[SIZE], buffer[2 * SIZE];
static uint32_t sequence; /* of rank 1 */

static void begin(void)
{
    job_begin(1 << 20, 0);
    sequence = 0;
    standin_expects_failures = true;
    multilane.bad_headers = 0;
    memset(buffer, CANARY, sizeof(buffer));
    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (unsigned char) (i * 31 + i / 256);
}

/* A receive of `room` bytes has met an announcement of `size`: what we asked the sender for. */
static struct recv_request *asked_for(size_t room, size_t size, struct wire_rtr *rtr)
{
    struct recv_request *request = job_receive(buffer, room, 1, 0);
    job_forget();
    job_rts(1, 0, sequence++, 0, size, WIRE_BY_SEND, sender);
    const void *asked = job_last(1, WIRE_RTR);
    CHECK(asked && job_count(1, WIRE_RTR) == 1, "%u RTR", job_count(1, WIRE_RTR));
    memcpy(rtr, asked, sizeof(*rtr));
    CHECK(rtr->sender.index == sender.index && rtr->sender.generation == sender.generation,
          "another sender");
    return request;
}

static void piece(int rank, int lane, struct wire_handle receiver, size_t offset, size_t length)
{
    const struct wire_data data = {.receiver = receiver, .offset = offset};
    static const unsigned char no_bytes[2 * SIZE];
    const unsigned char *bytes =
        offset < SIZE && length <= SIZE - offset ? sent + offset : no_bytes;
    job_control(rank, lane, WIRE_DATA, &data, sizeof(data), bytes, length);
}

static void check_received(struct recv_request *request, size_t bytes, size_t size, int error)
{
    CHECK(job_is_complete(request), "it goes on");
    CHECK(memcmp(buffer, sent, bytes) == 0, "other bytes than those %zu", bytes);
    CHECK(buffer[bytes] == CANARY, "the byte behind those %zu", bytes);
    CHECK(job_ompi(request)->req_status._ucount == size, "%zu bytes, not %zu",
          job_ompi(request)->req_status._ucount, size);
    int is = job_free(job_ompi(request));
    CHECK(is == error, "MPI_ERROR is %d", is);
}

/* --- pieces -------------------------------------------------------------------------------------
 */

static void pieces_in_any_order_are_received_once(uint64_t seed)
{
    struct wire_rtr rtr;
    unsigned char here[SIZE] = {0};
    uint64_t chance = seed;
    size_t missing = SIZE, longest = 1 + chance_below(&chance, 900);
    begin();
    struct recv_request *request = asked_for(SIZE, SIZE, &rtr);
    CHECK(rtr.size == SIZE && rtr.method == WIRE_BY_SEND, "%llu bytes",
          (unsigned long long) rtr.size);
    while (missing) {
        size_t offset = chance_below(&chance, SIZE), length = 1 + chance_below(&chance, longest);
        if (length > SIZE - offset)
            length = SIZE - offset;
        CHECK(!job_is_complete(request), "%zu bytes are missing", missing);
        piece(1, (int) chance_below(&chance, JOB_LANES), rtr.receiver, offset, length);
        for (size_t i = offset; i < offset + length; i++) {
            missing -= !here[i];
            here[i] = 1;
        }
    }
    check_received(request, SIZE, SIZE, MPI_SUCCESS);
    piece(1, 0, rtr.receiver, 0, 10);
    CHECK(multilane.bad_headers == 1, "a piece of a receive that has ended");
    job_end();
}

/* What came is not written again, whatever a second copy of it says. */
static void a_duplicate_changes_nothing(void)
{
    struct wire_rtr rtr;
    unsigned char other[100];
    begin();
    memset(other, CANARY, sizeof(other));
    struct recv_request *request = asked_for(SIZE, SIZE, &rtr);
    const struct wire_data data = {.receiver = rtr.receiver, .offset = 50};
    piece(1, 0, rtr.receiver, 0, 500);
    job_control(1, 1, WIRE_DATA, &data, sizeof(data), other, sizeof(other));
    CHECK(multilane.bad_headers == 0, "it is an error");
    piece(1, 0, rtr.receiver, 500, SIZE - 500);
    check_received(request, SIZE, SIZE, MPI_SUCCESS);
    job_end();
}

/* Pieces end within numbers, of which some lie together. */
static void pieces_of_a_number_find_their_places(uint64_t seed)
{
    enum { COUNT = 20, NUMBERS = 3, APART = 5, NUMBER = sizeof(double) };
    ompi_datatype_t *datatype;
    struct wire_rtr rtr;
    uint16_t order[COUNT * NUMBERS * NUMBER];
    unsigned char apart[COUNT * APART * NUMBER];
    uint64_t chance = seed;
    size_t size = sizeof(order) / sizeof(order[0]), piece_bytes = 1 + chance_below(&chance, 50);
    size_t pieces = (size + piece_bytes - 1) / piece_bytes;
    begin();
    memset(apart, CANARY, sizeof(apart));
    ompi_datatype_create_vector(COUNT, NUMBERS, APART, &ompi_mpi_double.dt, &datatype);
    ompi_datatype_commit(&datatype);
    struct recv_request *request = job_receive_type(apart, 1, datatype, 1, 0);
    job_rts(1, 0, sequence++, 0, size, WIRE_BY_SEND, sender);
    memcpy(&rtr, job_last(1, WIRE_RTR), sizeof(rtr));
    for (size_t i = 0; i < pieces; i++)
        order[i] = (uint16_t) i;
    for (size_t i = 0; i < pieces; i++) {
        size_t other = i + chance_below(&chance, pieces - i);
        uint16_t next = order[other];
        order[other] = order[i];
        size_t offset = next * piece_bytes, left = size - offset;
        CHECK(!job_is_complete(request), "%zu of %zu pieces", i, pieces);
        piece(1, 0, rtr.receiver, offset, left < piece_bytes ? left : piece_bytes);
    }
    CHECK(job_is_complete(request), "it goes on");
    for (size_t i = 0; i < sizeof(apart); i++) {
        size_t block = i / (APART * NUMBER), within = i % (APART * NUMBER);
        bool is_gap = within >= NUMBERS * NUMBER;
        CHECK(apart[i] == (is_gap ? CANARY : sent[block * NUMBERS * NUMBER + within]),
              "byte %zu, pieces of %zu", i, piece_bytes);
    }
    job_free(job_ompi(request));
    ompi_datatype_destroy(&datatype);
    job_end();
}

static void pieces_that_fit_no_receive_change_nothing(void)
{
    struct wire_rtr rtr;
    begin();
    struct recv_request *request = asked_for(SIZE, SIZE, &rtr);
    const struct wire_handle newer = {rtr.receiver.index, rtr.receiver.generation + 1};
    const struct wire_handle far = {rtr.receiver.index + 1000, rtr.receiver.generation};
    const struct {
        int rank;
        struct wire_handle receiver;
        size_t offset, length;
        const char *what;
    } wrong[] = {{1, newer, 0, SIZE, "a handle not given out"},
                 {1, far, 0, SIZE, "a handle beyond the table"},
                 {1, {0, 0}, 0, SIZE, "a handle of nothing"},
                 {2, rtr.receiver, 0, SIZE, "another peer's"},
                 {1, rtr.receiver, 0, SIZE + 1, "too long"},
                 {1, rtr.receiver, SIZE, 1, "behind the end"},
                 {1, rtr.receiver, SIZE_MAX, 2, "an end before its begin"},
                 {1, rtr.receiver, 10, 0, "no bytes"}};
    const unsigned count = sizeof(wrong) / sizeof(wrong[0]);
    for (unsigned i = 0; i < count; i++) {
        piece(wrong[i].rank, 0, wrong[i].receiver, wrong[i].offset, wrong[i].length);
        CHECK(multilane.bad_headers == i + 1, "%s is taken", wrong[i].what);
        CHECK(!job_is_complete(request) && buffer[0] == CANARY, "%s counts", wrong[i].what);
    }
    piece(1, 1, rtr.receiver, 0, SIZE);
    CHECK(multilane.bad_headers == count, "what fits is refused");
    check_received(request, SIZE, SIZE, MPI_SUCCESS);
    job_end();
}

/* --- too long -----------------------------------------------------------------------------------
 */

static void what_is_too_long_is_cut(void)
{
    struct wire_rtr rtr;
    begin();
    struct recv_request *request = job_receive(buffer, 100, 1, 0);
    job_eager(1, 0, sequence++, 0, sent, 101);
    check_received(request, 100, 101, MPI_ERR_TRUNCATE);

    memset(buffer, CANARY, sizeof(buffer)); /* kept first */
    job_eager(1, 0, sequence++, 0, sent, 1000);
    request = job_receive(buffer, 999, 1, 0);
    check_received(request, 999, 1000, MPI_ERR_TRUNCATE);

    memset(buffer, CANARY, sizeof(buffer));
    request = asked_for(500, SIZE, &rtr);
    CHECK(rtr.size == 500, "asks for %llu bytes", (unsigned long long) rtr.size);
    piece(1, 0, rtr.receiver, 0, 501);
    CHECK(multilane.bad_headers == 1 && !job_is_complete(request), "more than was asked for");
    piece(1, 0, rtr.receiver, 200, 300);
    piece(1, 0, rtr.receiver, 0, 200);
    check_received(request, 500, SIZE, MPI_ERR_TRUNCATE);
    job_end();
}

/* Nothing of it is wanted, so nothing is asked for, and the sender is told that it is done. */
static void of_an_announced_message_without_room_nothing_is_asked_for(void)
{
    struct wire_ack ack;
    begin();
    struct recv_request *request = job_receive(buffer, 0, 1, 0);
    job_rts(1, 0, sequence++, 0, SIZE, WIRE_BY_SEND, sender);
    CHECK(job_count(1, WIRE_RTR) == 0 && job_count(1, WIRE_ACK) == 1, "%u RTR, %u ACK",
          job_count(1, WIRE_RTR), job_count(1, WIRE_ACK));
    memcpy(&ack, job_last(1, WIRE_ACK), sizeof(ack));
    CHECK(ack.sender.index == sender.index && ack.sender.generation == sender.generation,
          "another sender");
    check_received(request, 0, SIZE, MPI_ERR_TRUNCATE);
    job_end();
}

static void a_sender_that_waits_is_told_when_its_message_is_received(void)
{
    struct wire_ack ack;
    begin();
    job_synchronous(1, 0, sequence++, 0, sent, 70, sender);
    CHECK(job_count(1, WIRE_ACK) == 0, "before there is a receive");
    struct recv_request *request = job_receive(buffer, 70, 1, 0);
    CHECK(job_count(1, WIRE_ACK) == 1, "%u ACK", job_count(1, WIRE_ACK));
    memcpy(&ack, job_last(1, WIRE_ACK), sizeof(ack));
    CHECK(ack.sender.index == sender.index && ack.sender.generation == sender.generation,
          "another sender");
    check_received(request, 70, 70, MPI_SUCCESS);
    job_end();
}

/* --- cancelled ----------------------------------------------------------------------------------
 */

static void a_cancelled_receive_takes_no_message(void)
{
    begin();
    struct recv_request *first = job_receive(buffer, 10, 1, 0);
    struct recv_request *second = job_receive(buffer, 10, 1, 0);
    ompi_request_cancel(job_ompi(first));
    CHECK(job_is_complete(first) && job_ompi(first)->req_status._cancelled, "it goes on");
    CHECK(job_ompi(first)->req_status._ucount == 0, "%zu bytes",
          job_ompi(first)->req_status._ucount);
    job_eager(1, 0, sequence++, 0, sent, 10);
    check_received(second, 10, 10, MPI_SUCCESS);
    ompi_request_cancel(job_ompi(first)); /* which is complete */
    job_free(job_ompi(first));
    job_end();
}

static void a_receive_that_has_met_its_message_is_not_cancelled(void)
{
    struct wire_rtr rtr;
    begin();
    struct recv_request *request = asked_for(SIZE, SIZE, &rtr);
    piece(1, 0, rtr.receiver, 0, 10);
    ompi_request_cancel(job_ompi(request));
    CHECK(!job_is_complete(request) && !job_ompi(request)->req_status._cancelled, "it is");
    piece(1, 0, rtr.receiver, 10, SIZE - 10);
    check_received(request, SIZE, SIZE, MPI_SUCCESS);
    job_end();
}

/* --- what the sender says of bytes: FIN and CANCEL ----------------------------------------------
 */

static void bytes_told(uint8_t type, int rank, struct wire_handle receiver, uint64_t bytes)
{
    const struct wire_fin fin = {.receiver = receiver, .size = bytes};
    job_control(rank, 0, type, &fin, sizeof(fin), NULL, 0);
}

static void bytes_that_will_not_come_end_it_in_an_error(void)
{
    struct wire_rtr rtr;
    begin();
    struct recv_request *request = asked_for(SIZE, SIZE, &rtr);
    const struct wire_handle newer = {rtr.receiver.index, rtr.receiver.generation + 1};
    piece(1, 0, rtr.receiver, 0, 1000);
    bytes_told(WIRE_CANCEL, 1, rtr.receiver, SIZE - 999);
    CHECK(multilane.bad_headers == 1, "more than are missing");
    bytes_told(WIRE_CANCEL, 2, rtr.receiver, 1);
    CHECK(multilane.bad_headers == 2, "another peer's");
    bytes_told(WIRE_CANCEL, 1, newer, 1);
    CHECK(multilane.bad_headers == 3, "a handle not given out");
    request->is_shared = true;
    bytes_told(WIRE_CANCEL, 1, rtr.receiver, 1);
    CHECK(multilane.bad_headers == 4, "both ends copy it");
    request->is_shared = false;
    CHECK(!job_is_complete(request), "what does not fit counts");
    bytes_told(WIRE_CANCEL, 1, rtr.receiver, SIZE - 2000);
    CHECK(multilane.bad_headers == 4 && !job_is_complete(request), "1000 bytes may still come");
    piece(1, 1, rtr.receiver, 1000, 1000);
    CHECK(job_is_complete(request), "all bytes are told of");
    int error = job_free(job_ompi(request));
    CHECK(error == MPI_ERR_OTHER, "MPI_ERROR is %d", error);
    job_end();
}

static unsigned fins;

static bool by_put(struct recv_request *request, const struct arrival *arrival)
{
    (void) arrival;
    recv_request_send_rtr(request, peer_control_lane(request->peer), WIRE_BY_PUT, NULL, NULL);
    return true;
}

static bool put_told(struct recv_request *request, const struct wire_fin *fin)
{
    if (!recv_request_promise(request, fin))
        return false;
    fins++;
    recv_request_received(request, fin->size);
    return true;
}

static const struct protocol put = {
    .name = "put", .method = WIRE_BY_PUT, .receive = by_put, .fin = put_told};

/* A protocol of the test's own, which is told of its own bytes alone. */
static void bytes_that_were_put_are_told_to_the_protocol(void)
{
    struct wire_rtr rtr;
    begin();
    fins = 0;
    protocols.of_model[MODEL_RNDV_PUT] = protocols.of_method[WIRE_BY_PUT] = &put;

    struct recv_request *by_send = asked_for(SIZE, SIZE, &rtr);
    bytes_told(WIRE_FIN, 1, rtr.receiver, SIZE);
    CHECK(multilane.bad_headers == 1 && !job_is_complete(by_send), "of a message by send");
    piece(1, 0, rtr.receiver, 0, SIZE);
    job_free(job_ompi(by_send));

    struct recv_request *request = job_receive(buffer, SIZE, 1, 0);
    job_rts(1, 0, sequence++, 0, SIZE, WIRE_BY_PUT, sender);
    memcpy(&rtr, job_last(1, WIRE_RTR), sizeof(rtr));
    CHECK(rtr.method == WIRE_BY_PUT, "method %u", rtr.method);
    const struct wire_handle newer = {rtr.receiver.index, rtr.receiver.generation + 1};
    bytes_told(WIRE_FIN, 2, rtr.receiver, SIZE);
    bytes_told(WIRE_FIN, 1, newer, SIZE);
    bytes_told(WIRE_FIN, 1, rtr.receiver, SIZE + 1);
    CHECK(multilane.bad_headers == 4 && fins == 0, "%u that do not fit",
          (unsigned) multilane.bad_headers - 1);
    bytes_told(WIRE_FIN, 1, rtr.receiver, 1000);
    CHECK(fins == 1 && !job_is_complete(request), "part of it");
    bytes_told(WIRE_CANCEL, 1, rtr.receiver, 0);
    CHECK(multilane.bad_headers == 5 && !job_is_complete(request), "that no byte will not come");
    bytes_told(WIRE_FIN, 1, rtr.receiver, SIZE - 1000);
    CHECK(fins == 2 && job_is_complete(request), "the rest of it");
    CHECK(job_free(job_ompi(request)) == MPI_SUCCESS, "an error");
    job_end();
}

int main(void)
{
    for (uint64_t seed = 1; seed <= (check_is_long() ? 1000 : 30); seed++) {
        pieces_in_any_order_are_received_once(seed * UINT64_C(0x9e3779b97f4a7c15));
        pieces_of_a_number_find_their_places(seed * UINT64_C(0x9e3779b97f4a7c15));
    }
    a_duplicate_changes_nothing();
    pieces_that_fit_no_receive_change_nothing();
    what_is_too_long_is_cut();
    of_an_announced_message_without_room_nothing_is_asked_for();
    a_sender_that_waits_is_told_when_its_message_is_received();
    a_cancelled_receive_takes_no_message();
    a_receive_that_has_met_its_message_is_not_cancelled();
    bytes_that_will_not_come_end_it_in_an_error();
    bytes_that_were_put_are_told_to_the_protocol();
    return check_end();
}
