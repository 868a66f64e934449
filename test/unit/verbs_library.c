/* SPDX-License-Identifier: BSD-3-Clause */
/* Where btl/verbs opens libibverbs, and what it says of one that cannot be used. */
#include "check.h"

#include <infiniband/verbs.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "btl/verbs/library.h"

#define LIBRARY "libibverbs.so.1"

static char folder[] = "/tmp/multilane-verbs-library-XXXXXX";

/* The path of what lies in the folder by that name. */
static const char *in_folder(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void folder_make(const char *name)
{
    CHECK(mkdir(in_folder(name), 0755) == 0, "%s", name);
}

static void opens_nothing_without_a_device(void)
{
    setenv("SYSFS_PATH", folder, 1);
    CHECK(verbs_library_wanted(), "devices that cannot be seen may be there");
    folder_make("class");
    CHECK(!verbs_library_wanted(), "no driver of RDMA devices is loaded");
    folder_make("class/infiniband");
    CHECK(!verbs_library_wanted(), "a driver without a device");
    folder_make("class/infiniband/mlx5_0");
    CHECK(verbs_library_wanted(), "a device");
    rmdir(in_folder("class/infiniband/mlx5_0"));
    rmdir(in_folder("class/infiniband"));
}

/* Of a process that was started with the library below. */
static int refused(const char *sentence)
{
    struct error_text why = {""};

    CHECK(ibv_is_fork_initialized() == IBV_FORK_DISABLED, "asked before the library is open");
    CHECK(!verbs_library_open(&why), "it cannot be used");
    CHECK(strstr(why.text, sentence), "says \"%s\"", why.text);
    return check_end();
}

/* In a process that finds that file first. */
static void refuses(const char *program, const char *target, const char *sentence)
{
    pid_t child;
    int status = -1;

    CHECK(symlink(target, in_folder(LIBRARY)) == 0, "%s", target);
    child = fork();
    if (child == 0) {
        setenv("LD_LIBRARY_PATH", folder, 1);
        execl(program, program, sentence, (char *) NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
    unlink(in_folder(LIBRARY));
}

static void refuses_what_it_cannot_use(void)
{
    char program[PATH_MAX], other[PATH_MAX];

    CHECK(realpath("/proc/self/exe", program) && realpath("test/fake/libsock_faults.so", other),
          "run in the build folder");
    refuses(program, "/dev/null", LIBRARY ": ");
    refuses(program, other, "it has no ibv_get_device_list");
}

static void calls_the_library(void)
{
    struct error_text why = {""};
    int count = -1;

    if (!verbs_library_open(&why)) {
        CHECK(false, "%s", why.text);
        return;
    }
    struct ibv_device **devices = ibv_get_device_list(&count);
    CHECK(count >= 0, "%d devices", count);
    if (devices)
        ibv_free_device_list(devices);
    CHECK(strcmp(ibv_wc_status_str(IBV_WC_SUCCESS), "success") == 0, "its words");
    CHECK(verbs_library_wanted(), "it is there, device or not");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return refused(argv[1]);
    if (!mkdtemp(folder))
        return 1;
    opens_nothing_without_a_device();
    refuses_what_it_cannot_use();
    calls_the_library();
    rmdir(in_folder("class"));
    rmdir(folder);
    return check_end();
}
