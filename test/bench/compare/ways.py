# SPDX-License-Identifier: BSD-3-Clause
"""The MPIs of a machine, and the ways a message can take in them: how to build for and start each."""

import os
import re
import shlex
import shutil
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SOURCES = [os.path.join(TOP, "test", "bench", name) for name in (
    "part.c", "oneway.c", "stream.c", "patterns.c", "matching.c", "memory.c", "onesided.c",
    "collective.c", "calls.c", "silent.c")]
# Libraries that a kind of part is run with.
PRELOADS = {kind: os.path.join(TOP, "test", "bench", f"{kind}_preload.c")
            for kind in ("calls", "silent")}
PROBE = os.path.join(TOP, "test", "bench", "line_probe.c")
# BTLs that are Multilane's, which ob1 can use too; a way that names one needs our components.
OUR_BTLS = {"shm", "verbs", "cuda"}
KNOWN_PMLS = ("multilane", "ob1", "cm")


class Problem(Exception):
    """What went wrong, in one sentence for the person who started us."""


def environment_of_root():
    """Open MPI's launcher wants to be told twice that root means it."""
    if os.geteuid() != 0:
        return {}
    return {f"{word}_ALLOW_RUN_AS_ROOT{end}": "1"
            for word in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}


def output_of(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, **environment_of_root()}).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def newer(target, sources):
    return os.path.exists(target) and all(os.path.getmtime(target) > os.path.getmtime(source)
                                          for source in sources)


def probe_build(folder):
    """Builds the program that times a bare cache line; says where it is."""
    target = os.path.join(folder, "programs", "line_probe")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if not newer(target, [PROBE]):
        done = subprocess.run(["cc", "-std=gnu11", "-O2", PROBE, "-o", target],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Problem(f"cc cannot build {PROBE}: {done.stderr.strip()[-500:]}")
    return target


class Installation:
    """One MPI: its compiler wrapper, its launcher, its version; in a root folder or in this one."""

    def __init__(self, name, mpicc, launcher, root=None):
        self.name, self.mpicc, self.launcher, self.root = name, mpicc, launcher, root
        said = output_of(self.inside([launcher, "--version"]))
        found = re.search(r"(?:Open MPI|OpenRTE|Open RTE)\)? v?(\d+\.\d+\.\d+\w*)", said)
        self.is_openmpi = found is not None
        if found is None:
            found = re.search(r"Version:\s+(\d+\.\d+(\.\d+)?)", said)
        if found is None:
            raise Problem(f"{launcher} does not say which MPI it is of (--version).")
        self.version = found.group(1)
        self.series = tuple(int(word) for word in self.version.split(".")[:2])
        self.shared_memory_btl = "vader" if self.series < (5, 0) else "sm"
        self.components = None
        self.search_path = {}  # what else tells its jobs where components are
        self.ring_bench = None  # the program, where Multilane was built for this MPI
        self.binds = []

    @property
    def label(self):
        return f"{'Open MPI' if self.is_openmpi else 'MPICH'} {self.version}"

    def inside(self, command, binds=()):
        """The command as it has to be called for this root folder."""
        if self.root is None:
            return list(command)
        mounts = "; ".join(f"mkdir -p {shlex.quote(self.root + path)}; mount --rbind "
                           f"{shlex.quote(path)} {shlex.quote(self.root + path)}"
                           for path in ["/proc", "/sys", "/dev", *binds])
        script = f'{mounts}; exec chroot {shlex.quote(self.root)} "$@"'
        return ["unshare", "-m", "sh", "-c", script, "sh", *command]

    def has_pml(self, name):
        said = output_of(self.inside(["ompi_info", "--parsable"]))
        return f"mca:pml:{name}:" in said

    def build(self, folder):
        """Builds the programs for this MPI, unless they are there already; says where they are."""
        self.binds = [TOP, folder]
        place = os.path.join(folder, "programs", self.name)
        os.makedirs(place, exist_ok=True)
        program = os.path.join(place, "bench")
        preloads = {kind: os.path.join(place, f"{kind}_preload.so") for kind in PRELOADS}
        part_h = os.path.join(TOP, "test", "bench", "part.h")
        flags = ["-std=gnu11", "-O2"]
        for target, command, sources in (
                (program, [self.mpicc, *flags, *SOURCES, "-o", program, "-ldl"], SOURCES + [part_h]),
                *((preloads[kind],
                   ["cc", *flags, "-shared", "-fPIC", source, "-o", preloads[kind]], [source])
                  for kind, source in PRELOADS.items())):
            if newer(target, sources):
                continue
            done = subprocess.run(self.inside(command, self.binds), capture_output=True, text=True,
                                  check=False)
            if done.returncode != 0:
                raise Problem(f"{shlex.join(command)} failed: {done.stderr.strip()[-500:]}")
        return program, preloads


class Way:
    """One way a message can take: an MPI with the choice of its layers."""

    def __init__(self, text, installation, pml=None, btls=()):
        self.name, self.mpi, self.pml, self.btls = text, installation, pml, tuple(btls)
        self.cores = ()  # which the ranks are bound to, one each; none: Open MPI chooses

    @property
    def is_ours(self):
        return self.pml == "multilane" or bool(OUR_BTLS.intersection(self.btls))

    def choice(self):
        """The launcher's arguments that choose this way."""
        if not self.mpi.is_openmpi:
            return []
        if self.pml == "ucx":
            return ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any",
                    "--mca", "pml_ucx_devices", "any"]
        return ["--mca", "pml", self.pml, "--mca", "btl", ",".join(("self",) + self.btls)]

    def placement(self, ranks, cores):
        if self.cores and self.mpi.is_openmpi:
            chosen = ",".join(map(str, self.cores))
            return (["--cpu-list", chosen, "--bind-to", "cpu-list:ordered"] if self.mpi.series < (5, 0)
                    else ["--map-by", f"pe-list={chosen}:ordered"])
        if not self.mpi.is_openmpi:
            return ["-bind-to", "core"] if ranks <= cores else []
        if ranks <= cores:
            return ["--map-by", "core", "--bind-to", "core"]
        if self.mpi.series < (5, 0):
            return ["--oversubscribe", "--bind-to", "none"]
        return ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]

    def preloaded(self, library):
        return ["-x", f"LD_PRELOAD={library}"] if self.mpi.is_openmpi \
            else ["-genv", "LD_PRELOAD", library]

    def environment(self):
        env = dict(os.environ, OMPI_MCA_btl_base_warn_component_unused="0", UCX_LOG_LEVEL="fatal")
        env.update(environment_of_root())
        if self.is_ours and self.mpi.components is not None:
            env.update(self.mpi.search_path)
            env["OMPI_MCA_mca_base_component_path"] = \
                f"{self.mpi.components}:SYS_DEFAULT:USER_DEFAULT"
        return env

    def command(self, ranks, cores, program, extra=()):
        line = [self.mpi.launcher, "-n", str(ranks), *self.placement(ranks, cores), *self.choice(),
                *extra, *program]
        binds = list(self.mpi.binds)
        if self.mpi.components is not None:
            binds.append(self.mpi.components)
        return self.mpi.inside(line, binds)


