"""Prints the folder from which CMake's find_package(hltnode) builds chains of other packages.

python -m hltnode.processing.framework.cmake_dir
"""

from pathlib import Path

CMAKE_DIR = Path(__file__).resolve().parent / "cmake"
"""The folder of hltnode-config.cmake."""

if __name__ == "__main__":
    print(CMAKE_DIR)
