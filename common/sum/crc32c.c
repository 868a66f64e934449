/* SPDX-License-Identifier: BSD-3-Clause */
/* The instruction takes 8 bytes and gives its result three cycles later. So long blocks are summed
 * as three streams, whose sums are then joined: a sum is moved over the bytes of the next stream by
 * a table, because that is linear in its bits. */
#include "common/sum/crc32c.h"

#include <stdbool.h>
#include <string.h>

uint32_t (*crc32c)(uint32_t crc, const void *bytes, size_t length) = crc32c_by_table;

#define POLYNOMIAL 0x82f63b78u /* lowest power in the highest bit */
#define STREAM     1024u       /* bytes: of 256 to 2048 the fastest for 4 KiB to 1 MiB */

static uint32_t of_byte[256];
static uint32_t over_stream[sizeof(uint32_t)][256]; /* a sum's byte, moved over STREAM zeros */

static uint32_t feed(uint32_t state, const unsigned char *bytes, size_t length)
{
    while (length-- > 0)
        state = state >> 8 ^ of_byte[(state ^ *bytes++) & 0xff];
    return state;
}

uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t length)
{
    return ~feed(~crc, bytes, length);
}

static void tables_fill(void)
{
    static const unsigned char zeros[STREAM];

    for (uint32_t i = 0; i < 256; i++) {
        of_byte[i] = i;
        for (int bit = 0; bit < 8; bit++)
            of_byte[i] = of_byte[i] >> 1 ^ (of_byte[i] & 1 ? POLYNOMIAL : 0);
    }
    for (uint32_t byte = 0; byte < sizeof(uint32_t); byte++)
        for (uint32_t i = 1; i < 256; i++) /* by its lowest bit, and the others, which are known */
            over_stream[byte][i] = i & (i - 1)
                                       ? over_stream[byte][i & (i - 1)] ^ over_stream[byte][i & -i]
                                       : feed(i << 8 * byte, zeros, STREAM);
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#define BY_INSTRUCTION       __attribute__((target("sse4.2")))
#define FEED_8(state, bytes) (uint32_t) _mm_crc32_u64(state, bytes)
#define FEED_1(state, byte)  _mm_crc32_u8(state, byte)

/* Asked where sums are wanted. __builtin_cpu_supports would ask for all that a processor can, and
 * where each component is loaded; in a virtual machine each question takes tens of microseconds. */
static bool has_instruction(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_SSE4_2);
}

/* The processor's word, and the system's that it keeps these registers. */
#define KEPT_AVX512 0xe6u

__attribute__((target("xsave"))) static bool has_folding(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_OSXSAVE) &&
           (_xgetbv(0) & KEPT_AVX512) == KEPT_AVX512 &&
           __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & bit_AVX512F) &&
           (ecx & bit_VPCLMULQDQ);
}
/* An older clang knows the instruction only where all of the program may use it. */
#elif defined(__aarch64__) && defined(__linux__) &&                                                \
    (defined(__ARM_FEATURE_CRC32) || !defined(__clang__))
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define BY_INSTRUCTION       __attribute__((target("+crc")))
#define FEED_8(state, bytes) __crc32cd(state, bytes)
#define FEED_1(state, byte)  __crc32cb(state, byte)

static bool has_instruction(void)
{
    return getauxval(AT_HWCAP) & HWCAP_CRC32;
}
#endif

#ifdef BY_INSTRUCTION
static uint64_t word_at(const unsigned char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return word;
}

static uint32_t moved(uint32_t state)
{
    return over_stream[0][state & 0xff] ^ over_stream[1][state >> 8 & 0xff] ^
           over_stream[2][state >> 16 & 0xff] ^ over_stream[3][state >> 24];
}

BY_INSTRUCTION static uint32_t feed_streams(uint32_t state, const unsigned char *bytes)
{
    uint32_t second = 0, third = 0;

    for (size_t i = 0; i < STREAM; i += 8) {
        state = FEED_8(state, word_at(bytes + i));
        second = FEED_8(second, word_at(bytes + STREAM + i));
        third = FEED_8(third, word_at(bytes + 2 * STREAM + i));
    }
    return moved(moved(state) ^ second) ^ third;
}

BY_INSTRUCTION static uint32_t by_instruction(uint32_t crc, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint32_t state = ~crc;

    for (; length >= 3 * STREAM; length -= 3 * STREAM, at += 3 * STREAM)
        state = feed_streams(state, at);
    for (; length >= 8; length -= 8, at += 8)
        state = FEED_8(state, word_at(at));
    for (; length > 0; length--)
        state = FEED_1(state, *at++);
    return ~state;
}
#endif

