"""Which packages and files an installation has; pyproject.toml says everything else.

The notebooks read measured numbers. `results/` is their only copy in git, and an installation
carries it as `smelib/results`, so that a notebook needs neither a clone nor the network.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["smelib*"]), "smelib.results"],
    package_dir={"smelib.results": "results"},
    package_data={
        "smelib": ["py.typed", "**/*.css", "**/*.js", "**/*.mjs", "**/*.ttf", "**/OFL.txt"],
        "smelib.results": ["**/*.json", "**/*.csv"],
    },
)
