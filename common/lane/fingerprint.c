/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes and compares fingerprints of machines. */
#include "common/lane/fingerprint.h"

#include "config.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/sum/fnv.h"

/* One line that a lane file can hold as a value: its comment sign and control characters become
 * blanks, which do not stand at the ends. */
static void text_set(char *out, const char *text)
{
    size_t length = 0;
    for (; *text && *text != '\n' && length + 1 < FINGERPRINT_CHARS; text++) {
        unsigned char c = (unsigned char) *text;
        bool is_blank = c <= ' ' || c == '#' || c == 0x7f;
        if (!is_blank || length)
            out[length++] = is_blank ? ' ' : (char) c;
    }
    while (length && out[length - 1] == ' ')
        length--;
    out[length] = '\0';
    if (!length)
        snprintf(out, FINGERPRINT_CHARS, "unknown");
}

/* Processors call themselves by different keys. The value of such a line, or null. */
static const char *processor_value(const char *line)
{
    static const char *const keys[] = {"model name", "cpu model", "Processor", "cpu"};
    const char *colon = strchr(line, ':');
    for (size_t i = 0; colon && i < sizeof(keys) / sizeof(keys[0]); i++) {
        size_t length = strlen(keys[i]);
        if (strncmp(line, keys[i], length) == 0 &&
            strspn(line + length, " \t") == (size_t) (colon - line) - length)
            return colon + 1;
    }
    return NULL;
}

static void processor_take(char *out)
{
    char line[512];
    const char *value = NULL;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (!value && file && fgets(line, sizeof(line), file))
        value = processor_value(line);
    text_set(out, value ? value : "");
    if (file)
        fclose(file);
}

void fingerprint_take(const char *open_mpi, struct fingerprint *out)
{
    struct utsname system;
    memset(out, 0, sizeof(*out));
    processor_take(out->processor);
    snprintf(out->processors, sizeof(out->processors), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    text_set(out->kernel, uname(&system) == 0 ? system.release : "");
    text_set(out->open_mpi, open_mpi);
    text_set(out->multilane, PACKAGE_VERSION);
}

static const struct {
    const char *name;
    size_t offset;
} fields[] = {
    {"processor", offsetof(struct fingerprint, processor)},
    {"number of processors", offsetof(struct fingerprint, processors)},
    {"kernel", offsetof(struct fingerprint, kernel)},
    {"Open MPI", offsetof(struct fingerprint, open_mpi)},
    {"Multilane", offsetof(struct fingerprint, multilane)},
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static const char *field_of(const struct fingerprint *fingerprint, size_t i)
{
    return (const char *) fingerprint + fields[i].offset;
}

bool fingerprint_matches(const struct fingerprint *of_file, const struct fingerprint *here,
                         struct error_text *error)
{
    for (size_t i = 0; i < FIELDS; i++) {
        const char *theirs = field_of(of_file, i), *ours = field_of(here, i);
        if (strcmp(theirs, ours) != 0)
            return fail_with(error,
                             "it was measured on another machine: its %s is \"%.60s\", this "
                             "one's \"%.60s\"",
                             fields[i].name, theirs, ours);
    }
    return true;
}

/* Over the texts, each with the 0 at its end. */
uint64_t fingerprint_number(const struct fingerprint *fingerprint)
{
    uint64_t number = FNV_BEGIN;
    for (size_t i = 0; i < FIELDS; i++) {
        const char *text = field_of(fingerprint, i);
        number = fnv(number, text, strlen(text) + 1);
    }
    return number;
}
