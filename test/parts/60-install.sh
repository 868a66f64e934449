# SPDX-License-Identifier: BSD-3-Clause
# Part install: a real installation into the component folder of each Open MPI, and its removal.
about="installing changes nothing but what is named, on each series; uninstalling leaves nothing"
runs_beside=1

. "$top/test/parts/mpi-series.sh"
. "$top/test/unit/run.sh"

part_cannot_run() {
    root_impossible
}

part_run() {
    check install.ready unit_build gcc || return
    for series in 4.1 5.0 6.0; do
        beside locked "root-$(suite_of_series "$series")" install_series
    done
    wait
}

install_series() {
    local suite root
    suite=$(suite_of_series "$series")
    root=$roots/$suite
    check "$part.$series.root" root_make "$suite" "$suite" "$(series_packages)" || return
    $sudo mkdir -p "$root/build-install"
    $sudo rm -rf "$root"/build-install/{results{,.end,.log},foreign-build}
    # What was built for this machine's own series is foreign to the others.
    [ "$series" = "$(native_series)" ] ||
        $sudo cp -r "$build_root/gcc/inst/components" "$root/build-install/foreign-build"
    root_run "$suite" "export results=/build-install/results; : >\$results
        export MULTILANE_FOREIGN=/build-install/foreign-build
        /multilane/test/install-check '$part.$series.'"
    results_take "$part.$series.end" "$root/build-install/results"
}
