# Op tests in other surroundings: on emulated matrix units, on CPUs of other kinds, under Oclgrind.

# Linear layers, attention, LSTM and convolutions on matrix units, emulated: tile edges, split sums, several tiles, activations; heads of every
# size; subgroups and samples; phases. ROW:STORAGE[:UNIT][=COST].
set(matrix_unit CLEAT_MATRIX_UNIT=emulated CLEAT_TEST_SHAPE=gpu CLEAT_TEST_VARIANT=mma)
foreach(case linear.1:f16 linear.5:f16 linear.5:bf16 linear.9:f16 linear.10:bf16=15 linear.13:f16 epilogue.1:f16 epilogue.4:bf16 epilogue.5:f16
             attention.0:bf16 attention.1:f16 attention.1:bf16 attention.2:f16 attention.5:bf16 cross_attention.1:f16
             cross_attention.2:bf16 causal_attention.2:f16 causal_attention.3:bf16
             lstm.2:f16 lstm.3:bf16 conv.0:bf16 conv.1:f16 conv.2:bf16 conv.3:bf16 conv.4:f16=12 conv.5:f16 conv.6:bf16
             linear_blocks.3:f16 linear_blocks.3:bf16:emulated_dot linear_blocks.2:f16:emulated_intel16
             linear.1:f16:emulated_dot linear.5:bf16:emulated_dot attention.1:f16:emulated_dot attention.5:bf16:emulated_dot
             cross_attention.1:f16:emulated_dot conv.1:f16:emulated_dot
             linear.5:f16:emulated_intel16 linear.5:f16:emulated_intel8 conv.1:f16:emulated_intel8 attention.1:f16:emulated_intel8 attention.1:bf16:emulated_intel16
             attention.2:bf16:emulated_intel8 attention.2:bf16:emulated_intel16 attention.5:f16:emulated_intel16 cross_attention.1:f16:emulated_intel16
             cross_attention.2:f16:emulated_intel8 conv.1:f16:emulated_intel16)
  string(REGEX MATCH "^([a-z_]+)\\.([0-9]+):([a-z0-9]+):?([a-z_0-9]*)=?([0-9]*)$" whole ${case})
  set(case_environment CLEAT_TEST_ROW=${CMAKE_MATCH_2} CLEAT_TEST_STORAGE=${CMAKE_MATCH_3})
  set(name ops.${CMAKE_MATCH_1}_mma.${CMAKE_MATCH_2}.${CMAKE_MATCH_3})
  set(op ${CMAKE_MATCH_1})
  set(words device)
  if(CMAKE_MATCH_5)
    list(APPEND words cost=${CMAKE_MATCH_5})
  endif()
  set(case_unit ${matrix_unit})
  if(CMAKE_MATCH_4)
    string(APPEND name .${CMAKE_MATCH_4})
    string(REPLACE =emulated =${CMAKE_MATCH_4} case_unit "${matrix_unit}")
  endif()
  cleat_test(${name} "${words}" ops_${op})
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${case_unit} ${case_environment})
endforeach()

cleat_script(ops.pieces ops/test_pieces.sh ${CMAKE_CURRENT_BINARY_DIR}/ops_ ${CMAKE_SOURCE_DIR})

# Sums of many groups, as a CPU with that number of cores has them (PoCL takes it for the number of its threads).
cleat_test(ops.layer_norm_40_cores device ops_layer_norm)
set_property(TEST ops.layer_norm_40_cores APPEND PROPERTY ENVIRONMENT POCL_MAX_PTHREAD_COUNT=40 POCL_CPU_MAX_CU_COUNT=40 CLEAT_TEST_ROW=2
                                                         CLEAT_TEST_SHAPE=cpu)
cleat_test(ops.adamw_128_cores device ops_adamw)
set_property(TEST ops.adamw_128_cores APPEND PROPERTY ENVIRONMENT POCL_MAX_PTHREAD_COUNT=128 POCL_CPU_MAX_CU_COUNT=128)

# --- kernels under Oclgrind
# Oclgrind interprets kernels about a hundred times slower than PoCL runs them: one row an op, several where the row chooses the kernel.

find_program(OCLGRIND oclgrind)
if(OCLGRIND AND CLEAT_TEST_OCLGRIND AND NOT CLEAT_SANITIZE AND NOT WIN32)
  cleat_test(oclgrind.matrix oclgrind ${CMAKE_CURRENT_SOURCE_DIR}/oclgrind.sh ${OCLGRIND} $<TARGET_FILE:device_matrix> 0)
  set(matrix_row_linear 2)
  set(matrix_row_attention 0)
  set(matrix_row_conv 3)
  set(matrix_words_attention cost=12)
  foreach(op linear attention conv)
    cleat_test(oclgrind.${op}_mma "oclgrind;${matrix_words_${op}}" ${CMAKE_CURRENT_SOURCE_DIR}/oclgrind.sh ${OCLGRIND} $<TARGET_FILE:ops_${op}>
               ${matrix_row_${op}}:f16)
    set_property(TEST oclgrind.${op}_mma APPEND PROPERTY ENVIRONMENT ${matrix_unit})
  endforeach()
  # the kernels for units whose sums are no operands
  cleat_test(oclgrind.attention_mma_dot oclgrind ${CMAKE_CURRENT_SOURCE_DIR}/oclgrind.sh ${OCLGRIND} $<TARGET_FILE:ops_attention> 0:f16)
  set_property(TEST oclgrind.attention_mma_dot APPEND PROPERTY ENVIRONMENT ${matrix_unit} CLEAT_MATRIX_UNIT=emulated_dot)
  foreach(op ${kernel_ops})
    set(rows ${rows_${op}})
    list(FILTER rows INCLUDE REGEX "^oclgrind=")
    if(NOT rows)
      set(rows oclgrind=0)
    endif()
    foreach(row ${rows})
      string(REGEX MATCH "=([^@]+)@?([0-9]*)" row ${row})
      set(row ${CMAKE_MATCH_1})
      set(words oclgrind)
      if(CMAKE_MATCH_2)
        list(APPEND words cost=${CMAKE_MATCH_2})
      endif()
      string(REPLACE ":" "." suffix ${row})
      cleat_test(oclgrind.${op}.${suffix} "${words}" ${CMAKE_CURRENT_SOURCE_DIR}/oclgrind.sh ${OCLGRIND} $<TARGET_FILE:ops_${op}> ${row})
    endforeach()
  endforeach()
endif()
