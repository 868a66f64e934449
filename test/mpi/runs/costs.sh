# SPDX-License-Identifier: BSD-3-Clause
# Alone: how often a wait looks, and so calls, depends on time.
# A gate against getting slower, by counts: instructions, system calls, copied bytes, mappings.
costs_counted() {
    packages_need valgrind strace && "$top/test/mpi/costs.py" "$build"
}

# A count above its limit is named, with both numbers and what to do; so is one without a limit.
costs_refused() { # sed's script for what was counted, what is said
    local said
    sed "$1" "$build/costs.txt" >"$build/costs.changed"
    said=$("$top/test/mpi/costs.py" --compare "$build/costs.changed" "$top/test/mpi/costs.txt") && return 1
    printf '%s\n' "$said"
    grep -Eq "$2" <<<"$said"
}

if [ "$series" != 4.1 ] || [ -n "$sanitizer" ] || [ "$(uname -m)" != x86_64 ]; then
    skip "${prefix}costs" "the limits are those of 4.1 on x86-64 without a sanitizer"
elif check "${prefix}costs.counted" costs_counted; then
    check "${prefix}costs.above" costs_refused 's/^shm-send-instructions .*/shm-send-instructions 9999/' \
        '^FAIL shm-send-instructions: 9999, and was [0-9]+: .*--write'
    check "${prefix}costs.copies" costs_refused 's/^tcp-copied-bytes .*/tcp-copied-bytes 1/' \
        '^FAIL tcp-copied-bytes: 1, and was 0'
    check "${prefix}costs.forgotten" costs_refused '/^tcp-contact/d' '^FAIL tcp-contact-system-calls: is counted and'
fi
