# SPDX-License-Identifier: BSD-3-Clause
# Builds one variant and runs its unit tests; sourced by the parts that do so.

# unit_tests VARIANT: as a variable for make; without the tests of sources and scripts, which run with
# gcc, or with --long.
unit_tests() {
    local tests='$(TESTS)'
    [ "$1" = gcc ] || [ -n "$MULTILANE_LONG" ] || tests='$(filter-out $(source_tests),$(TESTS))'
    printf 'include Makefile\nshow:\n\t@echo TESTS="%s"\n' "$tests" |
        make -s -C "$build_root/$1" -f - show
}

# unit_run VARIANT [configure's arguments]: one result for the build and one a program. False where
# it did not build.
unit_run() {
    local variant=$1 trs name outcome status good=1
    shift
    check "$part.build" unit_build "$variant" "$@" || return 1
    find "$build_root/$variant" -name '*.trs' -delete
    make -C "$build_root/$variant" -j"$jobs" -k check "$(unit_tests "$variant")" >"$logs/make-check.log" 2>&1 </dev/null
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
    if [ -n "$good" ] && [ $status != 0 ]; then
        result failed "$part.check" "make check ended early, with status $status; $logs/make-check.log:"
        tail -n 40 "$logs/make-check.log" | sed 's/^/        | /'
    fi
}

unit_build() {
    packages_need_to_build && sources_prepare && build_make "$@" --enable-werror
}
