/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast a rail delivers to a peer, and so how soon what it is given is there.
 *
 * Now and then the other end is asked to say at once that it has a frame that is not small, and
 * those that follow it: their bytes by the time until it has the last one are a sample. While
 * something is always under way, what a word tells of was there when the word before it came: such
 * times make a sample together. The other end may compute before it says anything, so no sample
 * counts as slower than a fourth of what is known. A rail that seems slow gets little, so little is
 * measured of it: it is taken for faster and faster, until it is tried. */
#include "btl/sock/sock.h"

#include "common/lock/clock.h"

/* The shortest time between two samples, once there are enough. */
#define SAMPLE_MS 5u
/* Less takes the time of the way rather than that of the bytes. */
#define SAMPLE_BYTES     ((size_t) 16 << 10)
#define SAMPLE_BYTES_MAX ((size_t) 512 << 10)
/* A sample begins where at most this part of its bytes is kept already: that may have arrived
 * untold. */
#define IDLE_SHARE 8
/* Times between words that are one sample, and what has to be kept meanwhile. */
#define BUSY_BYTES ((size_t) 8 << 10)
#define BUSY_NS    UINT64_C(2000000)
/* The rate is that of so many last samples. */
#define SAMPLES    4u
#define SLOWER_MAX 4
/* A rate that was not measured for so long is doubted. */
#define DOUBT_MS   50u
#define DOUBTS_MAX 20u

static double rate_known(const struct sock_rate *rate, double link_bytes_s)
{
    return rate->bytes > 0 ? 1e9 * (double) rate->bytes / (double) rate->busy_ns : link_bytes_s;
}

static void sample_add(struct sock_rate *rate, uint64_t bytes, uint64_t ns)
{
    const double most_ns = SLOWER_MAX * 1e9 * (double) bytes / rate_known(rate, rate->link_bytes_s);

    if (rate->samples == SAMPLES) {
        rate->busy_ns -= rate->busy_ns / SAMPLES;
        rate->bytes -= rate->bytes / SAMPLES;
    } else {
        rate->samples++;
    }
    rate->bytes += bytes;
    rate->busy_ns += (double) ns < most_ns ? ns + 1 : (uint64_t) most_ns + 1;
    rate->doubts = 0;
    rate->looked_ms = sock_now_ms();
}

static bool is_due(const struct sock_rate *rate)
{
    return rate->samples < SAMPLES || sock_now_ms() - rate->looked_ms >= SAMPLE_MS;
}

bool sock_rate_asks(sock_peer_t *peer, uint32_t number, size_t bytes)
{
    struct sock_rate *rate = &peer->rate;
    const size_t before = peer->kept_bytes - bytes;

    if (OPAL_LIKELY(rate->link_bytes_s == 0) || !peer->link || bytes < SAMPLE_BYTES ||
        rate->asked_bytes >= SAMPLE_BYTES_MAX)
        return false;
    if (before < rate->asked_bytes) /* a part is there: it was sent in turns */
        return false;
    if (rate->asked_bytes == 0) {
        if (before > bytes / IDLE_SHARE || !is_due(rate))
            return false;
        rate->asked_ns = clock_read_ns(CLOCK_MONOTONIC);
    }
    rate->asked_bytes += bytes;
    rate->asked_number = number;
    return true;
}

/* `received` was kept when the word before this one came. Else the other end may have waited
 * for us to send more. */
static void busy_learn(sock_peer_t *peer, size_t received, uint64_t now)
{
    struct sock_rate *rate = &peer->rate;

    if (received <= rate->had && rate->had >= BUSY_BYTES && peer->kept_bytes > 0) {
        rate->between_bytes += received;
        rate->between_ns += now - rate->from_ns;
    }
    rate->from_ns = peer->kept_bytes > 0 ? now : 0;
    rate->had = peer->kept_bytes;
    if (rate->between_ns < BUSY_NS)
        return;
    sample_add(rate, rate->between_bytes, rate->between_ns);
    rate->between_bytes = rate->between_ns = 0;
}

void sock_rate_learn(sock_peer_t *peer, uint32_t have, size_t received)
{
    struct sock_rate *rate = &peer->rate;

    if (OPAL_LIKELY(rate->link_bytes_s == 0) || received == 0)
        return;
    const uint64_t now = clock_read_ns(CLOCK_MONOTONIC);
    if (rate->asked_bytes > 0 && (int32_t) (have - rate->asked_number) >= 0) {
        sample_add(rate, rate->asked_bytes, now - rate->asked_ns);
        rate->asked_bytes = 0;
    }
    if (rate->from_ns != 0)
        busy_learn(peer, received, now);
}

void sock_rate_stop(sock_peer_t *peer)
{
    peer->rate.asked_bytes = 0;
    peer->rate.from_ns = 0;
}

double sock_rate_observed(const sock_peer_t *peer)
{
    const struct sock_rate *rate = &peer->rate;

    return rate->bytes > 0 ? rate_known(rate, 0) : 0;
}

/* As it is taken for. */
static double rate_now(struct sock_rate *rate)
{
    const double bytes_s =
        rate_known(rate, rate->link_bytes_s) * (double) (UINT32_C(1) << rate->doubts);
    const uint64_t now_ms = sock_now_ms();

    if (bytes_s >= rate->link_bytes_s || now_ms - rate->looked_ms < DOUBT_MS ||
        rate->doubts == DOUBTS_MAX)
        return bytes_s;
    rate->looked_ms = now_ms;
    rate->doubts++;
    return 2 * bytes_s;
}

static double delay_s(sock_peer_t *peer)
{
    if (peer->link && peer->delayed_ms != sock_now_ms()) {
        peer->delayed_ms = sock_now_ms();
        peer->delay_s = sock_socket_delay_s(peer->link);
    }
    return peer->delay_s;
}

double sock_rate_arrival_s(sock_peer_t *peer, size_t more, double link_bytes_s)
{
    peer->rate.link_bytes_s = link_bytes_s;
    if (peer->rate.from_ns == 0 && peer->kept_bytes > 0 && peer->link) {
        peer->rate.from_ns = clock_read_ns(CLOCK_MONOTONIC);
        peer->rate.had = peer->kept_bytes;
    }
    return (double) (peer->kept_bytes + more) / rate_now(&peer->rate) + delay_s(peer);
}
