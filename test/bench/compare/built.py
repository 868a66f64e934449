# SPDX-License-Identifier: BSD-3-Clause
"""A folder where Multilane was built: what configure found, and the environment of its jobs."""

import os
import shlex
import subprocess
import sys

from .ways import environment_of_root


def env_file(build):
    return os.path.join(build, "test", "build-env")


def build_env(build):
    """What configure found, by name; without it the program ends with a sentence."""
    try:
        with open(env_file(build), encoding="utf-8") as file:
            pairs = [line.rstrip("\n").split("=", 1) for line in file
                     if "=" in line and not line.startswith("#")]
    except OSError as error:
        sys.exit(f"test/bench/{os.path.basename(sys.argv[0])}: {error}; --build names a folder "
                 "where configure was run")
    return {name: "".join(shlex.split(value)) for name, value in pairs}


def program(build, *place):
    """The path of a program that `make check` builds there; where it is missing the end, with a sentence."""
    path = os.path.join(os.path.abspath(build), "test", *place)
    if not os.access(path, os.X_OK):
        sys.exit(f"test/bench/{os.path.basename(sys.argv[0])}: {path} is not there; run: make -C {build} check "
                 "TESTS=")
    return path


def search_path(build):
    """Where jobs look for components, as tools/env.sh of that build tells them: by name of variable,
    Open MPI's and, where they need telling apart, PMIx's."""
    script = shlex.quote(os.path.join(os.path.abspath(build), "tools", "env.sh"))
    said = subprocess.run(["env", "-u", "OMPI_MCA_mca_base_component_path", "sh", "-c", f". {script} && env -0"], capture_output=True, text=True,
                          check=True).stdout
    pairs = [item.split("=", 1) for item in said.split("\0") if "=" in item]
    return {name: value for name, value in pairs if name.endswith("_MCA_mca_base_component_path")}


def environment(build):
    """Jobs take the components of that build, and start for root as well."""
    return dict(os.environ, OMPI_MCA_btl_base_warn_component_unused="0", UCX_LOG_LEVEL="fatal",
                **environment_of_root(), **search_path(build))
