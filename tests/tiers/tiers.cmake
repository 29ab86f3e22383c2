# Read by ctest after all other folders: gives the tests of tiers.txt the label of their tier, in addition to the labels that they have.
# ctest adds labels and never removes one, so a tier is selected by the labels that a test has and by those that it must not have
# (tests/run: select_tier).
set(tier "")
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/tiers.txt lines)
foreach(line IN LISTS lines)
  if(line MATCHES "^\\[([a-z]+)\\]$")
    set(tier ${CMAKE_MATCH_1})
  elseif(NOT line STREQUAL "" AND NOT line MATCHES "^#")
    set_tests_properties("${line}" PROPERTIES LABELS ${tier})
  endif()
endforeach()
