# The kernels for GPUs, and the device that runs them (SKEIN_CUDA). Sources for the host are compiled
# as all others; nvcc compiles the sources of kernels, which the emulator has, too.

# scripts/setup puts a toolkit into .venv where there is no other.
file(GLOB packages ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13)
find_program(NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin ${packages}/bin REQUIRED)
get_filename_component(CUDA_ROOT ${NVCC} REALPATH)
get_filename_component(CUDA_ROOT ${CUDA_ROOT} DIRECTORY)
get_filename_component(CUDA_ROOT ${CUDA_ROOT} DIRECTORY)
find_path(CUDART_INCLUDE cuda_runtime_api.h HINTS ${CUDA_ROOT}/include
          ${CUDA_ROOT}/targets/x86_64-linux/include REQUIRED)
find_library(CUDART_LIBRARY cudart_static HINTS ${CUDA_ROOT}/lib64 ${CUDA_ROOT}/lib
             ${CUDA_ROOT}/targets/x86_64-linux/lib REQUIRED)

# GPUs newer than these three compile the PTX of compute_80 themselves. One alone, for a trial, is
# compiled in a third of the time; cuda_registers then finds no kernels of the others.
set(SKEIN_CUDA_ARCHITECTURES "80;89;90a" CACHE STRING "Architectures of GPUs, of 80, 89 and 90a")
foreach(architecture ${SKEIN_CUDA_ARCHITECTURES})
  set(codes sm_${architecture})
  if(architecture STREQUAL 80)
    set(codes [sm_80,compute_80])
  endif()
  list(APPEND gencodes -gencode arch=compute_${architecture},code=${codes})
endforeach()

# Arithmetic is that of docs/numerics.md: no contraction, denormals flushed, correct division and
# roots. ptxas reports registers and spills, which tools/ptxas_table.py checks.
set(kernels ${CMAKE_SOURCE_DIR}/src/cuda/kernels)
file(GLOB kernel_sources CONFIGURE_DEPENDS ${kernels}/*.cu ${kernels}/table/*.cc)
foreach(source ${kernel_sources})
  get_filename_component(name ${source} NAME_WE)
  set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
  set(report ${CMAKE_BINARY_DIR}/cuda/${name}.ptxas)
  add_custom_command(
    OUTPUT ${object} ${report}
    COMMAND ${CMAKE_SOURCE_DIR}/tools/ptxas_table.py --compile ${report} -- ${NVCC} -std=c++20 -O3
            --expt-relaxed-constexpr --fmad=false -ftz=true -prec-div=true -prec-sqrt=true
            ${gencodes} --threads 0 -Xptxas -v -ccbin ${CMAKE_CXX_COMPILER}
            -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/include -Xcompiler -fPIC
            -MD -MF ${object}.d -MT ${object} -x cu -c ${source} -o ${object}
    DEPENDS ${source}
    DEPFILE ${object}.d
    COMMENT "Compiling kernels for GPUs: ${name}, ${SKEIN_CUDA_ARCHITECTURES}"
    VERBATIM)
  list(APPEND objects ${object})
  list(APPEND reports ${report})
endforeach()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda)
set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)

get_target_property(sources skein_cuda SOURCES)
list(FILTER sources EXCLUDE REGEX "/no_cuda_device\\.cc$")
set_target_properties(skein_cuda PROPERTIES SOURCES "${sources}")
target_sources(skein_cuda PRIVATE ${CMAKE_SOURCE_DIR}/src/cuda/device/cuda_device.cc ${objects})
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/cuda/device/cuda_device.cc PROPERTIES
                            COMPILE_OPTIONS "-isystem;${CUDART_INCLUDE}"
                            SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
target_link_libraries(skein_cuda PUBLIC ${CUDART_LIBRARY} rt dl)
add_test(NAME cuda_registers
         COMMAND ${CMAKE_SOURCE_DIR}/tools/ptxas_table.py --check ${reports})
