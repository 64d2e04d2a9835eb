# The kernels of LHCb, and the loops of its simulation that Python makes slow.
add_chain(lhcb KERNELS lhcb/generated/chain_kernels.h DESTINATION hltnode/processing/lhcb
          NATIVE processing/lhcb/offline/simulation/native.cpp
          NATIVE_DESTINATION hltnode/processing/lhcb/offline/simulation)