def installations_find(asked, built):
    """The MPIs of this machine, that of the build for its own Open MPI, and those asked for as
    NAME=PREFIX or NAME=root:FOLDER."""
    found = {}

    def add(name, mpicc, launcher, root=None):
        found[name] = Installation(name, mpicc, launcher, root)

    launcher = built.get("mpirun") or shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    mpicc = built.get("mpicc") or shutil.which("mpicc.openmpi") or shutil.which("mpicc")
    if launcher and mpicc:
        add("ompi", mpicc, launcher)
    if shutil.which("mpicc.mpich") and shutil.which("mpirun.mpich"):
        add("mpich", shutil.which("mpicc.mpich"), shutil.which("mpirun.mpich"))
    for text in asked:
        name, equals, place = text.partition("=")
        if not equals or not name.isalnum():
            raise Problem(f'--mpi "{text}" is not NAME=PREFIX or NAME=root:FOLDER.')
        if place.startswith("root:"):
            add(name, "mpicc", "mpirun", place[5:].rstrip("/"))
        else:
            add(name, os.path.join(place, "bin", "mpicc"), os.path.join(place, "bin", "mpirun"))
    if not found:
        raise Problem("no MPI was found: neither mpicc and mpirun nor mpicc.mpich and mpirun.mpich "
                      "are on PATH.")
    return found


def way_parse(text, installations):
    """PML+BTL[+BTL], ucx or mpich, after NAME: for another MPI than the machine's own."""
    name, colon, rest = text.partition(":")
    if not colon:
        name, rest = ("mpich" if text == "mpich" else "ompi"), text
    if name not in installations:
        raise Problem(f'way "{text}": there is no MPI "{name}" here; there are: '
                      f'{", ".join(installations)}.')
    mpi = installations[name]
    if not mpi.is_openmpi:
        return Way(text, mpi)
    words = rest.split("+")
    if words == ["ucx"]:
        return Way(text, mpi, "ucx")
    if words[0] not in KNOWN_PMLS or len(words) < 2 or not all(words):
        raise Problem(f'way "{text}" is neither PML+BTL[+BTL] (PML: {", ".join(KNOWN_PMLS)}), '
                      "nor ucx, nor mpich.")
    return Way(text, mpi, words[0], words[1:])


def ways_default(installations):
    """Multilane as a product, and all that could be used in its place."""
    names = []
    for name, mpi in installations.items():
        prefix = "" if name == "ompi" else f"{name}:"
        if not mpi.is_openmpi:
            names.append("mpich" if name == "mpich" else f"{name}:mpich")
            continue
        names += [f"{prefix}multilane+shm", f"{prefix}ob1+{mpi.shared_memory_btl}"]
        if mpi.has_pml("ucx"):
            names.append(f"{prefix}ucx")
    return names
