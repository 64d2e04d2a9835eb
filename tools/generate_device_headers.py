"""Write the C++ headers that follow from the declarations of algorithms, for every chain of this tree.

python -m tools.generate_device_headers            write the generated/*.h files beside the declarations
python -m tools.generate_device_headers --check    exit with 1 if a header differs from the declarations

A header is removed only from the folder of a chain, and only if no chain of this tree declares it.
"""

import argparse
import sys

from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.device_headers import DeviceHeaders
from tools.chains_of_this_tree import chains_of_this_tree


def main() -> int:
    """Write or check the headers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    headers = DeviceHeaders.of(list(chains_of_this_tree().values()), [PROCESSING])
    return headers.report() if check else headers.write()


if __name__ == "__main__":
    sys.exit(main())
