# The kernels of the chain for boards without detector code.
add_chain(raw KERNELS raw/generated/chain_kernels.h DESTINATION hltnode/processing/raw)
