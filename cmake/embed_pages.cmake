# Writes the C++ source TO: page_of() of lab/lesson.hpp, with the text of each lesson's page. Given: LESSONS (their
# folder), NAMES (01_handles ...), TO. Run while building.
set(source "// Made by cmake/embed_pages.cmake.\n#include \"lab/lesson.hpp\"\n\nnamespace carousel::lab {\n\n")
string(APPEND source "const char* page_of(const lesson& l) noexcept {\n    switch (l.number) {\n")
foreach(name IN LISTS NAMES)
  file(READ ${LESSONS}/${name}/page.md text)
  string(REGEX REPLACE "^0?([0-9]+)_.*" "\\1" number ${name})
  string(APPEND source "        case ${number}:\n            return R\"carousel-page(${text})carousel-page\";\n")
endforeach()
string(APPEND source "        default:\n            return \"\";\n    }\n}\n\n}  // namespace carousel::lab\n")
file(WRITE ${TO} "${source}")
