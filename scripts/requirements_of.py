"""Prints the requirements of an installed distribution for this machine, without the named ones.

    python scripts/requirements_of.py DISTRIBUTION LEFT_OUT…
"""
import sys
from importlib.metadata import requires

from pip._vendor.packaging.requirements import Requirement

distribution, *left_out = sys.argv[1:]
for line in requires(distribution) or []:
    requirement = Requirement(line)
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        continue
    if requirement.name not in left_out:
        requirement.marker = None
        print(requirement)
