# Builds the chain of a detector. hltnode's own CMakeLists.txt uses this file, and so does the package of another
# experiment (docs/how-to/add-a-chain.md):
#
#   find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
#   execute_process(COMMAND "${Python_EXECUTABLE}" -m hltnode.processing.framework.cmake_dir
#                   OUTPUT_VARIABLE hltnode_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
#   find_package(hltnode CONFIG REQUIRED)
#   add_chain(tiles KERNELS tiles/generated/chain_kernels.h INCLUDES . DESTINATION tiles)
include(CMakeFindDependencyMacro)
find_dependency(Python 3.11 COMPONENTS Interpreter Development.Module)

# add_chain(<name> KERNELS <header> DESTINATION <folder> [INCLUDES <folder>...]
#           [NATIVE <source>... [NATIVE_DESTINATION <folder>]])
#
# Builds the module _chain_kernels, which holds the kernels of a chain for every instruction set, and installs it.
# KERNELS: the generated list of the kernels, as it is included. DESTINATION: where the package of the chain lies in the
# wheel. INCLUDES: where includes start, besides hltnode's own; the same folders as in the chain's KernelSources.
# NATIVE: sources of a nanobind module _native, installed in NATIVE_DESTINATION or else in DESTINATION.
function(add_chain name)
  cmake_parse_arguments(PARSE_ARGV 1 chain "" "KERNELS;DESTINATION;NATIVE_DESTINATION" "INCLUDES;NATIVE")
  if(NOT chain_KERNELS OR NOT chain_DESTINATION OR chain_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "add_chain(${name}): expected KERNELS <header> DESTINATION <folder>, got: ${ARGN}")
  endif()
  get_filename_component(processing "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../.." ABSOLUTE)
  set(folders "${processing}")
  foreach(folder IN LISTS chain_INCLUDES)
    get_filename_component(folder "${folder}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND folders "${folder}")
  endforeach()
  hltnode_add_kernels(${name}_kernels "${chain_KERNELS}" "${processing}" "${folders}")
  install(TARGETS ${name}_kernels LIBRARY DESTINATION "${chain_DESTINATION}")

  if(chain_NATIVE)
    if(NOT COMMAND nanobind_add_module)
      message(FATAL_ERROR "add_chain(${name}): NATIVE needs find_package(nanobind) before")
    endif()
    nanobind_add_module(${name}_native STABLE_ABI NB_STATIC ${chain_NATIVE})
    # Modules of one name need folders of their own in the build tree.
    set_target_properties(${name}_native PROPERTIES OUTPUT_NAME _native LIBRARY_OUTPUT_DIRECTORY chains/${name}
                          CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
    target_compile_options(${name}_native PRIVATE -O3 -fno-math-errno -Wall -Wextra)
    if(NOT chain_NATIVE_DESTINATION)
      set(chain_NATIVE_DESTINATION "${chain_DESTINATION}")
    endif()
    install(TARGETS ${name}_native LIBRARY DESTINATION "${chain_NATIVE_DESTINATION}")
  endif()
endfunction()

# The module `library` with the kernels of one list. A build knows the sources of its kernels, so that a node refuses a
# library that was built from other sources (kernel_library.py).
function(hltnode_add_kernels library list processing folders)
  execute_process(COMMAND "${Python_EXECUTABLE}" -P "${processing}/framework/kernel_sources.py" ${list} ${folders}
                  OUTPUT_VARIABLE files OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" files "${files}")
  list(POP_FRONT files digest)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})

  # A plain C library: its name has no version of Python, and one file serves all.
  add_library(${library} MODULE "${processing}/framework/backends/cpu_library.cpp")
  set_target_properties(${library} PROPERTIES PREFIX "" OUTPUT_NAME _chain_kernels LIBRARY_OUTPUT_DIRECTORY chains/${library}
                        CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
  target_compile_definitions(${library} PRIVATE HLT_KERNEL_DIGEST="${digest}")
  hltnode_add_instruction_set(${library} ${list} "${processing}" "${folders}" baseline)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(avx2 -mavx2 -mfma -mbmi -mbmi2 -mpopcnt -mlzcnt)
    hltnode_add_instruction_set(${library} ${list} "${processing}" "${folders}" avx2 ${avx2})
    hltnode_add_instruction_set(${library} ${list} "${processing}" "${folders}" avx512
                                -mavx512f -mavx512bw -mavx512dq -mavx512vl ${avx2})
    target_compile_definitions(${library} PRIVATE HLT_X86_TARGETS)
  endif()
endfunction()

# The kernels compiled for one instruction set; the compiler options of the set come last.
function(hltnode_add_instruction_set library list processing folders target)
  set(objects ${library}_${target})
  add_library(${objects} OBJECT "${processing}/framework/backends/cpu_kernels.cpp")
  target_compile_definitions(${objects} PRIVATE HLT_TARGET=${target} HLT_KERNEL_LIST="${list}")
  target_include_directories(${objects} PRIVATE ${folders})
  # No contraction to FMA: the same decisions on every instruction set, and on the GPU's comparison build.
  target_compile_options(${objects} PRIVATE -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math
                         -fvisibility=hidden -Wall -Wextra -Werror=undef -Wno-unknown-pragmas ${ARGN})
  set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
  target_link_libraries(${library} PRIVATE ${objects})
endfunction()
