# The kernels of a mu -> eee experiment.
add_chain(mu3e KERNELS mu3e/generated/chain_kernels.h DESTINATION hltnode/processing/mu3e)
