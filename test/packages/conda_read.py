#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Renders conda's recipe as rattler-build does, with nothing downloaded: conda_read.py RECIPE [VERSION]."""

import sys

import rattler_build


def main():
    recipe = rattler_build.Stage0Recipe.from_file(sys.argv[1])
    platform = rattler_build.PlatformConfig(target_platform="linux-64")
    variants = rattler_build.VariantConfig.from_yaml("c_stdlib: [sysroot]\nc_compiler: [gcc]\n")
    rendered = recipe.render(variants, render_config=rattler_build.RenderConfig(platform=platform))
    assert len(rendered) == 1, rendered
    made = rendered[0].recipe
    print(made.package.name, made.package.version)
    requirements = made.to_dict()["requirements"]
    print(requirements)
    if str(made.package.version) != sys.argv[2]:
        sys.exit(f"the recipe is of {made.package.version}, not of {sys.argv[2]}")
    if not any("openmpi >=" in str(need) for need in requirements["run"]):
        sys.exit("the package needs no Open MPI")


if __name__ == "__main__":
    main()
