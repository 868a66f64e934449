/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes entries of the table by which libmpi calls other libraries. */
#define _GNU_SOURCE
#include "coll/multilane/libmpi_calls.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi.h"

#if __ELF_NATIVE_CLASS == 64
#define SYMBOL_OF(info) ELF64_R_SYM(info)
#else
#define SYMBOL_OF(info) ELF32_R_SYM(info)
#endif

/* A table of the linker's: each entry names a symbol, and the place of its address. */
struct entries {
    const ElfW(Rela) * first;
    size_t count;
};

/* libmpi, as it lies in memory. */
struct library {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *names;
    struct entries calls,
        others; /* a library built without a table of calls has them in the other */
    uintptr_t fixed_start, fixed_end; /* read-only since it was linked */
};

/* Most systems write the address into the entry, some leave the distance from the base. */
static const void *entry_address(const struct library *library, const ElfW(Dyn) * entry)
{
    uintptr_t at = entry->d_un.d_ptr;

    return (const void *) (at < library->base ? at + library->base : at);
}

static void entry_read(struct library *library, const ElfW(Dyn) * entry)
{
    switch (entry->d_tag) {
    case DT_SYMTAB:
        library->symbols = entry_address(library, entry);
        break;
    case DT_STRTAB:
        library->names = entry_address(library, entry);
        break;
    case DT_JMPREL:
        library->calls.first = entry_address(library, entry);
        break;
    case DT_PLTRELSZ:
        library->calls.count = entry->d_un.d_val / sizeof(ElfW(Rela));
        break;
    case DT_RELA:
        library->others.first = entry_address(library, entry);
        break;
    case DT_RELASZ:
        library->others.count = entry->d_un.d_val / sizeof(ElfW(Rela));
        break;
    }
}

static void fixed_find(struct library *library, const char *start)
{
    const ElfW(Ehdr) *header = (const void *) start;
    const ElfW(Phdr) *segments = (const void *) (start + header->e_phoff);

    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_GNU_RELRO) {
            library->fixed_start = library->base + segments[i].p_vaddr;
            library->fixed_end = library->fixed_start + segments[i].p_memsz;
        }
}

static bool library_find(struct library *library)
{
    void *address;
    void *map = NULL;
    Dl_info found;
    int (*function)(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm) = PMPI_Pack;

    *library = (struct library){.base = 0};
    memcpy(&address, &function, sizeof(address)); /* ISO C has no such conversion */
    if (!dladdr1(address, &found, &map, RTLD_DL_LINKMAP) || !map)
        return false;
    library->base = ((struct link_map *) map)->l_addr;
    for (const ElfW(Dyn) *entry = ((struct link_map *) map)->l_ld; entry->d_tag != DT_NULL; entry++)
        entry_read(library, entry);
    fixed_find(library, found.dli_fbase);
    return library->symbols && library->names;
}

/* The place of the function's address; null: there is none. */
static void *place_find(const struct library *library, const struct entries *entries,
                        const char *name)
{
    for (size_t i = 0; entries->first && i < entries->count; i++) {
        const ElfW(Rela) *entry = &entries->first[i];
        const ElfW(Sym) *symbol = &library->symbols[SYMBOL_OF(entry->r_info)];

        if (SYMBOL_OF(entry->r_info) && strcmp(library->names + symbol->st_name, name) == 0)
            return (void *) (library->base + entry->r_offset);
    }
    return NULL;
}

/* Release: what the function needs is there before it is called. */
static bool place_set(const struct library *library, void *place, void (*function)(void))
{
    uintptr_t at = (uintptr_t) place, page = at & ~((uintptr_t) getpagesize() - 1);
    bool is_fixed = at >= library->fixed_start && at < library->fixed_end;

    if (is_fixed && mprotect((void *) page, sizeof(void *), PROT_READ | PROT_WRITE) != 0)
        return false;
    atomic_store_explicit((_Atomic uintptr_t *) place, (uintptr_t) function, memory_order_release);
    if (is_fixed)
        (void) mprotect((void *) page, sizeof(void *), PROT_READ);
    return true;
}

bool libmpi_call_set(const char *name, void (*function)(void))
{
    struct library library;

    if (!library_find(&library))
        return false;
    void *place = place_find(&library, &library.calls, name);
    if (!place)
        place = place_find(&library, &library.others, name);
    return place && place_set(&library, place, function);
}