/* Of a cache the first level holds it twice. */
#define COPIED ((size_t) 8 << 10)

static uint32_t copy_in_pieces(uint32_t crc, void *to, const void *from, size_t length)
{
    for (size_t at = 0, piece; at < length; at += piece) {
        piece = length - at < COPIED ? length - at : COPIED;
        crc = crc32c(crc, (const unsigned char *) from + at, piece);
        memcpy((unsigned char *) to + at, (const unsigned char *) from + at, piece);
    }
    return crc;
}

#if defined(__x86_64__)
/* Products of 64 bits without carries, four times two at once: four registers hold what is left of
 * the bytes before, and are moved over the next FOLDED ones. The instruction above sums what the
 * registers hold in the end. */
#define BY_FOLDING __attribute__((target("avx512f,vpclmulqdq,sse4.2")))
#define FOLDED     256u /* bytes of the four */

static uint64_t moves[2]; /* the first and last 8 of 16 bytes; a product is one power higher */

static uint64_t power_of_x(unsigned power)
{
    uint32_t rest = UINT32_C(1) << 31;

    while (power-- > 0)
        rest = rest >> 1 ^ (rest & 1 ? POLYNOMIAL : 0);
    return (uint64_t) rest << 32;
}

static void moves_fill(void)
{
    moves[0] = power_of_x(8 * FOLDED + 64 - 1);
    moves[1] = power_of_x(8 * FOLDED - 1);
}

#define INLINED static inline __attribute__((always_inline))

/* The 64 bytes from there on, which are copied on the way; `to` null: they are not. */
BY_FOLDING INLINED __m512i take(unsigned char *to, const unsigned char *bytes, size_t at)
{
    __m512i taken = _mm512_loadu_si512(bytes + at);

    if (to)
        _mm512_storeu_si512(to + at, taken);
    return taken;
}

BY_FOLDING INLINED __m512i fold(__m512i held, __m512i by, __m512i next)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(held, by, 0x00),
                                     _mm512_clmulepi64_epi128(held, by, 0x11), next, 0x96);
}

/* Four variables: of an array the compiler makes memory, and twice the time. */
BY_FOLDING INLINED uint32_t feed_folded(uint32_t state, unsigned char *to,
                                        const unsigned char *bytes, size_t length)
{
    const __m512i by = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *) moves));
    __m512i first = take(to, bytes, 0), second = take(to, bytes, 64);
    __m512i third = take(to, bytes, 128), fourth = take(to, bytes, 192);
    unsigned char left[FOLDED];

    first = _mm512_xor_si512(first, _mm512_maskz_set1_epi32(1, (int) state));
    for (size_t at = FOLDED; at < length; at += FOLDED) {
        first = fold(first, by, take(to, bytes, at));
        second = fold(second, by, take(to, bytes, at + 64));
        third = fold(third, by, take(to, bytes, at + 128));
        fourth = fold(fourth, by, take(to, bytes, at + 192));
    }
    _mm512_storeu_si512(left, first);
    _mm512_storeu_si512(left + 64, second);
    _mm512_storeu_si512(left + 128, third);
    _mm512_storeu_si512(left + 192, fourth);
    return ~by_instruction(~UINT32_C(0), left, FOLDED);
}

BY_FOLDING static uint32_t by_folding(uint32_t crc, const void *bytes, size_t length)
{
    const size_t folded = length - length % FOLDED;

    if (folded < 2 * FOLDED)
        return by_instruction(crc, bytes, length);
    crc = ~feed_folded(~crc, NULL, bytes, folded);
    return by_instruction(crc, (const unsigned char *) bytes + folded, length - folded);
}

BY_FOLDING static uint32_t copy_by_folding(uint32_t crc, void *to, const void *from, size_t length)
{
    const size_t folded = length - length % FOLDED;

    if (folded < 2 * FOLDED)
        return copy_in_pieces(crc, to, from, length);
    crc = ~feed_folded(~crc, to, from, folded);
    return copy_in_pieces(crc, (unsigned char *) to + folded, (const unsigned char *) from + folded,
                          length - folded);
}
#endif

uint32_t (*crc32c_copy)(uint32_t crc, void *to, const void *from, size_t length) = copy_in_pieces;

void crc32c_begin(void)
{
    tables_fill();
#ifdef BY_INSTRUCTION
    if (has_instruction())
        crc32c = by_instruction;
#endif
#if defined(__x86_64__)
    moves_fill();
    if (has_folding()) {
        crc32c = by_folding;
        crc32c_copy = copy_by_folding;
    }
#endif
}
