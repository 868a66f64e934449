/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads files, and puts new ones in the place of old ones. */
#include "common/file/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char *whole_file_input_name(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

static int kind_open(const char *path, enum whole_file_kind kind)
{
    const int how = O_RDONLY | O_CLOEXEC | O_NOCTTY;
    if (kind != WHOLE_FILE_INPUT)
        return open(path, how | O_NONBLOCK);
    return strcmp(path, "-") ? open(path, how) : dup(STDIN_FILENO);
}

/* Up to its end, so many at most. Null and errno. */
static char *bytes_read(int fd, size_t most_bytes, size_t *length)
{
    char *bytes = calloc(1, most_bytes + 1);
    ssize_t got = 1;
    *length = 0;
    while (bytes && got != 0) {
        got = read(fd, bytes + *length, most_bytes - *length);
        if (got < 0 && errno != EINTR) {
            free(bytes);
            return NULL;
        }
        *length += got > 0 ? (size_t) got : 0;
    }
    return bytes;
}

char *whole_file_read(const char *path, size_t most_bytes, enum whole_file_kind kind,
                      size_t *length, bool *is_absent, struct error_text *error)
{
    struct stat status;
    char *bytes = NULL;
    bool is_good = false;
    int fd = kind_open(path, kind);
    if (is_absent)
        *is_absent = fd < 0 && (errno == ENOENT || errno == ENOTDIR);
    bool is_file = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    bool is_short = is_file && (size_t) status.st_size <= most_bytes;
    size_t room = is_short ? (size_t) status.st_size : most_bytes + 1;
    path = whole_file_input_name(path);
    if (fd >= 0 && !is_file && kind != WHOLE_FILE_INPUT)
        fail_with(error, "%.120s: it is not a file", path);
    else if (is_file && kind == WHOLE_FILE_OWN && status.st_uid != geteuid())
        fail_with(error, "%.120s: it is another user's", path);
    else if (fd < 0 || !(bytes = bytes_read(fd, room, length)))
        fail_with(error, "%.120s: cannot be read: %s", path, strerror(errno));
    else
        is_good = *length <= most_bytes ||
                  fail_with(error, "%.120s: it is larger than %zu bytes", path, most_bytes);
    if (fd >= 0)
        close(fd);
    if (is_good)
        return bytes;
    free(bytes);
    return NULL;
}

/* In the user's own cache others have nothing to look for (XDG Base Directory Specification). */
static mode_t folder_mode(const char *folder)
{
    const char *const own[] = {getenv("XDG_CACHE_HOME"), getenv("HOME")};
    for (int i = 0; i < 2; i++) {
        size_t length = own[i] && own[i][0] == '/' ? strlen(own[i]) : 0;
        while (length > 0 && own[i][length - 1] == '/')
            length--;
        if (length > 0 && strncmp(folder, own[i], length) == 0 &&
            (folder[length] == '/' || folder[length] == '\0'))
            return 0700;
    }
    return 0777;
}

/* Makes the folders in which `path` is. */
static bool folders_make(const char *path, struct error_text *error)
{
    char folder[WHOLE_FILE_PATH_CHARS];
    snprintf(folder, sizeof(folder), "%s", path);
    for (char *at = strchr(folder + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(folder, folder_mode(folder)) != 0 && errno != EEXIST)
            return fail_with(error, "%.120s: the folder cannot be made: %s", folder,
                             strerror(errno));
        *at = '/';
    }
    return true;
}

bool whole_file_begin(struct whole_file *file, const char *path, mode_t mode,
                      struct error_text *error)
{
    struct timespec now;
    if (!folders_make(path, error))
        return false;
    /* Not mkstemp, which makes it for its owner alone, whatever the umask allows. */
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(file->name, sizeof(file->name), "%.*s.%d.%lx", WHOLE_FILE_PATH_CHARS - 1, path,
             (int) getpid(), (unsigned long) now.tv_nsec);
    file->path = path;
    int fd = open(file->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return fail_with(error, "%.120s: cannot be written: %s", path, strerror(errno));
    file->out = fdopen(fd, "w");
    if (file->out)
        return true;
    close(fd);
    unlink(file->name);
    return fail_with(error, "%.120s: no memory to write it", path);
}

void whole_file_drop(struct whole_file *file)
{
    fclose(file->out);
    unlink(file->name);
}

bool whole_file_end(struct whole_file *file, struct error_text *error)
{
    bool is_written = !ferror(file->out);
    is_written = fclose(file->out) == 0 && is_written;
    if (is_written && rename(file->name, file->path) == 0)
        return true;
    int why = errno;
    unlink(file->name);
    return fail_with(error, "%.120s: cannot be written: %s", file->path, strerror(why));
}
