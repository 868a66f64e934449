/* SPDX-License-Identifier: BSD-3-Clause */
/* What the packing kernel does for each word: the same text is compiled for the device (kernels.cu)
 * and, for tests without one, for the processor (test/fake/cuda.c).
 *
 * A word is the largest power of two up to 8 bytes that divides every length, every distance and
 * every address there are, so it lies in one block and is aligned at both ends. One thread moves
 * one word, whatever the shape of the blocks: none waits for another, and neighbours in the packed
 * message are neighbours in a warp. */
#ifndef COMMON_MEMORY_PACK_H
#define COMMON_MEMORY_PACK_H

#include <stdint.h>

/* The file that includes this says how an address of the device is reached: KERNEL_PLACE(type,
 * address) is a pointer to what is there, and KERNEL_FUNCTION stands before each function. */
#ifndef KERNEL_PLACE
#define KERNEL_PLACE(type, address) ((type *) (uintptr_t) (address))
#define KERNEL_FUNCTION             static inline
#endif

/* A piece of an element of a datatype. Its length is the distance to the next one's offset. */
struct pack_block {
    uint64_t offset;      /* in the packed element */
    int64_t displacement; /* from the start of the element in memory */
};

/* The bytes [from, from + bytes) of a packed message, which is a row of equal elements. */
struct pack {
    uint64_t packed; /* where byte `from` of it is or will be; modulo a word as `from` is */
    uint64_t base;   /* the start of the first element in memory */
    uint64_t table;  /* struct pack_block[], with ascending offsets; holds all that is needed */
    uint64_t from, bytes;
    uint64_t element_bytes; /* packed */
    int64_t extent;         /* from one element to the next, in memory */
    uint32_t blocks;        /* in the table */
    uint32_t word;          /* bytes of one: 1, 2, 4 or 8 */
    uint32_t unpacks;       /* from packed to memory */
};

/* How many words the bytes touch; the first and the last may be there in part. */
KERNEL_FUNCTION uint64_t pack_words(const struct pack *pack)
{
    return (pack->from % pack->word + pack->bytes + pack->word - 1) / pack->word;
}

/* The block that holds the byte at `within` an element. */
KERNEL_FUNCTION struct pack_block pack_find(const struct pack *pack, uint64_t within)
{
    uint32_t low = 0, high = pack->blocks;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t offset =
            *KERNEL_PLACE(const uint64_t, pack->table + middle * sizeof(struct pack_block));
        if (offset <= within)
            low = middle;
        else
            high = middle;
    }
    return *KERNEL_PLACE(const struct pack_block, pack->table + low * sizeof(struct pack_block));
}

KERNEL_FUNCTION void pack_copy_word(uint64_t to, uint64_t from, uint32_t bytes)
{
    if (bytes == 8)
        *KERNEL_PLACE(uint64_t, to) = *KERNEL_PLACE(const uint64_t, from);
    else if (bytes == 4)
        *KERNEL_PLACE(uint32_t, to) = *KERNEL_PLACE(const uint32_t, from);
    else if (bytes == 2)
        *KERNEL_PLACE(uint16_t, to) = *KERNEL_PLACE(const uint16_t, from);
    else
        *KERNEL_PLACE(uint8_t, to) = *KERNEL_PLACE(const uint8_t, from);
}

/* Moves the word of that number, or what of it is asked for. */
KERNEL_FUNCTION void pack_word(const struct pack *pack, uint64_t number)
{
    uint64_t start = pack->from - pack->from % pack->word + number * pack->word;
    uint64_t end = start + pack->word, within = start % pack->element_bytes;
    const struct pack_block block = pack_find(pack, within);
    uint64_t memory =
        pack->base +
        (uint64_t) ((int64_t) (start / pack->element_bytes) * pack->extent + block.displacement) +
        (within - block.offset);
    uint64_t packed = pack->packed + (start - pack->from); /* below it, where a part is cut off */
    if (start >= pack->from && end <= pack->from + pack->bytes) {
        pack_copy_word(pack->unpacks ? memory : packed, pack->unpacks ? packed : memory,
                       pack->word);
        return;
    }
    for (uint64_t at = start; at < end; at++, memory++, packed++)
        if (at >= pack->from && at < pack->from + pack->bytes)
            pack_copy_word(pack->unpacks ? memory : packed, pack->unpacks ? packed : memory, 1);
}

#endif
