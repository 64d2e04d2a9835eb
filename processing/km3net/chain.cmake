# The kernels of underwater neutrino telescopes.
add_chain(km3net KERNELS km3net/generated/chain_kernels.h DESTINATION hltnode/processing/km3net)
