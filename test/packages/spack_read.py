#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads Spack's recipes as Spack would, over stand-ins for its modules, and asks them for their arguments.

spack_read.py FOLDER-OF-RECIPES CONFIGURE: each argument must be one that this configure knows."""

import importlib.util
import os
import re
import sys
import tempfile
import types

DIRECTIVES = ("license", "version", "variant", "depends_on", "resource", "conflicts", "maintainers")
declared = []


class Prefix(str):
    """A folder whose attributes are its subfolders."""

    def __getattr__(self, name):
        return Prefix(os.path.join(self, name))


class Spec(dict):
    """Dependencies by name, and a set of variants."""

    def __init__(self, dependencies, variants):
        super().__init__(dependencies)
        self.variants = variants

    def __contains__(self, variant):
        return variant in self.variants


class AutotoolsPackage:
    """What the recipes inherit."""

    def configure_args(self):
        return ["--from-builtin"]


def module(name, **members):
    made = types.ModuleType(name)
    made.__path__ = []
    vars(made).update(members)
    sys.modules[name] = made


def stand_ins():
    def directive(name):
        return lambda *args, **kwargs: declared.append((name, args, kwargs))

    for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems",
                 "spack_repo.builtin.packages", "spack_repo.builtin.packages.openmpi"):
        module(name)
    module("spack.package", **{name: directive(name) for name in DIRECTIVES})
    module("spack_repo.builtin.build_systems.autotools", AutotoolsPackage=AutotoolsPackage)
    module("spack_repo.builtin.packages.openmpi.package", Openmpi=AutotoolsPackage)


def recipe(folder, name):
    where = os.path.join(folder, "packages", name, "package.py")
    spec = importlib.util.spec_from_file_location(name, where)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return getattr(loaded, name.capitalize())()


def main():
    folder, configure = sys.argv[1:]
    with open(configure, encoding="utf-8") as file:
        known = set(re.findall(r"--with(?:out)?-([\w-]+)", file.read()))
    stand_ins()
    openmpi = recipe(folder, "openmpi")
    openmpi.spec = Spec({}, {"+devel_headers"})
    assert openmpi.configure_args() == ["--from-builtin", "--with-devel-headers"]
    openmpi.spec = Spec({}, set())
    assert openmpi.configure_args() == ["--from-builtin"]

    declared.clear()
    package = recipe(folder, "multilane")
    kinds = {kind for kind, _, _ in declared}
    assert {"version", "variant", "depends_on", "resource"} <= kinds, kinds
    with tempfile.TemporaryDirectory() as prefix:
        kept = os.path.join(prefix, ".spack", "archived-files", "spack-src")
        os.makedirs(kept)
        package.prefix = Prefix("/inst")
        package.stage = types.SimpleNamespace(source_path="/stage/spack-src")
        package.spec = Spec({name: types.SimpleNamespace(prefix=Prefix(prefix)) for name in
                             ("openmpi", "rdma-core")}, {"+verbs"})
        plain = package.configure_args()
        with open(os.path.join(kept, "config.log"), "w", encoding="utf-8"):
            pass
        logged = package.configure_args()
        os.makedirs(os.path.join(prefix, "include", "openmpi"))
        with open(os.path.join(prefix, "include", "openmpi", "opal_config.h"), "w", encoding="utf-8"):
            pass
        whole = package.configure_args()
        assert set(logged) - set(plain) == {f"--with-ompi-config-log={kept}/config.log"}
        assert set(plain) - set(whole) == {"--with-ompi-headers=/stage/spack-src/openmpi-release"}
    package.spec = Spec(package.spec, set())
    for argument in plain + logged + whole + package.configure_args():
        name = re.match(r"--with(?:out)?-([\w-]+)", argument).group(1)
        assert name in known, f"configure has no {argument}"
    package.setup_run_environment(types.SimpleNamespace(set=lambda name, value: print(f"{name}={value}")))


if __name__ == "__main__":
    main()
