# SPDX-License-Identifier: BSD-3-Clause
# Builds one variant and runs its unit tests; sourced by the parts that do so.

# make_show VARIANT EXPRESSION...: what make finds in each, one a line.
make_show() {
    local dir=$build_root/$1
    shift
    { printf 'include Makefile\nshow:\n'; printf '\t@echo "%s"\n' "$@"; } | make -s -C "$dir" -f - show
}

# unit_variables VARIANT: TESTS and check_PROGRAMS as variables for make, one a line: without the tests of
# sources and scripts, which run with gcc, or with --long. ThreadSanitizer finds nothing where there is one
# thread: unit tests whose sources start none are not even built for it.
unit_variables() {
    local tests='$(TESTS)' programs='$(check_PROGRAMS)' threads
    if [ "$1" = tsan ] && [ -z "$MULTILANE_LONG" ]; then
        threads=$(cd "$top" && grep -l pthread_create test/unit/*.c | sed 's/\.c$//' | tr '\n' ' ')
        tests="\$(filter $threads,\$(TESTS))"
        programs="\$(filter-out test/unit/%,\$(check_PROGRAMS)) \$(filter $threads,\$(check_PROGRAMS))"
    elif [ "$1" != gcc ] && [ -z "$MULTILANE_LONG" ]; then
        tests='$(filter-out $(source_tests),$(TESTS))'
    fi
    if [ -n "${MULTILANE_ONLY:-}" ]; then
        tests=$(make_show "$1" "$tests" | tr ' ' '\n' | while read -r name; do
            is_wanted "$part.$(basename "$name")" && printf '%s ' "$name"; done)
        [ -z "$tests" ] || programs=$tests # none: it may be one of the part's MPI tests
    fi
    make_show "$1" "TESTS=$tests" "check_PROGRAMS=$programs"
}

# unit_run VARIANT [configure's arguments]: one result for the build and one a program. False where
# it did not build.
unit_run() {
    local variant=$1 variables trs name= outcome status good=1
    shift
    check "$part.build" unit_build "$variant" "$@" || return 1
    find "$build_root/$variant" -name '*.trs' -delete
    mapfile -t variables < <(unit_variables "$variant")
    make -C "$build_root/$variant" -j"$jobs" -k check "${variables[@]}" >"$logs/make-check.log" 2>&1 </dev/null
    status=$?
    while IFS= read -r trs; do
        name=${trs#"$build_root/$variant/"}
        name=$part.$(basename "${name%.trs}")
        outcome=$(sed -n 's/^:test-result: //p' "$trs" | head -n 1)
        case $outcome in
        PASS*) result passed "$name" ;;
        SKIP*) skip "$name" "$(grep -v '^SKIP ' "${trs%.trs}.log" | tail -n 1)" ;;
        *)
            good=
            result failed "$name" "$outcome; the end of ${trs%.trs}.log:"
            tail -n 40 "${trs%.trs}.log" | sed 's/^/        | /'
            ;;
        esac
    done < <(find "$build_root/$variant" -name '*.trs' | sort)
    if [ -z "$name${MULTILANE_ONLY:-}" ]; then
        result failed "$part.check" "no test ran; $logs/make-check.log:"
        tail -n 40 "$logs/make-check.log" | sed 's/^/        | /'
    elif [ -n "$good" ] && [ $status != 0 ]; then
        result failed "$part.check" "make check ended early, with status $status; $logs/make-check.log:"
        tail -n 40 "$logs/make-check.log" | sed 's/^/        | /'
    fi
}

# unit_build VARIANT [configure's arguments]. Once in a run of test/all: others use what it has installed.
unit_build() {
    locked "$1" unit_build_locked "$@"
}
unit_build_locked() {
    local stamp=$build_root/$1.built
    [ "$(cat "$stamp" 2>/dev/null)" != "${MULTILANE_RUN:-none} $*" ] || return 0
    rm -f "$stamp"
    packages_need_to_build && sources_prepare && build_make "$@" --enable-werror &&
        printf '%s %s\n' "${MULTILANE_RUN:-}" "$*" >"$stamp"
}

# The same, and the programs of unit_run, unless the part has begun.
unit_build_ahead() {
    locked "$1" unit_build_ahead_locked "$@"
}
unit_build_ahead_locked() {
    local variables
    [ ! -e "$results.$part" ] && unit_build_locked "$@" || return
    mapfile -t variables < <(unit_variables "$1")
    make -C "$build_root/$1" -j"$jobs" -k check "${variables[@]}" TESTS=
}
