# The kernels of connected-component labelling.
add_chain(ccl KERNELS imaging/generated/chain_kernels.h DESTINATION hltnode/processing/imaging)
