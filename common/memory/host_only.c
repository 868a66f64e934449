/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of a process that can only be the host's. */
#include "common/memory/host_only.h"

#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct range {
    uintptr_t start, end; /* behind the last byte; both 0: not known */
};

static struct range variables;
static uintptr_t heap_start; /* 0: not known */

static bool range_contains(const struct range *range, uintptr_t at)
{
    return at >= range->start && at < range->end;
}

/* The first object is the program. */
static int program_find(struct dl_phdr_info *object, size_t size, void *unused)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W))
            variables = (struct range){start, start + segment->p_memsz};
    }
    return 1;
}

/* Only the system tells where the heap begins. */
static void heap_find(void)
{
    char line[512];
    unsigned long start;
    FILE *maps = fopen("/proc/self/maps", "re");

    if (!maps)
        return;
    while (heap_start == 0 && fgets(line, sizeof(line), maps))
        if (strstr(line, "[heap]") && sscanf(line, "%lx-", &start) == 1)
            heap_start = start;
    fclose(maps);
}

void host_only_find(void)
{
    dl_iterate_phdr(program_find, NULL);
    heap_find();
}

static struct range stack_find(void)
{
    struct range found = {0, 0};
    pthread_attr_t attributes;
    void *lowest;
    size_t bytes;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return found;
    if (pthread_attr_getstack(&attributes, &lowest, &bytes) == 0)
        found = (struct range){(uintptr_t) lowest, (uintptr_t) lowest + bytes};
    pthread_attr_destroy(&attributes);
    return found;
}

/* A program may have stacks of its own making, on which its threads run for a while: then what
 * is known of the thread's says nothing. */
static bool stack_contains(uintptr_t at)
{
    static __thread struct {
        bool is_known;
        struct range range;
    } stack;
    uintptr_t here = (uintptr_t) __builtin_frame_address(0);

    if (!stack.is_known) {
        stack.range = stack_find();
        stack.is_known = true;
    }
    return at >= here && range_contains(&stack.range, at) && range_contains(&stack.range, here);
}

bool host_only_contains(const void *address)
{
    uintptr_t at = (uintptr_t) address;

    if (range_contains(&variables, at))
        return true;
    if (heap_start && at >= heap_start && at < (uintptr_t) sbrk(0))
        return true;
    return stack_contains(at);
}
