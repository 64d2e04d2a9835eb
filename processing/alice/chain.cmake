# The kernels of ALICE's TPC.
add_chain(alice_tpc KERNELS alice/generated/chain_kernels.h DESTINATION hltnode/processing/alice)
