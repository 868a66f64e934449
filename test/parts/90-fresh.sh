# SPDX-License-Identifier: BSD-3-Clause
# Part fresh: the two commands in a Debian 12 and a Debian 13 that have nothing but the base system.
about="the two commands in an empty Debian 12 and 13, as root and as a user with sudo (--long: every part)"
runs_beside=1

part_cannot_run() {
    [ -e "$top/.git" ] || { echo "this is not a git checkout to clone"; return; }
    command -v git >/dev/null || packages_need git >/dev/null ||
        { echo "git is not there and could not be installed"; return; }
    root_impossible
}

# Root folders inside a root folder, and this part inside itself, belong to the long run and nowhere.
every_part() {
    "$top/test/all" --list | cut -d ' ' -f 1 | grep -vx fresh | tr '\n' ' '
}

part_run() {
    if [ -n "$MULTILANE_LONG" ]; then
        local suite user
        for suite in bookworm trixie; do
            for user in root user; do
                fresh $suite $user "$(every_part)"
            done
        done
    else
        beside fresh bookworm root style
        beside fresh trixie user style
        wait
    fi
}

# fresh SUITE root|user PARTS: an empty root folder, a clone in it, the two commands.
fresh() {
    local name=fresh-$1 root=$roots/fresh-$1 label=$part.$1-$2 packages=
    [ "$2" = user ] && packages="sudo passwd"
    $sudo rm -f "$root/.multilane"
    check "$label.root" root_make "$name" "$1" "$packages" || return
    check "$label.clone" fresh_clone "$root" "$2" || return
    check "$label.demo" fresh_run "$name" "$2" 'test/demo'
    check "$label.all" fresh_run "$name" "$2" "test/all $3"
    $sudo rm -rf --one-file-system "$root"
}

fresh_clone() {
    local root=$1 clone=$build_root/clone-$(basename "$1")
    git -c safe.directory='*' clone --quiet --no-hardlinks "$top" "$clone" &&
        $sudo mkdir -p "$root/home/someone" &&
        $sudo mv "$clone" "$root/home/someone/multilane" || return 1
    [ "$2" = root ] && { $sudo chown -R 0:0 "$root/home/someone"; return; }
    root_run "$(basename "$root")" '
        useradd --home-dir /home/someone --shell /bin/bash someone
        echo "someone ALL=(ALL) NOPASSWD:ALL" >/etc/sudoers.d/someone
        chown -R someone: /home/someone'
}

fresh_run() {
    local command="cd /home/someone/multilane && CI=${CI:-} CFLAGS=-O0 $3" # the build takes less time
    if [ "$2" = user ]; then
        root_run "$1" "su someone -c '$command'"
    else
        root_run "$1" "$command"
    fi
}
