# SPDX-License-Identifier: BSD-3-Clause
# Part style: layout of the code and the rules that a program can check.
about="layout of the code (clang-format 14) and rules that a program can check"

part_run() {
    packages_need git python3 || :
    check style.rules python3 "$top/test/style.py" --rules
    check style.layers python3 "$top/test/layers.py"
    check style.ledger python3 "$top/test/ledger.py"
    local format
    format=$(command -v clang-format-14 || command -v clang-format ||
        { ! candidate_is_other && packages_need clang-format >/dev/null && command -v clang-format; })
    # Other versions lay out some lines otherwise; one of them has to be the measure.
    if [ -z "$format" ] || ! "$format" --version | grep -q 'version 14\.'; then
        skip style.format "clang-format 14 (Debian 12's) is not there"
    else
        check style.format python3 "$top/test/style.py" --format "$format"
    fi
}

# This Debian has another version, which would be installed for nothing.
candidate_is_other() {
    apt-cache policy clang-format 2>/dev/null | grep 'Candidate: .*[0-9]' | grep -v ':14\.'
} >/dev/null
