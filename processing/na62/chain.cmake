# The kernels of NA62's RICH.
add_chain(na62_rich KERNELS na62/generated/chain_kernels.h DESTINATION hltnode/processing/na62)
